"""The profile of a table: the same as `poul check`, and what it finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import poul
from test_command_line import run


def test_a_profile_is_the_same_everywhere(command_line: str, rides: poul.Simulation, tmp_path: Path) -> None:
    run(command_line, "check", rides.train, "--policies", rides.policies, "--outcome", "gmv,cost", "--permutations", "49",
        "--seed", "5", "--shares", "control=3,T1=2,T2=2,T1_peak=1", "--json", tmp_path / "p.json")  # fmt: skip
    theirs = json.loads((tmp_path / "p.json").read_text())
    for data in (rides.train, pd.read_parquet(rides.train)):
        ours = poul.check(
            data, policies=rides.policies, outcomes=["gmv", "cost"], permutations=49, seed=5,
            shares={"control": 3, "T1": 2, "T2": 2, "T1_peak": 1},
        )  # fmt: skip
        assert ours.to_dict() == theirs


def experiment(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"policy": rng.choice(["control", "a"], n, p=[0.7, 0.3]), "x": rng.normal(size=n)})
    return frame.assign(y=frame["x"] + rng.normal(size=n))


def test_a_sound_experiment_has_no_problem() -> None:
    profile = poul.check(experiment(), outcomes="y", permutations=99, shares={"control": 0.7, "a": 0.3})
    assert profile.rows == 3000 and profile.problems == []
    table = pd.DataFrame(profile.table())
    assert list(table["policy"]) == ["control", "a"] and table["rows"].sum() == 3000
    assert np.isclose(table["mean_y"][0], experiment().query("policy == 'control'")["y"].mean())
    text = repr(profile)
    assert "control *" in text and "* control" in text and "Balance: permutation test" in text and "χ²(1)" in text
    assert "<table" in profile._repr_html_() and "<li>" in profile._repr_html_()


def test_problems_are_found_and_told_in_python() -> None:
    frame = experiment()
    shifted = frame.assign(x=frame["x"] + (frame["policy"] == "a"))
    profile = poul.check(shifted, outcomes="y")
    assert [problem["level"] for problem in profile.problems] == ["problem"]
    assert "differ between policies" in profile.problems[0]["what"] and "stratum=" in profile.problems[0]["hint"]
    assert "--" not in repr(profile) and profile.problems[0]["what"] in repr(profile)
    lost = poul.check(frame, outcomes="y", permutations=0, shares={"control": 1, "a": 1})
    assert any("sample" in problem["what"] for problem in lost.problems)


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="no outcome is named") as caught:
        poul.check(experiment())
    assert 'outcomes="COL"' in str(caught.value)
    with pytest.raises(TypeError, match="did you mean `permutations`"):
        poul.check(experiment(), outcomes="y", permutation=9)
    with pytest.raises(ValueError, match="did you mean `a`"):
        poul.check(experiment(), outcomes="y", shares={"control": 1, "A": 1})
    with pytest.raises(ValueError, match="there is no policy|unknown policy|contrl"):
        poul.check(experiment(), outcomes="y", control="contrl")
    factorial = experiment().assign(job=["nurse", "cook"] * 1500)
    with pytest.raises(ValueError, match="clown"):
        poul.check(
            factorial, outcomes="y", treatment_columns=["policy", "job"], control={"policy": "a", "job": "clown"}, permutations=0
        )
