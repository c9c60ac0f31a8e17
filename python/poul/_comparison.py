"""Learners side by side on the same test rows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _html, _poul, _text
from ._arguments import check_roles
from ._errors import ArgumentError
from ._evaluation import METRICS
from ._frames import take
from ._learner import Learner
from ._policies import PoliciesLike, Policy, context_weights, native, policy_names
from ._progress import Listener
from ._settings import checkpoint_of, roles_of, to_json

_METRICS = tuple(metric["name"] for metric in METRICS if metric["is_shown"] and metric["is_compared"])
_ASSIGNED = ("r_score", "slope", "rank_gain")


class Comparison:
    """What a comparison found; ``to_dict`` is the document of ``poul compare --json``."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = dict(document)

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return self._document

    @property
    def learners(self) -> list[str]:
        """The learners that were trained."""
        return [one["label"] for one in self._document["learners"]]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Those that could not be."""
        failures: list[dict[str, Any]] = self._document["failures"]
        return failures

    def table(self, population: str = "global") -> list[dict[str, Any]]:
        """For each learner, outcome and policy (None for all together) the metrics and their differences to the
        reference; ready for ``pandas.DataFrame``."""
        rows = []
        for learner in self._document["learners"]:
            for cell in learner["cells"]:
                if cell["population"] != population:
                    continue
                row = {"learner": learner["label"], "outcome": cell["outcome"], "policy": cell["policy"]}
                row["validation_r_loss"] = learner["validation_r_loss"]
                rows.append({**row, **_estimates(cell)})
        return rows

    def assigned(self, population: str = "global") -> list[dict[str, Any]]:
        """For each learner and outcome every row by its own policy, against what was assigned on average: of `all` policies,
        those `seen` in training and those that are `new`; ready for ``pandas.DataFrame``."""
        rows = []
        for learner in self._document["learners"]:
            for cell in learner.get("assigned", []):
                if cell["population"] == population:
                    names = ("outcome", "policies", "rows", "n_policies")
                    row = {"learner": learner["label"], **{name: cell[name] for name in names}}
                    row["validation_r_loss"] = learner["validation_r_loss"]
                    rows.append({**row, **_estimates(cell)})
        return rows

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        if not self.table():
            return self._assigned_cells()
        rows = [row for row in self.table() if row["policy"] is None] or self.table()
        shown = [name for name in _METRICS if any(row.get(name) is not None for row in rows)]
        header = ["learner", "outcome", "R-loss", *(title for name in shown for title in (name, "interval"))]
        cells = []
        for row in rows:
            values = [row["validation_r_loss"], *(row.get(key) for name in shown for key in (name, f"{name}_interval"))]
            cells.append([row["learner"], row["outcome"], *(_text.cell(value) for value in values)])
        return header, cells

    def _assigned_cells(self) -> tuple[list[str], list[list[str]]]:
        """Each row by its own policy: all that there is where no policy has rows enough to be compared on its own."""
        names = ["policies", "validation_r_loss", *(key for name in _ASSIGNED for key in (name, f"{name}_interval"))]
        titles = ["policies", "R-loss", *(title for name in _ASSIGNED for title in (name, "interval"))]
        cells = [[row["learner"], row["outcome"], *(_text.cell(row.get(name)) for name in names)] for row in self.assigned()]
        return ["learner", "outcome", *titles], cells

    def __repr__(self) -> str:
        header, cells = self._cells()
        rows = f"{self._document['train_rows']:,} rows trained on, {self._document['test_rows']:,} tested on"
        against = self._document["against"] if self.table() else "what was assigned on average"
        return f"{_text.table(header, cells, left=2)}\n{rows}; all policies together, against {against}."

    def _repr_html_(self) -> str:
        return _html.table(*self._cells())


def _estimates(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of a cell by name, with intervals and differences to the reference."""
    row = {}
    for estimate in cell["metrics"]:
        row[estimate["metric"]] = estimate["value"]
        row[f"{estimate['metric']}_interval"] = estimate["interval"]
        row[f"{estimate['metric']}_difference"] = estimate["difference"]
        row[f"{estimate['metric']}_difference_interval"] = estimate["difference_interval"]
    return row


def compare(
    data: Any,
    learners: Sequence[str | Learner] = (),
    *,
    test: Any = None,
    test_share: float | None = None,
    test_from: Any = None,
    policies: PoliciesLike | None = None,
    contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
    policy: Policy | Sequence[Policy] | None = None,
    truth: Any = None,
    core: str | None = None,
    schedule: Sequence[str] = (),
    seeds: int = 1,
    reference: str | None = None,
    allow_unseen: bool = False,
    validation_share: float = 0.1,
    draws: int = 200,
    level: float = 0.9,
    strata_table: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    data_encoder: Mapping[str, Any] | None = None,
    seed: int = 3407,
    threads: int | None = None,
    memory: str | None = None,
    progress: bool | None = None,
    **roles: Any,
) -> Comparison:
    """Trains learners on the same rows and measures them on the same test rows.

    Parameters
    ----------
    learners
        Names, or learners with settings. Default: a short list.
    test, test_share, test_from
        Rows to test on: another table, a share of the units (0.3), or rows whose `time` is this or later.
    truth
        True effects: a table `row, policy, effect_<outcome>`.
    core, schedule
        The core population; epochs on all rows and on it, such as `"10,5"`, an entry of its own each.
    seeds
        How many seeds each learner is trained with.
    checkpoint, resume
        A folder in which every learner's results are left as they are finished; whether to resume from what is there,
        perhaps with more learners. It is deleted once all are finished.
    roles
        The roles of columns, as in :meth:`Learner.fit`.
    """
    check_roles(roles, compare)
    if sum(given is not None for given in (test, test_share, test_from)) > 1:
        raise ArgumentError("`test`, `test_share` and `test_from` exclude each other")
    kept = checkpoint_of(checkpoint, resume)
    request = {
        "fit": {
            "roles": roles_of(roles),
            "learner": None,
            "encoder": dict(data_encoder or {}),
            "contexts": None if policies is not None else context_weights(contexts),
            "seed": seed,
            "memory": memory,
            "threads": threads,
            "checkpoint": kept,
        },
        "learners": [entry for one in learners for entry in _contestants(one, schedule)],
        "seeds": seeds,
        "reference": reference,
        "policy": policy_names(policy),
        "allow_unseen": allow_unseen,
        "core": core,
        "test_share": test_share,
        "test_from": None if test_from is None else str(test_from),
        "validation_share": validation_share,
        "draws": draws,
        "level": level,
    }
    tables = [None if table is None else take(table)[0] for table in (test, truth, strata_table)]
    with Listener(progress, kept) as listener:
        found = _poul.compare(take(data)[0], to_json(request), listener, native(policies, contexts), *tables)
    return Comparison(json.loads(found))


def _contestants(one: str | Learner, schedule: Sequence[str]) -> list[dict[str, Any]]:
    if isinstance(one, Learner):
        name, settings = one.name, one._settings()
    elif isinstance(one, str):
        name, settings = one, {}
    else:
        raise ArgumentError(f"`{type(one).__name__}` is no learner", "give names, or poul.Learner(name, …)")
    if name == "poul" and schedule:
        return [{"name": name, "settings": settings, "schedule": each} for each in schedule]
    return [{"name": name, "settings": settings, "schedule": None}]
