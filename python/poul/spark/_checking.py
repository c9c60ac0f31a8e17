"""A check of a Spark data frame, from sums of its partitions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from .. import _poul
from .._arguments import check_roles
from .._errors import ArgumentError
from .._policies import PoliciesLike, context_weights, native
from .._profile import Profile
from .._progress import Listener
from .._settings import roles_of, to_json
from ._frames import chosen, needs_spark, no_rows, readable
from ._shipping import shipped
from ._summing import _named, _summed


class SummedProfile(Profile):
    """What a check found from sums: as :class:`poul.Profile`, without the permutation test and what else needs rows."""

    @property
    def features(self) -> list[dict[str, Any]]:
        """Each feature: `column`, the share of `missing` values, `mean` and `sd` of numbers."""
        features: list[dict[str, Any]] = self._document["features"]
        return features

    @property
    def notes(self) -> list[str]:
        """What is left out, and why."""
        notes: list[str] = self._document["notes"]
        return notes

    def _size(self) -> str:
        return f"{self.rows:,} rows, {len(self.features):,} features"


def check(
    data: Any,
    *,
    policies: PoliciesLike | None = None,
    contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
    shares: Mapping[str, float] | None = None,
    **roles: Any,
) -> SummedProfile:
    """Checks a Spark data frame: arms, the sample ratio, outcomes, coverage of atoms, missing values, and how far the means of
    numbers differ between policies. No row leaves the data frame; counts and means are those of :func:`poul.check`.

    Parameters
    ----------
    policies
        The policies. Without any, they are the values of the treatment column, or the combinations of treatment columns, that the
        rows have.
    shares
        Assignment shares as declared, for the sample-ratio test; they are normalised. Default: no test.
    roles
        The roles of columns, as in :meth:`poul.Learner.fit`.
    """
    needs_spark(data)
    check_roles(roles, check)
    own = roles_of(roles)
    named = _named(own)
    chosen(data, named)
    request = to_json(
        {
            "fit": {
                "roles": own,
                "learner": None,
                "contexts": None if policies is not None else context_weights(contexts),
                "seed": 3407,
                "threads": None,
            },
            "shares": dict(shares or {}),
            "permutations": 0,
        }
    )
    set_ = native(policies, contexts)
    if set_ is None:
        set_ = _seen(data, own, context_weights(contexts))
    table = chosen(data, readable(data))
    with Listener(False) as listener:
        parts = _poul.CheckedParts(no_rows(table), request, listener, set_)
    rows = chosen(data, parts.columns)
    sums = _summed(rows, shipped("checks", None, request=request, policies=set_.to_json(), table=_schema(table)), "merged_checks")
    return SummedProfile(json.loads(parts.profile(sums)))


def _seen(data: Any, roles: Mapping[str, Any], contexts: Mapping[str, float] | None) -> _poul.PolicySet:
    """The policies that the rows speak of: the different values of their treatment."""
    columns = roles.get("treatment_columns") or [roles.get("treatment") or "policy"]
    found = chosen(data, columns).distinct().dropna().limit(_MOST_POLICIES + 1).collect()
    if len(found) > _MOST_POLICIES:
        raise ArgumentError(
            f"the treatment has more than {_MOST_POLICIES:,} different values", "name its column, or define policies"
        )
    import pyarrow as pa

    table = pa.table({name: [row[name] for row in found] for name in columns})
    with Listener(False) as listener:
        seen = _poul.PolicySet.from_frame(_poul.Frame.from_arrow(table), list(columns), dict(contexts or {}) or None, listener)
    if roles.get("treatment_columns"):
        return seen
    # One column without definitions: every value is a policy, and an action of its own.
    (column,) = columns
    tree = {"contexts": {column: 1}, "policies": {action: {column: action} for action in seen.actions}}
    return _poul.PolicySet.from_json(json.dumps(tree))


def _schema(rows: Any) -> bytes:
    from pyspark.sql.pandas.types import to_arrow_schema

    content: bytes = to_arrow_schema(rows.schema).serialize().to_pybytes()
    return content


#: Different values of the treatment that are read to the driver.
_MOST_POLICIES = 10_000
