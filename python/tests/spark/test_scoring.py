"""Effects and allocations on Spark are those of one machine, however rows are spread."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import poul
import poul.spark


def same(there: Any, here: pd.DataFrame, *keys: str) -> None:
    """The same rows, to the last bit, in whatever order."""
    found = there.toPandas()
    assert list(found.columns) == list(here.columns)
    found, here = (frame.sort_values(list(keys)).reset_index(drop=True) for frame in (found, here))
    for name in here.columns:
        pd.testing.assert_series_equal(
            found[name].astype(here[name].dtype), here[name], check_exact=True, check_dtype=False
        )


@pytest.mark.parametrize("n_partitions", [1, 3, 11])
def test_effects_are_those_of_one_machine_to_the_bit(
    spark: Any, model: poul.Poul, users: pd.DataFrame, n_partitions: int
) -> None:
    asked: dict[str, Any] = {"id": "user", "policy": ["T1", "T2"], "interval": 0.9, "support": True}
    # A key with three values: of eleven partitions most are empty.
    rows = spark.createDataFrame(users.assign(key=range(len(users)))).selectExpr("*", "key % 3 AS part")
    rows = rows.repartition(n_partitions, "part")
    same(poul.spark.effect(model, rows, **asked), model.effect(users, **asked), "user", "policy")


def test_no_rows_have_no_effects(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    rows = spark.createDataFrame(users).filter("false")
    assert poul.spark.effect(model, rows, id="user").count() == 0


def test_missing_values_and_null_ids_are_what_they_are_anywhere(
    spark: Any, model: poul.Poul, users: pd.DataFrame
) -> None:
    import pyarrow as pa

    table = pa.Table.from_pandas(users, preserve_index=False)
    for place, name in enumerate(table.column_names):
        if name in model.feature_names_in_ or name == "user":
            holes = [None if row % 7 == place % 7 else value for row, value in enumerate(table.column(name).to_pylist())]
            table = table.set_column(place, name, pa.array(holes, table.schema.field(name).type))
    table = table.append_column("key", pa.array(range(table.num_rows), pa.int64()))
    here = model.effect(table, id=["user", "key"], policy="T1").to_pandas()
    assert here["user"].isna().sum() > 100
    # From Arrow, since a frame of pandas has no nulls among numbers.
    rows = spark.createDataFrame(table.to_pylist(), schema=spark_schema(table)).repartition(3)
    same(poul.spark.effect(model, rows, id=["user", "key"], policy="T1"), here, "key")


def spark_schema(table: Any) -> Any:
    """The schema of an Arrow table."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema)


def test_a_filter_may_name_any_column_and_leave_a_partition_empty(
    spark: Any, model: poul.Poul, users: pd.DataFrame
) -> None:
    asked: dict[str, Any] = {"id": "user", "policy": "T1", "wide": True, "population": "key < 40"}
    keyed = users.assign(key=range(len(users)))
    rows = spark.createDataFrame(keyed).repartitionByRange(5, "key")
    here = model.effect(keyed, **asked)
    assert len(here) == 40
    same(poul.spark.effect(model, rows, **asked), here, "user")


def test_new_policies_travel(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    trees = model.policies_.to_dict()["policies"]
    new = {"new": trees["T1"], "other": trees["T2"]}
    here = model.effect(users, id="user", policies=new)
    assert set(here["policy"]) == {"new", "other"}
    same(poul.spark.effect(model, spark.createDataFrame(users), id="user", policies=new), here, "user", "policy")


def test_allocations_by_prices_are_those_of_one_machine(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    known = users.drop(columns=["gmv", "cost"])
    prices = model.allocate(known, maximize="gmv", budget={"cost": 100.0}, id="user").prices
    here = model.allocate(known, prices=prices, id="user").frame
    assert here["policy"].nunique() > 1
    rows = spark.createDataFrame(users).repartition(5)
    same(poul.spark.allocate(model, rows, prices=prices, id="user"), here, "user")


def test_who_may_have_a_policy_is_known_to_workers(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    known = users.drop(columns=["gmv", "cost"]).assign(age=[20 + row % 50 for row in range(len(users))])
    limits: dict[str, Any] = {"budget": {"cost": 100.0}, "eligible": {"T1": "age >= 40"}}
    prices = model.allocate(known, maximize="gmv", id="user", **limits).prices
    here = model.allocate(known, prices=prices, id="user").frame
    same(poul.spark.allocate(model, spark.createDataFrame(known), prices=prices, id="user"), here, "user")


def test_decimals_and_times_are_read_as_everywhere(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    name = next(name for name in model.feature_names_in_ if pd.api.types.is_float_dtype(users[name]))
    rows = spark.createDataFrame(users).selectExpr(
        *[f"CAST(`{own}` AS DECIMAL(18, 6)) AS `{own}`" if own == name else f"`{own}`" for own in users.columns]
    )
    here = model.effect(users.assign(**{name: users[name].round(6)}), id="user", policy="T1")
    same(poul.spark.effect(model, rows, id="user", policy="T1"), here, "user")


def test_what_is_wrong_is_told_before_anything_starts(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    from pyspark.sql import functions

    rows = spark.createDataFrame(users)
    lacking = model.feature_names_in_[0]
    with pytest.raises(poul.InputError, match=f"no column `{lacking}`"):
        poul.spark.effect(model, rows.drop(lacking), id="user")
    with pytest.raises(poul.InputError, match="no column `usr`"):
        poul.spark.effect(model, rows, id="usr")
    unreadable = {
        "array<string>": functions.array("user"),
        "map<string,string>": functions.create_map("user", "user"),
        "struct<user:string>": functions.struct("user"),
        "binary": functions.col("user").cast("binary"),
        "interval day to second": functions.expr("INTERVAL '1' DAY + INTERVAL '1' SECOND"),
    }
    for kind, column in unreadable.items():
        with pytest.raises(poul.InputError, match=f"`{lacking}` is of type {kind}, which cannot be read"):
            poul.spark.effect(model, rows.withColumn(lacking, column), id="policy")
    with pytest.raises(poul.InputError, match="several columns `user`"):
        poul.spark.effect(model, rows.select("*", functions.lit("x").alias("user")), id="user")
    with pytest.raises(poul.PoulError, match="T9"):
        poul.spark.effect(model, rows, id="user", policy="T9")
    with pytest.raises(poul.UsageError, match="which row is which"):
        poul.spark.effect(model, rows, id=[])
    with pytest.raises(poul.PoulError, match="level"):
        poul.spark.effect(model, rows, id="user", interval=90)
    with pytest.raises(poul.ArgumentError, match="no Spark data frame"):
        poul.spark.effect(model, users, id="user")
    with pytest.raises(poul.ArgumentError, match="polcy"):
        poul.spark.effect(model, rows, id="user", polcy="T1")  # type: ignore[call-arg]
    with pytest.raises(poul.NotFittedError):
        poul.spark.effect(poul.Poul(outcomes=["gmv"]), rows, id="user")


def test_a_worker_of_another_version_says_so(
    spark: Any, model: poul.Poul, users: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from poul.spark import _shipping

    monkeypatch.setattr(_shipping, "__version__", "9.9.9")
    scored = poul.spark.effect(model, spark.createDataFrame(users), id="user")
    with pytest.raises(Exception, match="the driver has poul 9.9.9, a worker"):
        scored.count()


def test_a_worker_without_the_package_says_so(spark: Any, model: poul.Poul, users: pd.DataFrame) -> None:
    scored = poul.spark.effect(model, spark.createDataFrame(users), id="user")

    def hide(batches: Any) -> Any:
        import sys

        # What a worker without it finds; it is reused, so that it must find it again.
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "poul"}
        sys.modules["poul"] = None  # type: ignore[assignment]
        try:
            yield from work(batches)
        finally:
            del sys.modules["poul"]
            sys.modules.update(hidden)

    from poul.spark._shipping import shipped

    work = shipped("effects", model, request="{}", policies=None, schema=b"")
    with pytest.raises(Exception, match="a worker has no poul"):
        spark.createDataFrame(users).mapInArrow(hide, scored.schema).count()
