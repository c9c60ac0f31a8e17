"""The policies to run next."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import poul


def test_proposals_are_policies_that_the_model_knows(
    model: poul.Poul, rides: poul.Simulation, tmp_path: Path
) -> None:
    found = model.propose(maximize="gmv", edits=2, proposals=3, min_rows=20)
    frame = found.proposals
    assert isinstance(frame, pd.DataFrame) and 1 <= len(frame) <= 3
    assert (frame["lower_gmv"] < frame["effect_gmv"]).all() and (frame["effect_gmv"] < frame["upper_gmv"]).all()
    assert (frame["distance"] <= 0.5 + 1e-9).all() and frame["changes"].str.contains("->").all()
    assert set(found.policies.names) == {"control", *frame["policy"]}
    assert frame["policy"][0] in found.conclusion and frame["policy"][0] in repr(found)
    found.to_toml(tmp_path / "proposals.toml")
    averages = model.average_effects(policies=tmp_path / "proposals.toml")
    known = {(own["policy"], own["outcome"]): own["effect"] for own in averages}
    for _, own in frame.iterrows():
        assert known[own["policy"], "gmv"] == pytest.approx(own["effect_gmv"])


def test_averages_are_those_of_the_users_given(model: poul.Poul, rides: poul.Simulation) -> None:
    users = pd.read_parquet(rides.test)
    found = model.propose(users, maximize="gmv", edits=1, proposals=1, min_rows=20)
    name = found.proposals["policy"][0]
    effects = model.effect(users, policy=name, policies=found.policies)
    mean = effects["effect_gmv"].astype("float64").mean()
    assert found.proposals["effect_gmv"][0] == pytest.approx(mean, rel=1e-3, abs=1e-4)
    assert found.to_dict()["users"] == len(users)


def test_plans_and_mistakes(model: poul.Poul) -> None:
    plan = model.propose(rows=20_000)
    assert plan.to_dict()["plan"]["rows"] == 20_000 and "20,000 users" in plan.conclusion
    with pytest.raises(poul.UsageError):
        plan.policies
    learned = model.propose(maximize="gmv", learn=True, batch=2, rows=5_000, min_rows=20)
    shares = learned.to_dict()["learn"]
    assert shares["control_share"] + sum(arm["share"] for arm in shares["arms"]) == pytest.approx(1)
    with pytest.raises(poul.UsageError, match="edits"):
        model.propose(maximize="gmv", edits=-1)
    with pytest.raises(poul.PoulError, match="unknown outcome"):
        model.propose(maximize="gvm")
    with pytest.raises(poul.ArgumentError):
        model.propose(maximise="gmv")
