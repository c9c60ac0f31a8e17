"""What is asked of an evaluation: the flags of ``poul evaluate`` as keywords, for models and for columns of effects."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from . import _poul
from ._errors import ArgumentError, unknown_argument
from ._evaluation import Evaluation
from ._frames import take
from ._policies import Policy, policy_name, policy_names
from ._progress import Listener
from ._settings import ROLES, roles_of, to_json


def evaluate(
    data: Any,
    effects: Any,
    *,
    outcomes: str | Sequence[str],
    treatment: str | None = None,
    control: Policy | None = None,
    policy: Policy | Sequence[Policy] | None = None,
    against: Policy | None = None,
    truth: Any = None,
    cost_curve: tuple[str, str] | None = None,
    by: str | Sequence[str] = (),
    draws: int = 200,
    level: float = 0.9,
    bins: int = 10,
    checks: bool = True,
    placebo: int = 0,
    seed: int = 3407,
    threads: int | None = None,
    memory: str | None = None,
    progress: bool | None = None,
    **roles: Any,
) -> Evaluation:
    """Measures effects that any tool predicted: a column, or a mapping from policies to columns.

    Parameters
    ----------
    effects, truth
        Predicted effects, and true ones where they are known: a column for all policies, ``{policy: column}`` or
        ``{(outcome, policy): column}``.
    policy, against
        The policies to measure (default: all), and the one compared with (default: the control).
    cost_curve
        Two outcomes, such as ``("gmv", "cost")``, to set against each other as the targeted share grows.
    by
        Columns to average effects by: numbers in quarters, categories.
    draws, level
        Bootstrap draws for the intervals of metrics (0 for none); the level of all intervals.
    bins
        Bins of the calibration table, and groups by predicted effect.
    checks, placebo
        As in :meth:`Learner.evaluate`: of columns there is nothing to check, and a placebo is an error.
    roles
        The other roles of columns, as in :meth:`Learner.fit`.
    """
    for name in roles:
        if name not in ROLES:
            raise unknown_argument(name, {*ROLES, *inspect.signature(evaluate).parameters}, "evaluate")
    request = evaluation_request(
        roles_of({"outcomes": outcomes, "treatment": treatment, "control": control, **roles}),
        effects=effects,
        truth=truth,
        policy=policy,
        against=against,
        cost_curve=cost_curve,
        by=by,
        memory=memory,
        threads=threads,
        draws=draws,
        level=level,
        bins=bins,
        checks=checks,
        placebo=placebo,
        seed=seed,
    )
    frame, kind = take(data)
    with Listener(progress) as listener:
        return Evaluation(_poul.evaluate_columns(frame, to_json(request), listener), kind)


def evaluation_request(
    roles: Mapping[str, Any],
    *,
    effects: Any = None,
    truth: Any = None,
    policy: Policy | Sequence[Policy] | None = None,
    against: Policy | None = None,
    cost_curve: tuple[str, str] | None = None,
    by: str | Sequence[str] = (),
    memory: str | None = None,
    threads: int | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """An evaluation as the native part reads it; ``settings`` have the same names there."""
    if cost_curve is not None and (isinstance(cost_curve, str) or len(cost_curve) != 2):
        raise ArgumentError("`cost_curve` must be two outcomes", 'such as cost_curve=("gmv", "cost")')
    request = {
        "effects": _columns(effects, "effects"),
        "truth": _columns(truth, "truth"),
        "policy": policy_names(policy),
        "against": None if against is None else policy_name(against),
        "cost_curve": None if cost_curve is None else list(cost_curve),
        "by": [by] if isinstance(by, str) else list(by),
        **settings,
    }
    return {"roles": dict(roles), "request": request, "memory": memory, "threads": threads}


def _columns(columns: Any, argument: str) -> list[dict[str, Any]]:
    if columns is None:
        return []
    if isinstance(columns, str):
        return [{"column": columns}]
    if not isinstance(columns, Mapping):
        raise ArgumentError(f"`{argument}` must be a column, or a mapping from policies to columns")
    named = []
    for key, column in columns.items():
        outcome, policy = (None, key) if isinstance(key, str) else key
        named.append({"outcome": outcome, "policy": policy, "column": column})
    return named
