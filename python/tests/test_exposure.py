"""Each row's own exposure to contexts: by a glob or a mapping, in fitting and in scoring."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import poul

from conftest import QUICK


@pytest.fixture(scope="module")
def meals(tmp_path_factory: pytest.TempPathFactory) -> poul.Simulation:
    folder = tmp_path_factory.mktemp("meals")
    return poul.simulate(folder, scenario="delivery", rows=1500, test_rows=300, features=32, policies=6)


def test_a_glob_and_a_mapping_are_the_same(meals: poul.Simulation) -> None:
    by_glob = poul.Poul(outcomes="spend", control="control", exposure="trips_*", **QUICK)
    by_glob.fit(meals.train, policies=meals.policies)
    contexts = poul.Policies.read(meals.policies).contexts
    named = {context: f"trips_{context}" for context in contexts}
    by_name = poul.Poul(outcomes="spend", control="control", exposure=named, **QUICK)
    by_name.fit(meals.train, policies=meals.policies)
    test = pd.read_parquet(meals.test)
    effects = by_glob.effect(test, policy="P01")
    assert (effects["effect_spend"] == by_name.effect(test, policy="P01")["effect_spend"]).all()
    mean = by_glob.effect(pd.read_parquet(meals.train), policy="P01")["effect_spend"].astype("float64").mean()
    (average,) = by_glob.average_effects("P01")
    assert mean == pytest.approx(average["effect"], abs=1e-2 * average["se"] + 1e-4)


def test_totals_are_another_model(meals: poul.Simulation, tmp_path: Path) -> None:
    learner = poul.Poul(outcomes="spend", control="control", exposure="trips_*", exposure_scale="total", **QUICK)
    learner.fit(meals.train, policies=meals.policies)
    learner.save(tmp_path / "m.poul")
    again = poul.load(tmp_path / "m.poul")
    assert again.exposure == "trips_*" and again.exposure_scale == "total"
    test = pd.read_parquet(meals.test)
    first, second = (own.effect(test, policy="P01")["effect_spend"] for own in (learner, again))
    assert (first == second).all() and first.abs().max() > 0


def test_what_is_missing_is_told(meals: poul.Simulation) -> None:
    learner = poul.Poul(outcomes="spend", control="control", exposure="trips_*", **QUICK)
    learner.fit(meals.train, policies=meals.policies)
    test = pd.read_parquet(meals.test)
    with pytest.raises(poul.PoulError, match="trips_north_lunch"):
        learner.effect(test.drop(columns="trips_north_lunch"), policy="P01")
    with pytest.raises(poul.PoulError, match="no exposure column"):
        poul.Poul(outcomes="spend", exposure={"north_lunch": "trips_north_lunch"}, **QUICK).fit(
            meals.train, policies=meals.policies
        )
