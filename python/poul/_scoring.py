"""Effects of rows: as a frame of the same kind, or as arrays by the vocabulary of EconML."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _arrays
from ._arguments import checked_names
from ._errors import ArgumentError, UsageError
from ._fitted import Fitted
from ._frames import Kind, array_of, give, take, with_index
from ._policies import PoliciesLike, Policy, policy_name, policy_names
from ._progress import Listener
from ._settings import to_json


class Scoring(Fitted):
    """A learner that gives effects."""

    @checked_names
    def effect(
        self,
        data: Any = None,
        *,
        policy: Policy | Sequence[Policy] | None = None,
        against: Policy | None = None,
        interval: float | None = None,
        policies: PoliciesLike | None = None,
        contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
        allow_unseen: bool = False,
        support: bool = False,
        wide: bool = False,
        min_rows: int | None = None,
        population: str | None = None,
        id: str | Sequence[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        X: Any = None,
        T0: Any = None,
        T1: Any = None,
    ) -> Any:
        """The effect of policies on each row: the same kind of frame back, one row for each row and policy, or one for each
        row where ``wide``.

        ``effect(X, T0=a, T1=b)`` gives an array instead: a number for each row, or one for each outcome.

        Parameters
        ----------
        policy
            One or more policies by name; a combination of factorial columns as a mapping. Default: those of ``policies``
            that are new, or all.
        against
            The policy compared with. Default: the control.
        interval
            A level, such as 0.9: columns `lower_…` and `upper_…` from the spread of the ensemble.
        policies
            Policies that were not in training: a file, a mapping or :class:`Policies`, over the same contexts.
        allow_unseen
            Whether to score policies with a context and action that no training row had together: by what each of the two
            does elsewhere, and as no effect where one of them is new. Adds the column `unseen_share`.
        support
            Adds the columns `unseen_share`, the share of the comparison on actions that no training row had in that
            context, and `support`, the share of the policy on those with at least ``min_rows`` training rows.
        wide
            One row for each row of ``data``, with a column for each outcome and policy: ``effect_<outcome>_<policy>``.
        min_rows
            Training rows from which an action counts as well seen in a context. Default: 100.
        out
            A `.parquet` or `.csv` file to write the effects to instead, in bounded memory.
        """
        model = self._fitted()
        data = data if data is not None else X
        if T0 is not None or T1 is not None or type(data).__module__.partition(".")[0] == "numpy":
            if policy is not None or against is not None:
                raise ArgumentError("`policy`, `against` and `T0`, `T1` exclude each other")
            found, _, _ = self._array_effects(data, T0, T1, None)
            return found
        frame, kind = take(data)
        set_, added = self._policies_beside(model, policies, contexts)
        request = effect_request(
            policy=policy_names(policy) or added,
            against=against,
            interval=interval,
            allow_unseen=allow_unseen,
            support=support,
            wide=wide,
            min_rows=min_rows,
            population=population,
            id=id,
            threads=self.threads,
        )
        out = None if out is None else os.fspath(out)
        with Listener(self.progress) as listener:
            found = model.effect(frame, to_json(request), listener, set_, out)
        if isinstance(found, int):
            return out
        result = give(found, kind)
        # Of rows that a filter left out nothing is known where ids stand for row numbers.
        return result if population is not None and "row" not in found.column_names else with_index(result, data, kind)

    @checked_names
    def effect_interval(
        self, X: Any = None, *, T0: Any = None, T1: Any = None, alpha: float = 0.05
    ) -> tuple[Any, Any]:
        """Bounds of the effects at level 1 − ``alpha``, from the spread of the ensemble."""
        if not 0 < alpha < 1:
            raise UsageError(f"alpha is {alpha}", "it lies between 0 and 1, such as 0.05")
        _, lower, upper = self._array_effects(X, T0, T1, 1 - alpha)
        return lower, upper

    @checked_names
    def average_effects(
        self,
        policy: Policy | Sequence[Policy] | None = None,
        *,
        against: Policy | None = None,
        policies: PoliciesLike | None = None,
        contexts: Any = None,
        interval: float = 0.9,
        allow_unseen: bool = False,
    ) -> list[dict[str, Any]]:
        """The average effects of policies over the training population, run or not, with their intervals.

        One entry for each outcome and policy: ``outcome``, ``policy``, ``against``, ``effect``, ``se``, ``interval`` and
        the training ``rows`` that got the policy. The mean of :meth:`effect` over the training rows is the same average.
        """
        model = self._fitted()
        set_, added = self._policies_beside(model, policies, contexts)
        base = None if against is None else policy_name(against)
        names = policy_names(policy) or added
        found: list[dict[str, Any]] = json.loads(model.averages(set_, names, base, interval, allow_unseen))
        return found

    @checked_names
    def components(
        self,
        *,
        against: Policy | None = None,
        policies: PoliciesLike | None = None,
        interval: float = 0.9,
        kind: Kind = "pandas",
    ) -> Any:
        """What switching one context of ``against`` (the control) to an action does to the average outcome.

        In a conjoint these are the average marginal component effects. A frame of the ``kind`` asked for, with ``effect``,
        ``se``, an interval for each component alone (``lower``, ``upper``) and a band that holds all of an outcome at once
        (``band_lower``, ``band_upper``).
        """
        if not 0 < interval < 1:
            raise UsageError(f"an interval of level {interval}", "a level lies between 0 and 1, such as 0.9")
        model = self._fitted()
        set_, _ = self._policies_beside(model, policies, None)
        found = model.components(set_, None if against is None else policy_name(against), interval)
        return give(found, kind)

    @checked_names
    def ate(self, X: Any = None, *, T0: Any = None, T1: Any = None) -> Any:
        """The mean effect over the rows of ``X``, or over the training population without ``X``.

        A number, or one for each outcome.
        """
        if X is None:
            return self._averages(T0, T1, 0.9)[:, 0].squeeze()[()]
        return self._array_effects(X, T0, T1, None)[0].mean(axis=0, dtype="float64")

    @checked_names
    def ate_interval(
        self, X: Any = None, *, T0: Any = None, T1: Any = None, alpha: float = 0.05
    ) -> tuple[Any, Any]:
        """Bounds of :meth:`ate` at level 1 − ``alpha``: a pair of numbers, or of one for each outcome."""
        if not 0 < alpha < 1:
            raise UsageError(f"alpha is {alpha}", "it lies between 0 and 1, such as 0.05")
        found = self._averages(T0, T1, 1 - alpha)
        # Rows of another population shift the average, not how sure it is.
        shift = 0.0 if X is None else self.ate(X, T0=T0, T1=T1) - found[:, 0].squeeze()[()]
        return found[:, 1].squeeze()[()] + shift, found[:, 2].squeeze()[()] + shift

    def _averages(self, T0: Any, T1: Any, level: float) -> Any:
        """Averages over the training population with their bounds, outcomes × 3."""
        import numpy as np

        columns = self.manifest_["roles"]["treatment_columns"]
        pair = [_arrays.policy_of(value, columns) for value in (0 if T0 is None else T0, 1 if T1 is None else T1)]
        found = self.average_effects(pair[1], against=pair[0], interval=level)
        return np.array([[own["effect"], *own["interval"]] for own in found])

    def _array_effects(self, X: Any, T0: Any, T1: Any, level: float | None) -> tuple[Any, Any, Any]:
        """Effects and bounds, rows × outcomes; of one outcome, rows."""
        import numpy as np

        model = self._fitted()
        if X is None:
            raise ArgumentError("`X` is missing", "effects are of rows: effect(X, T0=0, T1=1)")
        columns = self.manifest_["roles"]["treatment_columns"]
        frame = take(X)[0] if _is_path(X) else _arrays.features_frame(X, self.feature_names_in_)
        n_rows, outcomes = len(frame), self.outcomes_
        found = np.zeros((3, n_rows, len(outcomes)), dtype=np.float32)
        for rows, (against, policy) in _pairs(0 if T0 is None else T0, 1 if T1 is None else T1, columns, n_rows):
            if against == policy:
                continue
            part = frame if rows is None else _arrays.features_frame(_rows_of(X, rows), self.feature_names_in_)
            request = {"policy": [policy], "against": against, "interval": level, "id": [], "threads": self.threads}
            with Listener(self.progress) as listener:
                scored = model.effect(part, to_json(request), listener)
            for place, prefix in enumerate(("effect", "lower", "upper")[: 1 if level is None else 3]):
                values = [array_of(scored, f"{prefix}_{outcome}") for outcome in outcomes]
                found[place, slice(None) if rows is None else rows] = np.stack(values, axis=1)
        shaped = found[:, :, 0] if len(outcomes) == 1 else found
        return shaped[0], shaped[1], shaped[2]


def effect_request(
    *, policy: Sequence[str], against: Policy | None, id: str | Sequence[str] | None, **settings: Any
) -> dict[str, Any]:
    """Effects as the native part is asked for them; ``settings`` have the same names there."""
    return {
        "policy": list(policy),
        "against": None if against is None else policy_name(against),
        "id": [id] if isinstance(id, str) else None if id is None else list(id),
        **settings,
    }


def _is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def _pairs(T0: Any, T1: Any, columns: Sequence[str], n_rows: int) -> Iterator[tuple[Any, tuple[str, str]]]:
    """The comparisons asked for, each with its rows; None for all rows."""
    import numpy as np

    def by_row(value: Any) -> Any:
        array = np.asarray(value)
        deep = 1 if not columns else 2
        return array if array.ndim >= deep and array.shape[0] == n_rows and n_rows > 1 else None

    if by_row(T0) is None and by_row(T1) is None:
        yield None, (_arrays.policy_of(T0, columns), _arrays.policy_of(T1, columns))
        return

    def names(value: Any) -> list[str]:
        rows = by_row(value)
        if rows is None:
            return [_arrays.policy_of(value, columns)] * n_rows
        rows = rows if columns else rows.reshape(n_rows)
        return [_arrays.policy_of(one, columns) for one in rows]

    rows_of: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(zip(names(T0), names(T1))):
        rows_of.setdefault(pair, []).append(row)
    for pair, rows in rows_of.items():
        yield np.array(rows), pair


def _rows_of(X: Any, rows: Any) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "column_names") else X[rows]
