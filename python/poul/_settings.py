"""The learners and what can be set of each: the names of ``poul.toml``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypedDict

from . import _poul
from ._errors import ArgumentError, UsageError, unknown_argument
from ._policies import policy_name

Design = Literal["randomized", "stratified", "observational"]
ExposureScale = Literal["share", "total"]

#: Roles of columns; ``outcomes`` is ``outcome`` in ``poul.toml``.
ROLES = (
    "outcomes",
    "auxiliary",
    "control",
    "treatment",
    "treatment_columns",
    "features",
    "exclude",
    "weight",
    "cluster",
    "stratum",
    "propensity",
    "prediction",
    "exposure",
    "exposure_scale",
    "population",
    "time",
    "id",
    "design",
)


class PoulSettings(TypedDict, total=False):
    """What can be set of the method: ``[model]``, then ``[training]``. :class:`Poul` says what each is."""

    embedding: Literal["lookup", "additive", "hierarchical"]
    embedding_dim: int
    effect_dim: int
    hidden: list[int]
    rho_hidden: int
    rho_skip: bool
    layer_norm: bool
    lipschitz: float
    dropout: float
    shared_treatment_net: bool
    shared_gain: bool
    centring: Literal["auto", "exact", "sampled", "mixture", "running-mean", "none"]
    centring_draws: int
    loss: Literal["squared", "logistic"]
    members: int
    outcome_model: Literal["mlp", "dragonnet", "boosted", "auto"]
    outcome_hidden: list[int]
    folds: int
    learning_rate: float
    batch_rows: int
    epochs: int
    phases: list[dict[str, Any]]
    patience: int
    validation_share: float
    decay_g: float
    decay_rho: float
    decay_phi: float
    decay_delta: float
    delta_start: float
    gate_penalty: float
    noise_weights: bool
    calibrate: bool
    member_rows: Literal["all", "half"]
    outcome_training: Literal["own", "as-effects"]
    average: float
    clip_norm: float
    clip: float


def learners() -> dict[str, str]:
    """Every learner by name, and what it is.

    >>> import poul
    >>> poul.learners()["ridge"]
    'bilinear ridge of the residual outcome on features × mixture'
    """
    return dict(_poul.learners())


@cache
def defaults(learner: str, preset: str | None = None) -> dict[str, dict[str, Any]]:
    """The tables ``model`` and ``training`` of a learner, complete."""
    tables: dict[str, dict[str, Any]] = json.loads(_poul.settings(learner, preset))
    return tables


def table_of(learner: str, name: str) -> str | None:
    """The table that a setting stands in."""
    return next((table for table, entries in defaults(learner).items() if name in entries), None)


def check_names(learner: str, names: Mapping[str, Any], arguments: tuple[str, ...], where: str) -> None:
    """There is such a learner, and every name is a setting of it."""
    defaults(learner)
    for name in names:
        if table_of(learner, name) is None:
            known = [*arguments, *(entry for table in defaults(learner).values() for entry in table)]
            raise unknown_argument(name, known, where)


def settings_of(learner: str, given: Mapping[str, Any], preset: str | None) -> dict[str, Any]:
    """Settings by table, as the native part reads them."""
    tables: dict[str, Any] = {"preset": preset, "model": {}, "training": {}}
    for name, value in given.items():
        table = table_of(learner, name)
        if table is not None and value is not None:
            tables[table][name] = value
    return tables


def roles_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Roles as the native part reads them; those that are not given are left out."""
    roles = {name: value for name, value in given.items() if value is not None}
    if "outcomes" in roles:
        roles["outcome"] = roles.pop("outcomes")
    if "control" in roles:
        roles["control"] = policy_name(roles["control"])
    for name in ("outcome", "treatment_columns", "features", "exclude", "id"):
        if name in roles and not isinstance(roles[name], str):
            roles[name] = list(roles[name])
    return roles


def checkpoint_of(folder: str | os.PathLike[str] | None, resume: bool) -> dict[str, Any] | None:
    """Where long work leaves what it has done, as the native part reads it."""
    if folder is None:
        if resume:
            raise ArgumentError("`resume` needs `checkpoint`", "name the folder that the work left: checkpoint=FOLDER")
        return None
    return {"folder": os.fspath(folder), "resume": bool(resume)}


def to_json(request: Mapping[str, Any]) -> str:
    """JSON for the native part; NumPy's numbers and arrays count as Python's."""

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        if isinstance(value, (set, frozenset, tuple)):
            return list(value)
        raise UsageError(f"a setting cannot be a `{type(value).__name__}`: {value!r}")

    try:
        return json.dumps(request, default=plain, allow_nan=False)
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError("a setting must be a finite number") from error
