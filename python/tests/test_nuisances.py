"""Which nuisance models are chosen, as Python tells it."""

from __future__ import annotations

from pathlib import Path

import poul

from conftest import QUICK


def test_what_auto_chose_is_told_and_stored(rides: poul.Simulation, tmp_path: Path) -> None:
    learner = poul.Poul(outcomes="gmv", exclude="cost", control="control", outcome_model="auto", **QUICK)
    learner.fit(rides.train, policies=rides.policies)
    chosen = learner.nuisances_
    assert chosen is not None
    (outcome,) = chosen["outcomes"]
    candidates = outcome["choice"]["candidates"]
    assert outcome["outcome"] == "gmv"
    assert [own["model"] for own in candidates] == ["ridge", "network", "boosted"]
    assert abs(sum(own["weight"] for own in candidates) - 1) < 1e-9
    assert any(note.startswith("outcome model of `gmv`: ") for note in learner.notes_)
    learner.save(tmp_path / "auto.poul")
    loaded = poul.load(tmp_path / "auto.poul")
    assert loaded.nuisances_ == chosen
    effects = [own.effect(rides.test, policy="T1").to_pandas() for own in (learner, loaded)]
    assert effects[0].equals(effects[1])


def test_other_outcome_models_choose_nothing(rides: poul.Simulation) -> None:
    learner = poul.Poul(outcomes="gmv", exclude="cost", control="control", outcome_model="boosted", **QUICK)
    assert learner.fit(rides.train, policies=rides.policies).nuisances_ is None
