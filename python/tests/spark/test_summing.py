"""Evaluations and checks from sums of partitions, against one machine."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import poul
import poul.spark

EXACT = ("n_treated", "n_control", "ate", "ate_se", "ate_predicted", "calibration_slope", "calibration_slope_se", "r_loss", "r_score")
RANKED = ("auuc", "qini", "rate_autoc", "rate_qini")


def close(found: float, expected: float) -> bool:
    """To the precision that is promised of exact numbers."""
    return abs(found - expected) <= 1e-9 * max(abs(expected), 1e-3)


@pytest.mark.parametrize("n_partitions", [1, 7])
def test_an_evaluation_is_that_of_one_machine(
    spark: Any, model: poul.Poul, users: pd.DataFrame, n_partitions: int
) -> None:
    # The outcomes' own m̂, so that one machine fits none: averages are then made of the same numbers.
    table = users.assign(m_gmv=users["gmv"].mean() + 0.1 * users["gmv"].rank(pct=True), m_cost=users["cost"].mean())
    given: dict[str, Any] = {"prediction": {"gmv": "m_gmv", "cost": "m_cost"}}
    here = model.evaluate(table, draws=20, checks=False, **given)
    rows = spark.createDataFrame(table).repartition(n_partitions)
    there = poul.spark.evaluate(model, rows, **given)
    assert there.rows == here.rows == len(table)
    assert len(there.results) == len(here.results) > 2
    for found, expected in zip(there.results, here.results):
        assert (found["outcome"], found["policy"]) == (expected["outcome"], expected["policy"])
        for name in EXACT:
            assert close(found[name], expected[name]), (name, found[name], expected[name])
        # So few rows have a bucket each.
        for name in RANKED:
            assert close(found[name], expected[name]) and found["bounds"][name] == 0, name
    averages = {(own["outcome"], own["policy"]): own for own in there.averages.to_pylist()}
    expected_averages = [own for own in here.averages.to_pylist() if own["by"] is None] if hasattr(
        here.averages, "to_pylist"
    ) else here.averages[here.averages["by"].isna()].to_dict("records")
    assert len(averages) == len(expected_averages)
    for expected in expected_averages:
        found = averages[expected["outcome"], expected["policy"]]
        for name in ("effect", "se", "lower", "upper", "predicted"):
            assert close(found[name], expected[name]), (name, found[name], expected[name])
    assert "auuc" in repr(there) or "AUUC" in repr(there)


def test_weights_and_a_population_count(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    table = users.assign(w=[0.25 * (row % 4) for row in range(len(users))], key=range(len(users)))
    asked: dict[str, Any] = {"weight": "w", "population": "key >= 100", "policy": "T1"}
    here = model.evaluate(table, draws=0, checks=False, **asked)
    there = poul.spark.evaluate(model, spark.createDataFrame(table).repartitionByRange(6, "key"), **asked)
    assert there.rows == len(users) - 100
    for found, expected in zip(there.results, here.results):
        for name in (*EXACT, *RANKED):
            assert close(found[name], expected[name]), (name, found[name], expected[name])


def test_what_sums_cannot_tell_is_said(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    table = users.assign(team=[f"t{row % 50}" for row in range(len(users))])
    found = poul.spark.evaluate(model, spark.createDataFrame(table), cluster="team", policy="T1")
    assert found.results[0]["ate_se"] is None and "clusters" in found.results[0]["notes"][0]
    found = poul.spark.evaluate(model, spark.createDataFrame(table), policy="T1", design="observational")
    assert found.results[0]["ate"] is not None and "no average effects" in found.notes[-1]


def test_what_is_wrong_is_told_before_anything_starts(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    from pyspark.sql import functions

    rows = spark.createDataFrame(users)
    with pytest.raises(poul.PoulError, match="gmv"):
        poul.spark.evaluate(model, rows.drop("gmv"))
    with pytest.raises(poul.InputError, match="`gmv` is of type array<double>"):
        poul.spark.evaluate(model, rows.withColumn("gmv", functions.array("gmv")))
    with pytest.raises(poul.PoulError, match="T9"):
        poul.spark.evaluate(model, rows, policy="T9")
    with pytest.raises(poul.ArgumentError, match="wieght"):
        poul.spark.evaluate(model, rows, wieght="w")
    with pytest.raises(poul.InputError, match="no rows|no row has"):
        poul.spark.evaluate(model, rows.filter("false"))
    with pytest.raises(Exception, match="the outcome is null"):
        poul.spark.evaluate(model, rows.withColumn("gmv", functions.expr("IF(user = 'u7', NULL, gmv)")))


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_a_check_counts_what_one_machine_counts(
    spark: Any, rides: poul.Simulation, users: pd.DataFrame, n_partitions: int
) -> None:
    shares = {name: 1.0 for name in sorted(set(users["policy"]))}
    asked: dict[str, Any] = {"policies": rides.policies, "outcomes": rides.outcomes, "exclude": "user", "shares": shares}
    here = poul.check(users, permutations=0, **asked)
    there = poul.spark.check(spark.createDataFrame(users).repartition(n_partitions), **asked)
    assert there.rows == here.rows
    found, expected = there.to_dict(), here.to_dict()
    for name in ("atoms", "aliases", "unused_policies"):
        assert found[name] == expected[name], name
    assert found["sample_ratio"]["statistic"] == expected["sample_ratio"]["statistic"]
    for own, other in zip(found["arms"], expected["arms"]):
        assert (own["policy"], own["rows"], own["share"]) == (other["policy"], other["rows"], other["share"])
        assert all(map(close, own["outcome_means"], other["outcome_means"]))
    for own, other in zip(found["outcomes"], expected["outcomes"]):
        assert own["binary"] == other["binary"] and own["min"] == other["min"] and own["max"] == other["max"]
        assert close(own["mean"], other["mean"]) and close(own["sd"], other["sd"]) and own["zeros"] == other["zeros"]
    numbers = {own["column"]: own for own in there.features if own["mean"] is not None}
    for name, own in numbers.items():
        values = users[name].astype("float64")
        assert close(own["mean"], values.mean()) and close(own["sd"], values.std(ddof=0)), name
        assert own["missing"] == users[name].isna().mean()
    assert f"{len(users):,} rows" in repr(there)


def test_policies_are_those_of_the_rows_where_none_are_defined(spark: Any, users: pd.DataFrame) -> None:
    found = poul.spark.check(spark.createDataFrame(users), outcomes="gmv", exclude="user")
    assert {own["policy"]: own["rows"] for own in found.table()} == users["policy"].value_counts().to_dict()


def test_a_number_that_follows_the_policy_is_found(spark: Any, rides: poul.Simulation, users: pd.DataFrame) -> None:
    late = users.assign(late=(users["policy"] == "T1") * 1.0 + users["gmv"] * 0)
    found = poul.spark.check(
        spark.createDataFrame(late), policies=rides.policies, outcomes=rides.outcomes, exclude="user"
    )
    assert found.to_dict()["imbalances"][0]["column"] == "late"
    assert any("late" in one["what"] for one in found.findings)
