"""The search for settings: the same as `poul tune`, and what comes out fits."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import poul
from conftest import QUICK
from test_command_line import run

FOREST = {"trees": 8, "nuisance_trees": 8}


def forest(rides: poul.Simulation) -> poul.Learner:
    return poul.Learner("causal-forest", outcomes="gmv", exclude="cost", control="control", policies=rides.policies, **FOREST)


def test_a_search_is_the_same_everywhere(command_line: str, rides: poul.Simulation, tmp_path: Path) -> None:
    (tmp_path / "poul.toml").write_text(
        '[model]\nlearner = "causal-forest"\n'
        "trees = 8\nnuisance_trees = 8\n[tune]\n"
        '"model.min_node" = [5, 50]\n"model.trees" = { low = 4, high = 16, steps = 2 }\n'
    )
    run(command_line, "tune", rides.train, "--policies", rides.policies, "--outcome", "gmv", "--exclude", "cost",
        "--control", "control", "--learner", "causal-forest", "--config", tmp_path / "poul.toml", "--search", "grid",
        "--halving", "--json", tmp_path / "t.json", "--out", tmp_path / "best.toml")  # fmt: skip
    theirs = json.loads((tmp_path / "t.json").read_text())
    space = {"min_node": [5, 50], "model.trees": {"low": 4, "high": 16, "steps": 2}}
    ours = poul.tune(rides.train, forest(rides), space, search="grid", halving=True)
    assert ours.to_dict() == theirs
    run(command_line, "fit", rides.train, "--config", tmp_path / "best.toml", "--out", tmp_path / "best.poul")
    best = ours.learner.fit(rides.train)
    assert best._fitted().to_bytes()[-4096:] == (tmp_path / "best.poul").read_bytes()[-4096:]


def test_what_is_found_is_told_and_fits(rides: poul.Simulation) -> None:
    base = forest(rides)
    tuning = poul.tune(pd.read_parquet(rides.train), base, {"min_node": [5, 20, 200]}, validation_share=0.3)
    losses = [trial["r_loss"] for trial in tuning.trials]
    assert tuning.best["r_loss"] == min(losses) and len(losses) == 3
    table = pd.DataFrame(tuning.table())
    assert list(table["r_loss"]) == sorted(losses) and {"number", "share", "model.min_node"} <= set(table.columns)
    assert f"{tuning.best['number']} *" in repr(tuning) and "to validate" in repr(tuning)
    assert "<table" in tuning._repr_html_()
    found = tuning.learner
    assert type(found) is poul.Learner and found.get_params()["min_node"] == tuning.best["point"]["model.min_node"]
    assert found.get_params()["trees"] == 8 and found._model is None and "min_node" not in base.get_params()
    assert len(found.fit(rides.train).effect(rides.test, policy="T1")) == rides.test_rows


def test_halving_on_epochs_and_random_points(rides: poul.Simulation) -> None:
    base = poul.Poul(**{**QUICK, "epochs": 9})
    tuning = poul.tune(
        rides.train, base, {"learning_rate": {"low": 1e-4, "high": 1e-2, "scale": "log"}}, trials=3, search="random",
        halving=True, resource="epochs", policies=rides.policies, outcomes="gmv", exclude="cost", seed=1,
    )  # fmt: skip
    assert len(tuning.trials) == 3 and {trial["share"] for trial in tuning.trials} >= {1.0}
    assert all(1e-4 <= trial["point"]["training.learning_rate"] <= 1e-2 for trial in tuning.trials)
    assert isinstance(tuning.learner, poul.Poul) and tuning.learner.seed == 1 and tuning.learner.outcomes == "gmv"


def test_mistakes_are_told(rides: poul.Simulation) -> None:
    base = forest(rides)
    with pytest.raises(TypeError, match="did you mean `min_node`"):
        poul.tune(rides.train, base, {"min_nod": [1]})
    with pytest.raises(ValueError, match="is one value"):
        poul.tune(rides.train, base, {"min_node": "5"})
    with pytest.raises(ValueError, match="empty list"):
        poul.tune(rides.train, base, {"min_node": []})
    with pytest.raises(ValueError, match="min_node"):
        poul.tune(rides.train, base, {"min_node": [0]})
    with pytest.raises(ValueError, match='"grd": must be one of'):
        poul.tune(rides.train, base, {"min_node": [5]}, search="grd")
    with pytest.raises(ValueError, match="trials=1"):
        poul.tune(rides.train, base, {"min_node": [5, 6]}, trials=0)
    with pytest.raises(ValueError, match="held out"):
        poul.tune(rides.train, base, {"min_node": [5]}, validation_share=0)
    with pytest.raises(ValueError, match="exclude each other"):
        poul.tune(rides.train, "poul", {"members": [1]}, preset="paper-gmv", outcomes="gmv")
    with pytest.raises(TypeError, match="did you mean `trials`"):
        poul.tune(rides.train, base, {"min_node": [5]}, trails=3)


def test_a_search_that_was_stopped_keeps_its_trials(rides: poul.Simulation, tmp_path: Path) -> None:
    from poul import _progress

    folder, seen = tmp_path / "partial", []
    # The last is long enough to be stopped in its middle.
    space = {"trees": [4, 8, 1000]}
    whole = poul.tune(rides.train, forest(rides), space)
    with pytest.MonkeyPatch.context() as patch:

        def start(self: object, stage: str, unit: str, total: int | None) -> None:
            seen.append(stage)
            if stage.startswith("trial 3"):
                raise KeyboardInterrupt

        patch.setattr(_progress.Listener, "start", start)
        with pytest.raises(KeyboardInterrupt):
            poul.tune(rides.train, forest(rides), space, checkpoint=folder)
        seen.clear()
        patch.setattr(_progress.Listener, "start", lambda self, stage, unit, total: seen.append(stage))
        again = poul.tune(rides.train, forest(rides), space, checkpoint=folder, resume=True)
    assert again.to_dict() == whole.to_dict() and not folder.exists()
    assert not any(stage.startswith("trial 1") for stage in seen)
