"""No panic reaches the user: one that happens is an exception that says so, and strange input causes none."""

from __future__ import annotations

import datetime
import decimal
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import poul
from poul import _poul
from poul._progress import Listener

PANIC = """
import poul
from poul import _poul
from poul._progress import Listener
for listener in (None, Listener(False)):
    try:
        _poul._panic(listener)
    except Exception as error:
        print(type(error).__name__, error.hint is not None, str(error).splitlines()[0])
"""


@pytest.mark.skipif(not hasattr(_poul, "_panic"), reason="built without debug assertions")
def test_a_panic_is_an_exception_and_nothing_is_printed(tmp_path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    ran = subprocess.run([sys.executable, "-c", PANIC], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert ran.stdout == "InternalError True internal error: asked for\n" * 2 and ran.stderr == "" and ran.returncode == 0
    with pytest.raises(RuntimeError):
        _poul._panic(Listener(False))


N = 60


def plain() -> dict[str, object]:
    rng = np.random.default_rng(0)
    return {"policy": rng.choice(["control", "a"], N), "y": rng.normal(size=N), "x": rng.normal(size=N)}


def with_columns(**columns: object) -> dict[str, object]:
    return {**plain(), **columns}


STRANGE = {
    "no columns": {},
    "no rows": {name: values[:0] for name, values in plain().items()},
    "one row": {name: values[:1] for name, values in plain().items()},
    "columns of different lengths": with_columns(x=np.zeros(N - 1)),
    "two dimensions": with_columns(x=np.zeros((N, 2))),
    "no dimension": with_columns(x=np.array(1.0)),
    "complex": with_columns(x=np.zeros(N, dtype=complex)),
    "structured": with_columns(x=np.zeros(N, dtype=[("a", "i4")])),
    "half floats": with_columns(x=np.zeros(N, dtype=np.float16)),
    "long doubles": with_columns(x=np.arange(N, dtype=np.longdouble)),
    "other byte order": with_columns(x=np.arange(N, dtype=">f4")),
    "huge integers": with_columns(x=np.array([10**400] * N, dtype=object)),
    "largest integers": with_columns(x=np.full(N, 2**64 - 1, dtype=np.uint64)),
    "lone surrogates": with_columns(x=np.array(["\ud800"] * N, dtype=object)),
    "bytes": with_columns(x=np.array([b"a"] * N)),
    "days": with_columns(x=np.arange(N).astype("datetime64[D]")),
    "time differences": with_columns(x=np.arange(N).astype("timedelta64[s]")),
    "all nan": with_columns(x=np.full(N, np.nan)),
    "infinite features": with_columns(x=np.full(N, np.inf)),
    "infinite outcomes": with_columns(y=np.full(N, np.inf)),
    "outcomes of one value": with_columns(y=np.zeros(N)),
    "largest outcomes": with_columns(y=np.full(N, np.finfo(np.float64).max)),
    "treatments that are missing": with_columns(policy=np.array([None] * N, dtype=object)),
    "treatments that are numbers": with_columns(policy=np.linspace(0, 1, N)),
    "treatments of one label each": with_columns(policy=np.array([f"p{i}" for i in range(N)])),
    "names that are empty": {**plain(), "": np.zeros(N)},
    "names that are no text": {**plain(), 3: np.zeros(N)},
    "names with anything": {**plain(), "a\0b`\n": np.zeros(N)},
    "categories of none": pd.DataFrame(with_columns(x=pd.Categorical([None] * N))),
    "categories that are intervals": pd.DataFrame(with_columns(x=pd.cut(np.arange(N), 3))),
    "periods": pd.DataFrame(with_columns(x=pd.period_range("2025", periods=N, freq="D"))),
    "sparse": pd.DataFrame(with_columns(x=pd.arrays.SparseArray(np.zeros(N)))),
    "several levels of names": pd.DataFrame(np.zeros((N, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
    "mixed objects": pd.DataFrame(with_columns(x=[1, "a"] * (N // 2))),
    "dates as objects": pd.DataFrame(with_columns(x=[datetime.date(2025, 1, 1)] * N)),
    "decimals as objects": pd.DataFrame(with_columns(x=[decimal.Decimal("1.5")] * N)),
    "lists": pa.table(with_columns(x=[[1, 2]] * N)),
    "structs": pa.table(with_columns(x=[{"a": 1}] * N)),
    "decimals": pa.table(with_columns(x=pa.array([decimal.Decimal("1.5")] * N))),
    "binary": pa.table(with_columns(x=[b"a"] * N)),
    "maps": pa.table(with_columns(x=pa.array([[("a", 1)]] * N, type=pa.map_(pa.string(), pa.int32())))),
    "nothing but null": pa.table(with_columns(x=pa.nulls(N))),
    "an empty dictionary": pa.table(with_columns(x=pa.DictionaryArray.from_arrays(pa.array([None] * N, pa.int8()), pa.array([], pa.string())))),
    "months": pa.table(with_columns(x=pa.array([(1, 2, 3)] * N, type=pa.month_day_nano_interval()))),
    "run ends": pa.table(with_columns(x=pa.RunEndEncodedArray.from_arrays(pa.array([N], pa.int32()), pa.array([1.0])))),
    "two columns of one name": pa.Table.from_arrays([pa.array(plain()["y"])] * 3, names=["y", "y", "policy"]),
    "rows that are null": pa.array([{"policy": "a", "y": 1.0, "x": 1.0}, None]),
    "an array that is no table": pa.array([1, 2, 3]),
    "chunks that are no table": pa.chunked_array([[1, 2], [3]]),
    "a batch": pa.RecordBatch.from_pydict(plain()),
    "polars' objects": pl.DataFrame(with_columns(x=pl.Series([object()] * N, dtype=pl.Object))),
    "polars' lists": pl.DataFrame(with_columns(x=[[1]] * N)),
    "polars' enumerations": pl.DataFrame(with_columns(x=pl.Series(["u"] * N, dtype=pl.Enum(["u", "v"])))),
    "polars' series": pl.Series([1, 2]),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted() -> poul.Learner:
    return poul.Learner("ridge", outcomes="y", control="control").fit(plain())


@pytest.mark.parametrize("name", STRANGE)
def test_strange_input_is_used_or_refused(name: str, fitted: poul.Learner) -> None:
    data = STRANGE[name]
    asks = {
        "fit": lambda: poul.Learner("ridge", outcomes="y", control="control").fit(data),
        "weight": lambda: poul.Learner("ridge", outcomes="y", control="control", weight="x").fit(data),
        "stratum": lambda: poul.Learner("ridge", outcomes="y", stratum="x", design="stratified").fit(data),
        "check": lambda: poul.check(data, outcomes="y", permutations=9),
        "effect": lambda: fitted.effect(data, policy="a", id="x"),
        "evaluate": lambda: fitted.evaluate(data, draws=5),
        "columns": lambda: poul.Policies.from_columns(data, ["policy", "x"]),
    }
    for ask, work in asks.items():
        try:
            work()
        except (ValueError, TypeError) as error:
            # Of Python's own exceptions only those about text that is none.
            assert isinstance(error, (poul.PoulError, UnicodeError)), (ask, error)
        except BaseException as error:
            pytest.fail(f"{ask}: {type(error).__name__}: {error}")
