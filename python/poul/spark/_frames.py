"""Spark's columns as the model reads them, and results as Spark reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._errors import ArgumentError, InputError, UsageError
from .._poul import Frame


def needs_spark(data: Any) -> None:
    """An error if it is no Spark data frame, classic or Connect."""
    bases = type(data).__mro__
    if not any(base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame" for base in bases):
        raise ArgumentError(
            f"`{type(data).__name__}` is no Spark data frame", "for other frames call the method of the model"
        )


def chosen(data: Any, needed: Iterable[str], *, everything: bool = False) -> Any:
    """The data frame with the columns that are needed; with every column that can be read where an expression may name
    any."""
    types = {field.name: field.dataType for field in data.schema.fields}
    repeated = len(data.columns) - len(types)
    names = list(dict.fromkeys(needed))
    for name in names:
        if name not in types:
            known = ", ".join(f"`{own}`" for own in sorted(types))
            raise InputError(f"the data frame has no column `{name}`", f"it has {known}")
        if not _is_readable(types[name]):
            kind = types[name].simpleString()
            raise InputError(
                f"column `{name}` is of type {kind}, which cannot be read",
                "cast it, or take its parts out into columns of their own",
            )
    if everything:
        names = readable(data)
    if repeated and any(data.columns.count(name) > 1 for name in names):
        name = next(name for name in names if data.columns.count(name) > 1)
        raise InputError(f"the data frame has several columns `{name}`", "rename or drop all but one")
    return data.select(*[_quoted(name) for name in names])


def readable(data: Any) -> list[str]:
    """The columns of types that can be read."""
    return [field.name for field in data.schema.fields if _is_readable(field.dataType)]


def no_rows(data: Any) -> Frame:
    """What the batches of a data frame look like, without a row: what is wrong with columns is found on the driver."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return Frame.from_arrow(to_arrow_schema(data.schema).empty_table()).part()


def result_schema(found: Any, data: Any, ids: Sequence[str]) -> tuple[Any, Any]:
    """The Arrow schema of results, of types that Spark has, and the same as Spark's. Ids keep the types they have."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    own = {field.name: field.dataType for field in data.schema.fields if field.name in ids}
    arrow, spark = [], []
    for field in found:
        kind = pa.string() if _is_text(field.type) else field.type
        arrow.append(pa.field(field.name, kind))
        spark.append(StructField(field.name, own.get(field.name) or from_arrow_type(kind), True))
    return pa.schema(arrow), StructType(spark)


def names_of(names: str | Sequence[str]) -> list[str]:
    """One name or several; at least one."""
    found = [names] if isinstance(names, str) else list(names)
    if not found:
        raise UsageError("no column says which row is which", 'name one: id="user"')
    return found


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _is_readable(kind: Any) -> bool:
    from pyspark.sql import types

    # Decimals are read as numbers of double precision, as everywhere.
    plain = (
        types.NumericType,
        types.BooleanType,
        types.StringType,
        types.DateType,
        types.TimestampType,
        types.TimestampNTZType,
    )
    return isinstance(kind, plain)
