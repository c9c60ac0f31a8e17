"""Frames in and out: by the Arrow C data interface, or from the memory of NumPy columns. No package is required."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from ._errors import ArgumentError, InputError, UsageError
from ._poul import Column, Frame

Kind = Literal["pandas", "polars", "pyarrow", "duckdb", "path", "mapping", "arrow"]


class Table:
    """A table of results that belongs to no frame library; it speaks the Arrow C stream interface."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._frame.column_names

    def __len__(self) -> int:
        return len(self._frame)

    def __repr__(self) -> str:
        return f"Table({len(self):,} rows: {', '.join(self.columns)})"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """As a pandas frame."""
        return give(self._frame, "pandas")

    def to_polars(self) -> Any:
        """As a polars frame."""
        return give(self._frame, "polars")

    def to_arrow(self) -> Any:
        """As a pyarrow table."""
        return give(self._frame, "pyarrow")


def take(data: Any) -> tuple[Frame, Kind]:
    """A frame, a relation or a path as the native part reads it, and which kind it was."""
    kind = kind_of(data)
    if kind == "path":
        return Frame.open(os.fspath(data)), kind
    if kind == "pandas":
        return _from_pandas(data), kind
    if kind == "mapping":
        return Frame.from_columns([numpy_column(str(name), values) for name, values in data.items()]), kind
    if kind == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if kind == "duckdb" and not hasattr(data, "__arrow_c_stream__"):
        data = data.arrow()
    return Frame.from_arrow(data), kind


def kind_of(data: Any) -> Kind:
    """Whose frame it is."""
    if isinstance(data, (str, os.PathLike)):
        return "path"
    packages = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    packages |= {"duckdb"} if "_duckdb" in packages else set()
    if "pandas" in packages and not hasattr(data, "columns"):
        raise ArgumentError("a pandas Series is no table", "give a DataFrame")
    for kind in ("pandas", "polars", "pyarrow", "duckdb"):
        if kind in packages:
            return kind
    if isinstance(data, Mapping):
        return "mapping"
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return "arrow"
    raise ArgumentError(
        f"`{type(data).__name__}` is no table",
        "give a pandas, polars or pyarrow frame, a DuckDB relation, a mapping of arrays, or the path of a file",
    )


def give(frame: Frame, kind: Kind) -> Any:
    """The same kind of frame back."""
    if kind == "pandas":
        return _to_pandas(frame)
    if kind == "polars":
        import polars

        return polars.DataFrame(frame)
    if kind in ("pyarrow", "duckdb"):
        import pyarrow

        table = pyarrow.table(frame)
        if kind == "pyarrow":
            return table
        import duckdb

        return duckdb.from_arrow(table)
    if kind == "mapping":
        return {name: array_of(frame, name) for name in frame.column_names}
    return Table(frame)


def array_of(frame: Frame, name: str) -> Any:
    """A column as a NumPy array."""
    import numpy as np

    column = frame.column(name)
    if isinstance(column, list):
        return np.array(column, dtype=object)
    dtype, values = column
    return np.frombuffer(values, dtype=dtype)


def numpy_column(name: str, values: Any) -> Column:
    """A one-dimensional array, or a list, as a column."""
    import numpy as np

    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"column `{name}`: has {array.ndim} dimensions", "give one value for each row")
    kind, dtype = array.dtype.kind, array.dtype
    if kind == "b":
        return Column.from_numpy(name, np.ascontiguousarray(array).view(np.uint8), "bool")
    if kind in "iuf":
        if kind == "f" and dtype.itemsize not in (4, 8):
            dtype = np.dtype(np.float32 if dtype.itemsize == 2 else np.float64)
        dtype = dtype.newbyteorder("=")
        return Column.from_numpy(name, np.ascontiguousarray(array, dtype=dtype), dtype.name)
    if kind == "M":
        unit = np.datetime_data(dtype)[0]
        if unit not in ("s", "ms", "us", "ns"):
            array, unit = array.astype("datetime64[s]"), "s"
        return Column.from_times(name, np.ascontiguousarray(array).view(np.int64), unit)
    if kind == "m":
        return numpy_column(name, array / np.timedelta64(1, "s"))
    if kind == "O":
        # What is not equal to itself is missing: NaN and NaT.
        missing = bytes(value is None or (isinstance(value, float) and value != value) for value in array)
        return Column.from_objects(name, array.tolist(), missing)
    if kind in "US":
        return Column.from_objects(name, array.astype(str).tolist(), None)
    raise InputError(f"column `{name}`: has dtype {dtype}", "columns hold numbers, booleans, text or times")


def _from_pandas(data: Any) -> Frame:
    names = [str(name) for name in data.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two columns are called `{twice}`", "give each column its own name")
    return Frame.from_columns([_pandas_column(str(name), series) for name, series in data.items()])


def _pandas_column(name: str, series: Any) -> Column:
    import numpy as np

    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return Column.from_objects(name, series.tolist(), bytes(series.isna().to_numpy(dtype=np.uint8)))
        return numpy_column(name, series.to_numpy())
    if dtype.name == "category":
        categories = _pandas_column(name, series.cat.categories.to_series())
        codes = np.ascontiguousarray(series.cat.codes.to_numpy(), dtype=np.int32)
        return Column.from_codes(name, codes, categories)
    if getattr(dtype, "tz", None) is not None:
        return numpy_column(name, series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    if hasattr(series.array, "__arrow_array__"):
        try:
            array = series.array.__arrow_array__()
        except ImportError:
            pass
        else:
            return Column.from_arrow(name, array)
    if getattr(dtype, "kind", "O") in "iufb":
        return numpy_column(name, series.to_numpy(dtype=np.float64, na_value=np.nan))
    return Column.from_objects(name, series.astype(object).tolist(), bytes(series.isna().to_numpy(dtype=np.uint8)))


def _to_pandas(frame: Frame) -> Any:
    import pandas

    try:
        import pyarrow
    except ImportError:
        return pandas.DataFrame({name: array_of(frame, name) for name in frame.column_names})
    return pyarrow.table(frame).to_pandas()


def with_index(result: Any, like: Any, kind: Kind) -> Any:
    """Effects of a pandas frame keep the index of their rows, so that they can be assigned to it."""
    if kind != "pandas":
        return result
    if "row" in result.columns and "row" not in like.columns:
        return result.set_index(like.index.take(result["row"].to_numpy()))
    return result.set_index(like.index.repeat(len(result) // max(len(like), 1)))


def path_or_none(path: Any, argument: str) -> str | None:
    """A path as text."""
    if path is None or isinstance(path, (str, os.PathLike)):
        return None if path is None else os.fspath(path)
    raise UsageError(f"`{argument}` must be a path")
