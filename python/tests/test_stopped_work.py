"""Work that was stopped goes on to the same result: fits, comparisons, searches."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path

import pytest

import poul
from conftest import QUICK
from poul import _progress
from test_command_line import parts

#: Long enough to be stopped in the middle.
SETTINGS = {**QUICK, "epochs": 30, "patience": 0}


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Somebody presses Ctrl-C as soon as the second stage of training advances."""
    begun: list[str] = []

    def start(self: _progress.Listener, stage: str, unit: str, total: int | None) -> None:
        begun.append(stage)

    def advance(self: _progress.Listener, n: int) -> None:
        if len(begun) > 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(_progress.Listener, "start", start)
    monkeypatch.setattr(_progress.Listener, "advance", advance)
    return monkeypatch


def learner(rides: poul.Simulation, **others: object) -> poul.Poul:
    return poul.Poul(outcomes=rides.outcomes, control="control", policies=rides.policies, **{**SETTINGS, **others})


def forest(rides: poul.Simulation, trees: int = 8) -> poul.Learner:
    return poul.Learner("causal-forest", outcomes="gmv", policies=rides.policies, trees=trees, nuisance_trees=8)


@pytest.fixture(scope="module")
def whole(rides: poul.Simulation) -> poul.Poul:
    """A model whose fit nobody stopped."""
    return learner(rides).fit(rides.train)


def stopped_fit(rides: poul.Simulation, folder: Path, stop: pytest.MonkeyPatch) -> KeyboardInterrupt:
    with pytest.raises(KeyboardInterrupt) as caught:
        learner(rides).fit(rides.train, checkpoint=folder)
    stop.undo()
    return caught.value


def test_a_fit_goes_on_to_the_same_model(
    whole: poul.Poul, rides: poul.Simulation, stop: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "model.poul.partial"
    error = stopped_fit(rides, folder, stop)
    assert "resume=True" in error.__notes__[0] and str(folder) in error.__notes__[0]
    with pytest.raises(ValueError, match=r"another fit: seed \(3407 there, 1 here\)") as caught:
        learner(rides, seed=1).fit(rides.train, checkpoint=folder, resume=True)
    assert "without `resume`" in str(caught.value)
    n_entries = len(list(folder.glob("*.part")))
    again = learner(rides, threads=1).fit(rides.train, checkpoint=folder, resume=True)
    assert again._fitted().to_bytes() == whole._fitted().to_bytes()
    assert n_entries > 0 and not folder.exists()
    with caplog.at_level(logging.WARNING, logger="poul"):
        forest(rides).fit(rides.train, checkpoint=folder, resume=True)
    assert "starting from the beginning" in caplog.text


def test_the_command_line_goes_on_from_what_python_left(
    whole: poul.Poul, rides: poul.Simulation, stop: pytest.MonkeyPatch, tmp_path: Path, command_line: str
) -> None:
    out = tmp_path / "model.poul"
    stopped_fit(rides, tmp_path / "model.poul.partial", stop)
    names = {"model": ("members", "hidden", "outcome_hidden"), "training": ("epochs", "folds", "patience")}
    tables = (f"[{table}]\n" + "".join(f"{name} = {SETTINGS[name]}\n" for name in own) for table, own in names.items())
    (tmp_path / "poul.toml").write_text("".join(tables))
    words = ["fit", rides.train, "--policies", rides.policies, "--outcome", "gmv,cost", "--control", "control",
             "--config", tmp_path / "poul.toml", "--out", out, "--resume"]  # fmt: skip
    run = subprocess.run([command_line, *map(str, words)], check=True, capture_output=True, text=True)
    assert "starting from the beginning" not in run.stderr
    whole.save(tmp_path / "whole.poul")
    assert parts(out) == parts(tmp_path / "whole.poul")


def test_work_that_starts_afresh_says_so(rides: poul.Simulation, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "partial"
    folder.mkdir()
    (folder / "work.json").write_text("{}")
    with caplog.at_level(logging.WARNING, logger="poul"):
        forest(rides).fit(rides.train, checkpoint=folder)
    assert "this work starts afresh and replaces it, resume=True goes on from it" in caplog.text
    assert not folder.exists()


def test_a_comparison_keeps_the_learners_that_are_finished(rides: poul.Simulation, tmp_path: Path) -> None:
    def compare(**others: object) -> poul.Comparison:
        # The last is long enough to be stopped in its middle.
        learners = ["ridge", forest(rides, 1000)]
        return poul.compare(
            rides.train, learners, test=rides.test, policies=rides.policies, outcomes="gmv", exclude="cost", draws=0, **others
        )

    folder, seen = tmp_path / "partial", []
    whole = compare()
    with pytest.MonkeyPatch.context() as patch:

        def stop(self: object, stage: str, unit: str, total: int | None) -> None:
            seen.append(stage)
            if stage.startswith("causal-forest"):
                raise KeyboardInterrupt

        patch.setattr(_progress.Listener, "start", stop)
        with pytest.raises(KeyboardInterrupt):
            compare(checkpoint=folder)
        assert any(stage.startswith("ridge: ") for stage in seen), seen
        seen.clear()
        patch.setattr(_progress.Listener, "start", lambda self, stage, unit, total: seen.append(stage))
        again = compare(checkpoint=folder, resume=True)
    assert again.to_dict() == whole.to_dict() and not folder.exists()
    assert not any(stage.startswith("ridge: ") for stage in seen), seen


def test_resuming_needs_a_folder(rides: poul.Simulation) -> None:
    for work in (learner(rides).fit, poul.compare, poul.tune):
        with pytest.raises(TypeError, match="`resume` needs `checkpoint`"):
            work(rides.train, resume=True)
