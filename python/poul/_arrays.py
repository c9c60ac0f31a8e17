"""The vocabulary of EconML: arrays ``Y``, ``T``, ``X`` instead of a frame with roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import ArgumentError, InputError, UsageError
from ._frames import _pandas_column, numpy_column
from ._policies import combination, label
from ._poul import Column, Frame


class Arrays:
    """Outcomes, treatment and features as the columns of one frame, and the roles they play."""

    def __init__(
        self, Y: Any, T: Any, X: Any, *, names: Mapping[str, Sequence[str]] | None = None, **others: Any
    ) -> None:
        parts = {"Y": Y, "T": T, "X": X, **{name: value for name, value in others.items() if value is not None}}
        for name in ("Y", "T", "X"):
            if parts[name] is None:
                hint = "fit(Y, T, X=X) takes outcomes, treatments and features; fit(frame) a table with roles"
                raise ArgumentError(f"`{name}` is missing", hint)
        check_aligned(parts)
        # Arrays without names have those of training, where there was one.
        named = names or {}
        outcomes = columns_of("Y", Y, named.get("Y"))
        treatment = [_whole(column) for column in columns_of("T", T, named.get("T"))]
        features = columns_of("X", X, named.get("X"))
        self.roles: dict[str, Any] = {
            "outcome": [name for name, _ in outcomes],
            "features": [name for name, _ in features],
        }
        if len(treatment) == 1:
            self.roles["treatment"] = treatment[0][0]
        else:
            self.roles["treatment_columns"] = [name for name, _ in treatment]
        columns = [*outcomes, *treatment, *features]
        for role, name in (("weight", "sample_weight"), ("cluster", "groups")):
            if name in parts:
                columns.append((name, parts[name]))
                self.roles[role] = name
        self.frame = frame_of(columns)
        self.treatment = treatment

    def control(self) -> str | None:
        """The control where none is named: 0, or else the first label, as in EconML."""
        import numpy as np

        if len(self.treatment) != 1:
            return None
        try:
            labels = [label(value) for value in np.unique(np.asarray(self.treatment[0][1]))]
        except TypeError:  # Missing treatments, which are told when they are read.
            return None
        for name in ("0", "control"):
            if name in labels:
                return name
        return labels[0]


def features_frame(X: Any, names: Sequence[str]) -> Frame:
    """Features to score. An array without names has them in the order of training."""
    return frame_of(columns_of("X", X, names))


def policy_of(value: Any, columns: Sequence[str]) -> str:
    """The policy that a treatment means; of several columns, the combination of their values."""
    if not columns:
        return label(value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value)
    values = list(value) if not isinstance(value, str) and hasattr(value, "__len__") else [value]
    if len(values) != len(columns):
        raise UsageError(f"a treatment has {len(columns)} values, one for each of {', '.join(columns)}")
    return combination(dict(zip(columns, values)))


def columns_of(role: str, values: Any, names: Sequence[str] | None = None) -> list[tuple[str, Any]]:
    """The columns of an array, a series or a frame, by name."""
    import numpy as np

    if hasattr(values, "columns"):
        known = [str(name) for name in values.columns]
        if hasattr(values, "iloc"):
            return [(name, values.iloc[:, i]) for i, name in enumerate(known)]
        return [(name, values[name].to_numpy()) for name in known]
    if hasattr(values, "column_names"):
        return [(name, values[name].to_numpy()) for name in values.column_names]
    name = getattr(values, "name", None) or None
    array = values if hasattr(values, "iloc") else np.asarray(values)
    if array.ndim == 1:
        return [(str(name) if name is not None else names[0] if names else role, array)]
    if array.ndim != 2:
        raise InputError(f"`{role}` has {array.ndim} dimensions", "give one or two: rows, or rows × columns")
    width = array.shape[1]
    if names is not None and len(names) != width:
        raise InputError(f"`{role}` has {width} columns instead of {len(names)}", "give those of training, in order")
    if width == 1 and names is None:
        return [(role, array[:, 0])]
    # One block by columns is one copy; each column of it is then handed over as it is.
    array = np.asfortranarray(array)
    return [(names[i] if names else f"{role}{i}", array[:, i]) for i in range(width)]


def frame_of(columns: Sequence[tuple[str, Any]]) -> Frame:
    """Columns as one frame."""
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two columns are called `{twice}`", "give each column of X, T and Y its own name")

    def column(name: str, values: Any) -> Column:
        if hasattr(values, "iloc"):
            return _pandas_column(name, values)
        return numpy_column(name, values)

    return Frame.from_columns([column(name, values) for name, values in columns])


def check_aligned(parts: dict[str, Any]) -> None:
    """All parts have the same rows: as many, and by the same index where they have one."""
    lengths = {name: n_rows(part) for name, part in parts.items()}
    first = next(iter(lengths))
    for name, n in lengths.items():
        if n != lengths[first]:
            raise InputError(f"`{name}` has {n} rows, `{first}` has {lengths[first]}")
    indexed = [(name, part.index) for name, part in parts.items() if hasattr(part, "iloc")]
    for name, index in indexed[1:]:
        if not index.equals(indexed[0][1]):
            other = indexed[0][0]
            differs = next((i for i, (a, b) in enumerate(zip(index, indexed[0][1])) if a != b), 0)
            raise InputError(
                f"the index of `{name}` differs from that of `{other}` at row {differs} (counted from 0): "
                f"{index[differs]!r} and {indexed[0][1][differs]!r}",
                "bring the rows into the same order, or give arrays with .to_numpy()",
            )


def n_rows(part: Any) -> int:
    """How many rows a part has."""
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def _whole(column: tuple[str, Any]) -> tuple[str, Any]:
    """Booleans as 0 and 1, so that labels are those of whole numbers."""
    name, values = column
    dtype = getattr(values, "dtype", None)
    return (name, values.astype("int8")) if dtype is not None and getattr(dtype, "kind", "") == "b" else column
