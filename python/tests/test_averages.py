"""Averages of policies, run or not, and of single actions: the same number wherever it is asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import poul


def test_the_average_is_the_mean_of_the_effects_of_the_training_rows(
    model: poul.Poul, rides: poul.Simulation
) -> None:
    effects = model.effect(pd.read_parquet(rides.train), policy="T2")
    found = {own["outcome"]: own for own in model.average_effects("T2")}
    assert list(found) == rides.outcomes
    for outcome, own in found.items():
        mean = effects[f"effect_{outcome}"].astype("float64").mean()
        assert mean == pytest.approx(own["effect"], abs=1e-3 * own["se"])
        low, high = own["interval"]
        assert low < own["effect"] < high and own["se"] > 0 and own["rows"] > 0
    (certificate,) = model.certify("T2", level=0.9)
    assert [own["effect"] for own in certificate["averages"]] == [own["effect"] for own in found.values()]
    assert [own["interval"] for own in certificate["averages"]] == [own["interval"] for own in found.values()]


def test_a_policy_never_run_has_an_interval(model: poul.Poul, rides: poul.Simulation) -> None:
    known = poul.Policies.read(rides.policies)
    action = next(action for action in known.actions if action != "none")
    idea = {"policies": {"idea": {"*": "none", next(iter(known.contexts)): action}}}
    with pytest.raises(poul.PoulError):
        model.average_effects("idea")
    for own in model.average_effects(policies=idea, allow_unseen=True):
        assert own["policy"] == "idea" and own["rows"] == 0
        assert own["interval"][0] < own["effect"] < own["interval"][1]


def test_components_are_averages_of_one_switch(model: poul.Poul) -> None:
    frame = model.components(interval=0.9)
    known = frame[frame["se"].notna()]
    assert len(known) > 0 and (known["band_lower"] <= known["lower"]).all() and (known["rows"] > 0).all()
    assert (frame.loc[frame["control"], "effect"] == 0).all()
    wider = model.components(interval=0.99)
    assert (wider["upper"].dropna() >= frame["upper"].dropna()).all()
    with pytest.raises(poul.PoulError):
        model.components(against="nobody")
    with pytest.raises(poul.PoulError):
        model.components(interval=2)


def test_ate_has_an_interval_with_and_without_rows() -> None:
    rng = np.random.default_rng(1)
    X, T = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    Y = X[:, 0] + 0.5 * T + rng.normal(size=2000)
    learner = poul.Poul(members=2, epochs=3, folds=2, hidden=[16], outcome_hidden=[16]).fit(Y, T, X=X)
    low, high = learner.ate_interval(T0=0, T1=1, alpha=0.01)
    assert low < 0.5 < high and low < learner.ate(T0=0, T1=1) < high
    assert learner.ate(X, T0=0, T1=1) == pytest.approx(learner.ate(T0=0, T1=1), abs=1e-3)
    moved = learner.ate_interval(X[:500], T0=0, T1=1, alpha=0.01)
    assert moved[1] - moved[0] == pytest.approx(high - low)
    with pytest.raises(poul.PoulError):
        learner.ate_interval(alpha=2)


def test_an_auxiliary_outcome_teaches_and_is_not_told(rides: poul.Simulation) -> None:
    quick = {"members": 2, "epochs": 2, "control": "control", "policies": rides.policies}
    taught = poul.Poul(outcomes="gmv", auxiliary="cost", **quick).fit(rides.train)
    effects = taught.effect(rides.test, policy="T2").to_pandas()
    assert "effect_gmv" in effects and "effect_cost" not in effects
    # A table that is scored need not have it.
    again = taught.effect(pd.read_parquet(rides.test).drop(columns=["cost", "gmv"]), policy="T2")
    np.testing.assert_array_equal(again["effect_gmv"], effects["effect_gmv"])
    with pytest.raises(poul.PoulError, match="two roles"):
        poul.Poul(outcomes="gmv", auxiliary="gmv", **quick).fit(rides.train)
