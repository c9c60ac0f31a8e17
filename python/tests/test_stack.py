"""Stacks from Python: members by name, the same model as the command line's, and one file."""

from __future__ import annotations

from pathlib import Path

import poul
from test_command_line import run

OF = ["constant", "ridge", "uplift-forest"]
LEARNERS = {"uplift-forest": {"model": {"trees": 8}}}


def test_a_stack_is_that_of_the_command_line(command_line: str, rides: poul.Simulation, tmp_path: Path) -> None:
    (tmp_path / "poul.toml").write_text("[learners.uplift-forest.model]\ntrees = 8\n")
    run(command_line, "fit", rides.train, "--policies", rides.policies, "--outcome", "gmv", "--exclude", "cost",
        "--control", "control", "--learner", "stack", "--of", "ridge,constant,uplift-forest", "--folds", "2",
        "--config", tmp_path / "poul.toml", "--out", tmp_path / "theirs.poul")  # fmt: skip
    stack = poul.Learner(
        "stack", outcomes="gmv", exclude="cost", control="control", policies=rides.policies, of=OF,
        learners=LEARNERS, folds=2,
    )  # fmt: skip
    ours = stack.fit(rides.train)
    # But for the command, which stands at the beginning, files are the same.
    assert ours._fitted().to_bytes()[-4096:] == (tmp_path / "theirs.poul").read_bytes()[-4096:]
    ours.save(tmp_path / "ours.poul")
    loaded = poul.load(tmp_path / "ours.poul")
    effects = ours.effect(rides.test, policy="T1")
    assert effects.to_pandas().equals(loaded.effect(rides.test, policy="T1").to_pandas())
