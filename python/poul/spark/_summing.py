"""Evaluations and checks of Spark data frames: every partition is summed up where it is, and sums merge."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _poul
from .._assessment import evaluation_request
from .._evaluation import Evaluation
from .._errors import InputError
from .._policies import PoliciesLike, Policy
from .._progress import Listener
from .._settings import roles_of, to_json
from ._frames import chosen, needs_spark, no_rows, readable
from ._shipping import shipped

if TYPE_CHECKING:
    from .._learner import Learner

#: Tasks that merge what partitions gave: the driver gets so many rows of it and no more.
_MERGERS = 4


class SummedEvaluation(Evaluation):
    """An evaluation from sums: as :class:`poul.Evaluation`, without what needs all rows at once.

    Every entry of ``results`` has ``bounds``: how far `auuc`, `qini`, `rate_autoc` and `rate_qini` may be from those of the rows
    one by one. All other numbers are exact.
    """

    @property
    def notes(self) -> list[str]:
        """What is left out, and why."""
        notes: list[str] = self._document["notes"]
        return notes


def evaluate(
    model: Learner,
    data: Any,
    *,
    policy: Policy | Sequence[Policy] | None = None,
    against: Policy | None = None,
    policies: PoliciesLike | None = None,
    contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
    allow_unseen: bool = False,
    level: float = 0.9,
    **roles: Any,
) -> SummedEvaluation:
    """How good the effects are on the rows of a Spark data frame, which none of them leaves.

    The rows are read twice: first for the sizes of arms and how effects are distributed, then for everything else. Partitions give
    sums, so that neither their number nor the order of rows matters. Averages of outcomes and effects, the calibration slope, R-loss,
    R-score and average effects by the doubly robust score are those of :meth:`poul.Learner.evaluate` (where averages there are taken
    with a column of predictions, or without any outcome model); AUUC, Qini, RATE and the gain curve are of some thousand buckets of
    rows with about the same effect, each with a bound on what that can have changed. The arguments are those of the method::

        found = poul.spark.evaluate(model, test, policy=["T1", "T2"])
        found.results[0]["auuc"], found.results[0]["bounds"]["auuc"]

    Parameters
    ----------
    policy
        The policies to measure. Default: every policy that the rows have and the model can score.
    level
        Level of the intervals of average effects.
    roles
        Roles of columns that differ from those of the fit.
    """
    native = model._fitted()
    needs_spark(data)
    model._check_roles(roles, "evaluate")
    set_, _ = model._policies_beside(native, policies, contexts)
    own = roles_of(roles)
    asked: dict[str, Any] = {"policy": policy, "against": against, "allow_unseen": allow_unseen, "level": level}
    asked |= {"draws": 0, "checks": False}
    request = to_json(evaluation_request(own, **asked))
    fitted = [name for name in _named(model.manifest_["roles"]) if name in data.columns]
    chosen(data, [*model.feature_names_in_, *fitted, *_named(own)])
    table = chosen(data, readable(data))
    with Listener(model.progress) as listener:
        found, columns = _poul.Parts.columns(native, no_rows(table), request, listener, set_)
    rows = chosen(data, columns)
    request = to_json(evaluation_request(json.loads(found), threads=1, **asked))
    job: dict[str, Any] = {"request": request, "policies": None if policies is None else set_.to_json()}
    outline = _summed(rows, shipped("outline", model, **job), "merged_outlines")
    sums = _summed(rows, shipped("sums", model, outline=outline, **job), "merged_sums")
    parts = _poul.Parts(native, request, set_)
    return SummedEvaluation(parts.evaluation(outline, sums), "pyarrow")


def _summed(rows: Any, work: Any, how: str) -> bytes:
    """What ``work`` gives of every partition, merged: on the workers first, then here."""
    parts = rows.mapInArrow(work, "part binary").repartition(_MERGERS)
    merged = parts.mapInArrow(shipped("merged", None, how=how), "part binary")

    def contents() -> Iterator[bytes]:
        for row in merged.toLocalIterator():
            yield bytes(row["part"])

    found: bytes | None = getattr(_poul, how)(contents())
    if found is None:
        raise InputError("the data frame has no rows")
    return found


def _named(roles: Mapping[str, Any]) -> list[str]:
    """The columns that roles name; not those that a pattern or an expression speaks of."""
    names: list[str] = []
    for role in ("treatment", "weight", "cluster", "stratum"):
        names += [roles[role]] if roles.get(role) else []
    for role in ("treatment_columns", "outcome"):
        value = roles.get(role) or []
        names += [value] if isinstance(value, str) else value
    return [*names, *(roles.get("prediction") or {}).values()]
