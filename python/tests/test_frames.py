"""Frames of every kind give the same model and the same effects, and come back as what they were."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import poul
from conftest import QUICK
from poul._frames import take


def of_kind(kind: str, path: str) -> object:
    table = pq.read_table(path)
    return {
        "pandas": lambda: table.to_pandas(),
        "pandas-arrow": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.read_parquet(path),
        "polars-lazy": lambda: pl.scan_parquet(path),
        "pyarrow": lambda: table,
        "batches": lambda: pa.Table.from_batches(table.to_batches(max_chunksize=333)),
        "reader": lambda: table.to_reader(),
        "duckdb": lambda: duckdb.from_parquet(str(path)),
        "path": lambda: path,
        "folder": lambda: str(path),
    }[kind]()


KINDS = ["pandas", "pandas-arrow", "polars", "polars-lazy", "pyarrow", "batches", "reader", "duckdb", "path"]


def values(result: object, column: str) -> np.ndarray:
    if isinstance(result, duckdb.DuckDBPyRelation):
        result = result.fetchnumpy()
        return np.asarray(result[column])
    if isinstance(result, poul.Table):
        result = result.to_pandas()
    if isinstance(result, dict):
        return np.asarray(result[column])
    return np.asarray(result[column])


@pytest.fixture(scope="module")
def reference(model: poul.Poul, rides: poul.Simulation) -> pd.DataFrame:
    return model.effect(rides.test, policy="T1", interval=0.9).to_pandas()


@pytest.mark.parametrize("kind", KINDS)
def test_effects_are_the_same_and_of_the_same_kind(
    kind: str, model: poul.Poul, rides: poul.Simulation, reference: pd.DataFrame
) -> None:
    found = model.effect(of_kind(kind, rides.test), policy="T1", interval=0.9)
    classes = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.Table,
        "batches": pa.Table,
        "reader": pa.Table,
        "duckdb": duckdb.DuckDBPyRelation,
        "path": poul.Table,
    }
    assert isinstance(found, classes[kind.partition("-")[0] if kind != "batches" else kind])
    for column in ("effect_gmv", "lower_gmv", "upper_cost"):
        np.testing.assert_array_equal(values(found, column), reference[column].to_numpy())


@pytest.mark.parametrize("kind", ["pandas", "polars", "batches", "duckdb"])
def test_a_model_does_not_know_where_its_rows_came_from(kind: str, model: poul.Poul, rides: poul.Simulation) -> None:
    learner = poul.Poul(outcomes=rides.outcomes, control="control", **QUICK)
    learner.fit(of_kind(kind, rides.train), policies=rides.policies)
    assert tensors(learner) == tensors(model)
    ours, theirs = learner.manifest_, model.manifest_
    for name in ("data", "encoder"):
        ours.pop(name), theirs.pop(name)
    assert ours == theirs


def tensors(learner: poul.Learner) -> bytes:
    content = learner._fitted().to_bytes()
    return content[8 + int.from_bytes(content[:8], "little") :]


def test_the_index_of_pandas_is_kept(model: poul.Poul, rides: poul.Simulation) -> None:
    frame = pd.read_parquet(rides.test).sample(frac=1, random_state=0)
    one = model.effect(frame, policy="T1")
    assert one.index.equals(frame.index)
    frame["tau"] = one["effect_gmv"]
    assert frame["tau"].notna().all()
    two = model.effect(frame, policy=["T1", "T2"])
    assert two.index.equals(frame.index.repeat(2))
    np.testing.assert_array_equal(two[two["policy"] == "T1"]["effect_gmv"], one["effect_gmv"])


def test_effects_go_to_a_file_in_bounded_memory(model: poul.Poul, rides: poul.Simulation, tmp_path) -> None:
    out = tmp_path / "effects.parquet"
    assert model.effect(rides.test, policy="T1", out=out) == str(out)
    assert len(pd.read_parquet(out)) == rides.test_rows


def mixed_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "policy": pd.Categorical(rng.choice(["control", "a", "b"], n)),
            "y": rng.normal(size=n),
            "f32": rng.normal(size=n).astype(np.float32),
            "i8": rng.integers(0, 100, n).astype(np.int8),
            "flag": rng.random(n) < 0.5,
            "word": rng.choice(["x", "y", None], n),
            "object": pd.Series(rng.choice(["u", "v"], n), dtype=object),
            "nullable": pd.array(rng.choice([1, 2, None], n), dtype="Int64"),
            "nullable_flag": pd.array(rng.choice([True, False, None], n), dtype="boolean"),
            "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="h"),
            "zoned": pd.Timestamp("2025-01-01", tz="Asia/Tokyo") + pd.to_timedelta(rng.integers(0, 1000, n), unit="h"),
            "number_or_none": pd.Series(rng.choice([1.5, 2.5, None], n), dtype=object),
            "level": pd.Categorical(rng.choice([10, 20], n)),
        }
    )
    frame.loc[3, "f32"] = np.nan
    frame.loc[5, "day"] = pd.NaT
    return frame


def test_every_dtype_of_pandas_is_read_as_arrow_has_it() -> None:
    frame = mixed_frame()
    native, _ = take(frame)
    ours = pa.table(native)
    theirs = pa.Table.from_pandas(frame, preserve_index=False)
    assert ours.column_names == theirs.column_names
    for name in ours.column_names:
        a, b = ours[name].to_pylist(), theirs[name].to_pylist()
        if name == "f32":
            a = [None if value != value else value for value in a]
        if name == "zoned":
            b = [value.astimezone(__import__("datetime").timezone.utc).replace(tzinfo=None) for value in b]
        assert a == b, name


def test_pyarrow_and_pandas_are_not_needed(tmp_path) -> None:
    code = """
import sys
for name in ("pyarrow", "pandas", "polars"):
    sys.modules[name] = None
import numpy as np, poul
rng = np.random.default_rng(0)
data = {"policy": rng.choice(["control", "a"], 300), "y": rng.normal(size=300), "x": rng.normal(size=300)}
model = poul.Learner("ridge", outcomes="y").fit(data)
found = model.effect(data, policy="a")
assert list(found) == ["row", "policy", "against", "effect_y"], list(found)
assert found["effect_y"].dtype == np.float32 and found["policy"][0] == "a"
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


HANDOVER = """
import resource, sys, time
import numpy as np
kind = sys.argv[1]
block = np.full((100, 1_000_000), 1.5, dtype=np.float32)
if kind == "pandas":
    import pandas as pd
    data = pd.DataFrame(block.T, copy=False)
elif kind == "polars":
    import polars as pl
    data = pl.DataFrame({f"x{i}": block[i] for i in range(100)})
else:
    import pyarrow as pa
    data = pa.table({f"x{i}": block[i] for i in range(100)})
from poul._frames import take
import gc
take(data.head(10) if kind != "pyarrow" else data.slice(0, 10))
gc.collect()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, times = peak(), []
for _ in range(5):
    # Of this process alone, which shares its processors with others.
    start = time.process_time()
    frame, _ = take(data)
    times.append(time.process_time() - start)
assert len(frame) == 1_000_000 and len(frame.column_names) == 100
print(peak() - before, min(times))
"""


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_handing_over_copies_nothing(kind: str, tmp_path) -> None:
    run = subprocess.run([sys.executable, "-c", HANDOVER, kind], check=True, capture_output=True, text=True, cwd=tmp_path)
    megabytes, seconds = map(float, run.stdout.split())
    print(f"{kind}: {megabytes:.1f} MB, {1000 * seconds:.1f} ms for 1,000,000 × 100 float32")
    assert megabytes < 20, "400 MB would be a copy"
    assert seconds < 0.05


def test_wide_effects_have_one_row_for_each_row(model: poul.Poul, rides: poul.Simulation) -> None:
    data = pd.read_parquet(rides.test).iloc[10:40]
    long = model.effect(data, policy=["T1", "T2"], interval=0.9)
    wide = model.effect(data, policy=["T1", "T2"], interval=0.9, wide=True)
    assert wide.index.equals(data.index) and wide.index.is_unique and len(long) == 2 * len(wide)
    for policy in ("T1", "T2"):
        own = long[long["policy"] == policy]
        for name in ("effect_gmv", "lower_gmv", "upper_cost"):
            np.testing.assert_array_equal(wide[f"{name}_{policy}"], own[name])
    assert data.assign(**wide[["effect_gmv_T1"]])["effect_gmv_T1"].notna().all()


def test_no_rows_have_no_effects(model: poul.Poul, rides: poul.Simulation) -> None:
    data = pd.read_parquet(rides.test)
    for empty in (data.iloc[:0], pl.DataFrame(data).head(0), pa.Table.from_pandas(data).slice(0, 0)):
        for wide in (False, True):
            found = model.effect(empty, policy="T1", wide=wide)
            assert len(found) == 0
    assert model.effect(data.iloc[:0], policy="T1").columns.tolist() == model.effect(data.head(3), policy="T1").columns.tolist()


def test_support_counts_atoms_by_the_rows_asked_for(model: poul.Poul, rides: poul.Simulation) -> None:
    data = pd.read_parquet(rides.test).head(5)
    few, many = (model.effect(data, policy="T1", support=True, min_rows=n)["support"].iloc[0] for n in (1, 10**9))
    assert few == 1 and many == 0
