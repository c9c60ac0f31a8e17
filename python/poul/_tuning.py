"""The search for settings by validation R-loss."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from . import _html, _poul, _text
from ._arguments import check_roles
from ._errors import UsageError, unknown_argument
from ._frames import take
from ._learner import Learner, Poul
from ._policies import PoliciesLike, context_weights, native
from ._progress import Listener
from ._settings import ROLES, checkpoint_of, defaults, roles_of, table_of, to_json

#: Trials shown; the others are counted.
_SHOWN = 10


class Tuning:
    """What a search found; ``to_dict`` is the document of ``poul tune --json``."""

    def __init__(self, document: Mapping[str, Any], learner: Learner) -> None:
        self._document = dict(document)
        self._learner = learner

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return self._document

    @property
    def learner(self) -> Learner:
        """The learner with the best settings and the roles of the search, not fitted: ``tuning.learner.fit(train)``."""
        return self._learner

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every trial in order of its number: the `point` tried, the `share` of the rows or epochs that it had in its
        last round, its `r_loss` there."""
        trials: list[dict[str, Any]] = self._document["trials"]
        return trials

    @property
    def best(self) -> dict[str, Any]:
        """The trial of least R-loss among those that had everything."""
        return next(trial for trial in self.trials if trial["number"] == self._document["best"])

    def table(self) -> list[dict[str, Any]]:
        """The trials, the best first; ready for ``pandas.DataFrame``."""

        def key(trial: Mapping[str, Any]) -> tuple[float, float, int]:
            loss = trial["r_loss"]
            return -trial["share"], float("inf") if loss is None else loss, trial["number"]

        own = ("number", "r_loss", "share")
        return [{**{name: one[name] for name in own}, **one["point"]} for one in sorted(self.trials, key=key)]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        rows = self.table()
        header = ["trial", "R-loss", *list(rows[0])[2:]]
        cells = [[_text.cell(value) for value in row.values()] for row in rows[:_SHOWN]]
        for row, shown in zip(rows, cells):
            shown[0] += " *" if row["number"] == self._document["best"] else ""
        return header, cells

    def __repr__(self) -> str:
        more = len(self.trials) - _SHOWN
        rest = f"\nand {more:,} more trials" if more > 0 else ""
        rows = f"{self._document['train_rows']:,} rows to train on, {self._document['validation_rows']:,} to validate"
        return f"{_text.table(*self._cells())}{rest}\n* best of {self._document['learner']}; {rows}."

    def _repr_html_(self) -> str:
        return _html.table(*self._cells())


def tune(
    data: Any,
    learner: str | Learner = "poul",
    space: Mapping[str, Any] | None = None,
    *,
    policies: PoliciesLike | None = None,
    contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
    preset: str | None = None,
    core: str | None = None,
    trials: int = 20,
    search: Literal["auto", "grid", "random"] = "auto",
    halving: bool = False,
    resource: Literal["rows", "epochs"] = "rows",
    validation_share: float = 0.2,
    strata_table: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    memory: str | None = None,
    progress: bool | None = None,
    **roles: Any,
) -> Tuning:
    """Searches for settings: every trial trains on the same rows and is judged by the same validation R-loss.

    Parameters
    ----------
    learner
        A name, or a learner, whose roles, policies and settings hold for every trial.
    space
        For each setting a list of values, or `{"low": 1e-4, "high": 1e-2, "scale": "log"}`; perhaps with `"steps"`, the
        points of a grid. Default: the learner's own space.
    preset, core
        The paper's grid, `paper-gmv` or `paper-cost`, and the core population that it trains on.
    trials, search
        Most settings to try; `grid` for every point, `random`, or `auto` for the grid where it is small enough.
    halving, resource
        Successive halving: all trials on little, the best third of them on three times as much, and so on; of `rows`
        or of `epochs`.
    validation_share
        Share of the units held out to judge by.
    checkpoint, resume
        A folder in which trials are left as they are finished; whether to resume from what is there. It is deleted once
        the search is done.
    seed, threads, memory, progress
        Default: the learner's.
    roles
        The roles of columns, as in :meth:`Learner.fit`.

    >>> import poul, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rides = poul.simulate(folder, rows=1000, features=22)
    ...     found = poul.tune(
    ...         rides.train, "ridge", {"folds": [2, 3]}, policies=rides.policies, outcomes="gmv", exclude="cost"
    ...     )
    >>> [trial["point"] for trial in found.trials]
    [{'training.folds': 2}, {'training.folds': 3}]
    """
    check_roles(roles, tune)
    base = _learner(learner)
    given = {name: roles.get(name, getattr(base, name)) for name in ROLES}
    policies = base.policies if policies is None else policies
    contexts = base.contexts if contexts is None else contexts
    kept = checkpoint_of(checkpoint, resume)
    request = {
        "fit": {
            "roles": roles_of(given),
            "learner": base.name,
            "settings": base._settings(),
            "encoder": dict(base.data_encoder or {}),
            "contexts": None if policies is not None else context_weights(contexts),
            "seed": base.seed if seed is None else seed,
            "memory": base.memory if memory is None else memory,
            "threads": base.threads if threads is None else threads,
            "checkpoint": kept,
        },
        "space": _space(base.name, space or {}),
        "preset": preset,
        "core": core,
        "trials": trials,
        "search": search,
        "halving": halving,
        "resource": resource,
        "validation_share": validation_share,
    }
    strata = None if strata_table is None else take(strata_table)[0]
    with Listener(base.progress if progress is None else progress, kept) as listener:
        text = _poul.tune(take(data)[0], to_json(request), listener, native(policies, contexts), strata)
    document = json.loads(text)
    found = document["settings"]
    best = {**found["model"], **found["training"], "preset": found.get("preset")}
    others = {"policies": policies, "contexts": contexts, "seed": document["seed"]}
    best_learner = _learner(base.name).set_params(**{**base.get_params(), **given, **others, **best})
    return Tuning(document, best_learner)


def _learner(learner: str | Learner) -> Learner:
    if isinstance(learner, Learner):
        return learner
    return Poul() if learner == "poul" else Learner(learner)


def _space(learner: str, space: Mapping[str, Any]) -> dict[str, Any]:
    """The table ``[tune]``; a setting may go by its name alone."""
    table = {}
    for name, values in space.items():
        where = table_of(learner, name)
        if where is None and "." not in name:
            known: Sequence[str] = [entry for entries in defaults(learner).values() for entry in entries]
            raise unknown_argument(name, known, f"`space` of {learner}")
        if isinstance(values, str):
            raise UsageError(f"`space`: `{name}` is one value", "give a list of values, or a range")
        table[name if where is None else f"{where}.{name}"] = values
    return table
