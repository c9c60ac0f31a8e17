"""Python and the command line are one: the same data, settings and seed give the same model, and each reads the other's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import poul
from conftest import QUICK


def run(command_line: str, *words: object) -> None:
    subprocess.run([command_line, *map(str, words)], check=True, capture_output=True)


def parts(path: Path) -> tuple[dict, dict, bytes]:
    """Manifest without the command, tensors' places, tensors' bytes."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    manifest = json.loads(header.pop("__metadata__")["poul"])
    manifest.pop("command")
    return manifest, header, content[end:]


TOML = """
[model]
members = 2
hidden = [16]
outcome_hidden = [16]
[training]
epochs = 2
folds = 2
"""


@pytest.fixture(scope="module")
def both(command_line: str, rides: poul.Simulation, model: poul.Poul, tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("both")
    (folder / "poul.toml").write_text(TOML)
    run(command_line, "fit", rides.train, "--policies", rides.policies, "--outcome", "gmv,cost", "--control", "control",
        "--config", folder / "poul.toml", "--out", folder / "cli.poul")  # fmt: skip
    model.save(folder / "python.poul")
    return folder / "cli.poul", folder / "python.poul"


def test_a_fit_is_the_same_everywhere(both: tuple[Path, Path]) -> None:
    ours, theirs = parts(both[1]), parts(both[0])
    assert ours[0] == theirs[0]
    assert ours[1:] == theirs[1:]


def test_saving_a_loaded_model_gives_the_same_bytes(both: tuple[Path, Path], tmp_path) -> None:
    for path in both:
        poul.load(path).save(tmp_path / "again.poul")
        assert (tmp_path / "again.poul").read_bytes() == path.read_bytes()


def test_each_scores_with_the_others_model(
    both: tuple[Path, Path], command_line: str, rides: poul.Simulation, tmp_path
) -> None:
    run(command_line, "effect", both[1], rides.test, "--policy", "T2", "--interval", "0.9", "--out", tmp_path / "e.parquet")
    ours = poul.load(both[0]).effect(rides.test, policy="T2", interval=0.9).to_pandas()
    pd.testing.assert_frame_equal(ours, pd.read_parquet(tmp_path / "e.parquet"))


def test_an_evaluation_is_the_same_everywhere(
    both: tuple[Path, Path], command_line: str, rides: poul.Simulation, tmp_path
) -> None:
    run(command_line, "evaluate", both[0], rides.test, "--draws", "20", "--json", tmp_path / "metrics.json")
    theirs = json.loads((tmp_path / "metrics.json").read_text())
    ours = poul.load(both[1]).evaluate(rides.test, draws=20).to_dict()
    for part in ("rows", "level", "results", "pooled"):
        assert ours[part] == theirs[part]


def test_a_report_is_the_same_everywhere(
    both: tuple[Path, Path], command_line: str, rides: poul.Simulation, tmp_path
) -> None:
    def without_provenance(page: Path) -> str:
        return page.read_text(encoding="utf-8").partition('<section id="provenance">')[0]

    run(command_line, "evaluate", both[0], rides.test, "--draws", "20", "--report", tmp_path / "theirs.html")
    ours = poul.load(both[1])
    ours.report(tmp_path / "ours.html", rides.test, draws=20)
    assert without_provenance(tmp_path / "ours.html") == without_provenance(tmp_path / "theirs.html")


def test_loaded_models_know_their_parameters(both: tuple[Path, Path]) -> None:
    loaded = poul.load(both[0])
    assert isinstance(loaded, poul.Poul)
    parameters = loaded.get_params()
    assert parameters["outcomes"] == ["gmv", "cost"] and parameters["members"] == QUICK["members"]
    assert parameters["control"] == "control" and parameters["design"] == "randomized"


def test_a_comparison_is_the_same_everywhere(command_line: str, rides: poul.Simulation, tmp_path) -> None:
    run(command_line, "compare", rides.train, "--test", rides.test, "--policies", rides.policies, "--outcome", "gmv",
        "--exclude", "cost", "--control", "control", "--learner", "ridge,constant", "--draws", "20",
        "--truth", rides.truth, "--json", tmp_path / "c.json", "--work", tmp_path / "work")  # fmt: skip
    theirs = json.loads((tmp_path / "c.json").read_text())
    ours = poul.compare(
        rides.train, ["ridge", "constant"], test=rides.test, policies=rides.policies, outcomes="gmv",
        exclude="cost", control="control", draws=20, truth=rides.truth,
    )  # fmt: skip
    assert ours.to_dict() == theirs


def test_threads_do_not_matter(model: poul.Poul, rides: poul.Simulation) -> None:
    one = poul.Poul(outcomes=rides.outcomes, control="control", threads=1, **QUICK)
    one.fit(rides.train, policies=rides.policies)
    assert one._fitted().to_bytes() == model._fitted().to_bytes()
    found = [m.effect(rides.test, policy="T1").to_pandas()["effect_gmv"].to_numpy() for m in (one, model)]
    np.testing.assert_array_equal(*found)
