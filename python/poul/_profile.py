"""Validates and profiles a table: can effects that are estimated from it be trusted?"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _html, _poul, _text
from ._arguments import check_roles
from ._frames import take
from ._policies import PoliciesLike, context_weights, native
from ._progress import Listener
from ._settings import roles_of, to_json

#: Arms shown; the others are counted.
_SHOWN = 15


class Profile:
    """What a check found; ``to_dict`` is the document of ``poul check --json``."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = dict(document)

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return self._document

    @property
    def rows(self) -> int:
        """Rows that pass the population filter."""
        rows: int = self._document["rows"]
        return rows

    @property
    def findings(self) -> list[dict[str, str]]:
        """What to look at, the most serious first: `level` (problem, warning or note), `what` and `hint`."""
        findings: list[dict[str, str]] = self._document["findings"]
        return findings

    @property
    def problems(self) -> list[dict[str, str]]:
        """The findings for which effects cannot be trusted until they are resolved."""
        return [one for one in self.findings if one["level"] == "problem"]

    def table(self) -> list[dict[str, Any]]:
        """Each policy that has rows, the largest first: rows, shares, the mean of every outcome; ready for
        ``pandas.DataFrame``."""
        outcomes = [one["outcome"] for one in self._document["outcomes"]]
        rows = []
        for arm in sorted(self._document["arms"], key=lambda arm: (-arm["rows"], arm["policy"])):
            row = {name: arm[name] for name in ("policy", "rows", "units", "share", "declared")}
            means = zip(outcomes, arm["outcome_means"])
            rows.append({**row, **{f"mean_{outcome}": mean for outcome, mean in means}})
        return rows

    def _size(self) -> str:
        return f"{self.rows:,} rows, {self._document['encoded_columns']:,} encoded columns"

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        rows, control = self.table(), self._document["control"]
        header = [name.replace("_", " ") for name in rows[0]] if rows else ["policy"]
        cells = [[_text.cell(value) for value in row.values()] for row in rows[:_SHOWN]]
        for row, shown in zip(rows, cells):
            shown[0] += " *" if row["policy"] == control else ""
        return header, cells

    def _facts(self) -> list[str]:
        facts = []
        ratio, balance = self._document["sample_ratio"], self._document["balance"]
        if ratio is not None:
            facts.append(
                f"Sample ratio against declared shares: χ²({ratio['degrees']}) = {ratio['statistic']:.2f}, "
                f"p = {ratio['p_value']:.4g}"
            )
        if balance is not None:
            facts.append(f"Balance: permutation test p = {balance['p_value']:.3f} ({balance['permutations']} permutations)")
        findings = [f"{one['level']}: {one['what']}\n    {one['hint']}" for one in self.findings]
        return [*facts, *(findings or ["Nothing to worry about."])]

    def __repr__(self) -> str:
        more = len(self._document["arms"]) - _SHOWN
        lines = [self._size(), ""]
        lines += [_text.table(*self._cells()), *([f"and {more:,} more policies"] if more > 0 else [])]
        return "\n".join([*lines, *(["* control"] if self._document["control"] else []), "", *self._facts()])

    def _repr_html_(self) -> str:
        return _html.table(*self._cells()) + _html.items(self._facts())


def check(
    data: Any,
    *,
    policies: PoliciesLike | None = None,
    contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
    shares: Mapping[str, float] | None = None,
    permutations: int = 499,
    seed: int = 3407,
    threads: int | None = None,
    progress: bool | None = None,
    **roles: Any,
) -> Profile:
    """Validates and profiles a table: arms, sample ratio, balance, coverage, suspicious columns.

    Parameters
    ----------
    shares
        Assignment shares as declared, for the sample-ratio test; they are normalised. Default: no test.
    permutations
        Permutations of the balance test; 0 for none.
    roles
        The roles of columns, as in :meth:`Learner.fit`.

    >>> import poul, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rides = poul.simulate(folder, rows=2000, features=22)
    ...     profile = poul.check(rides.train, policies=rides.policies, outcomes=rides.outcomes, permutations=99)
    >>> profile.rows, profile.problems
    (2000, [])
    """
    check_roles(roles, check)
    request = {
        "fit": {
            "roles": roles_of(roles),
            "learner": None,
            "contexts": None if policies is not None else context_weights(contexts),
            "seed": seed,
            "threads": threads,
        },
        "shares": dict(shares or {}),
        "permutations": permutations,
    }
    with Listener(progress) as listener:
        return Profile(json.loads(_poul.check(take(data)[0], to_json(request), listener, native(policies, contexts))))
