"""Learners by the conventions of scikit-learn, over frames with roles or over arrays."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack

from . import _arrays, _html, _poul
from ._assessment import evaluation_request
from ._errors import ArgumentError, NotFittedError, UsageError, unknown_argument
from ._evaluation import Evaluation
from ._frames import Kind, array_of, give, take, with_index
from ._policies import (
    Policies,
    PoliciesLike,
    Policy,
    beside,
    context_weights,
    native,
    policy_name,
    policy_names,
)
from ._progress import Listener
from ._settings import ROLES, Design, PoulSettings, check_names, roles_of, settings_of, table_of, to_json


class Learner:
    """Any learner by name, with its settings as keywords.

    Roles of columns may be given here or to :meth:`fit`, which wins; settings are those of ``[model]`` and
    ``[training]`` in ``poul.toml``, by the same names.

    Parameters
    ----------
    name
        The learner: see :func:`poul.learners`.
    outcomes
        What happened: one or more columns.
    control
        The policy that others are compared with. Default: `control`, where there is such a policy.
    treatment, treatment_columns
        The column with each row's policy (default `policy`), or the columns of a factorial design.
    features, exclude
        Names or globs of features, and of columns that are none. Default: every column without another role.
    weight, cluster, stratum, propensity, prediction, population, time, id
        Columns with other roles; `population` is an expression, `propensity` a glob, `prediction` a mapping.
    design
        How assignment happened: `randomized`, `stratified` or `observational`.
    policies, contexts
        Defaults for :meth:`fit`.
    preset, data_encoder
        A named set of defaults; how features become numbers: the settings of ``[data.encoder]``.
    seed
        The root of all random streams: the same seed gives the same model on any number of threads.
    threads, memory
        Default: all cores, half of the machine's memory.
    progress
        Bars: True, False, or None for terminals and notebooks only.

    >>> import poul
    >>> poul.Learner("causal-forest", outcomes="visit", trees=500)
    Learner('causal-forest', outcomes='visit', trees=500)
    >>> poul.Learner("causal-forest", tres=500)
    Traceback (most recent call last):
    ...
    poul._errors.ArgumentError: Learner('causal-forest') has no argument `tres`
    hint: did you mean `trees`?
    """

    _model: _poul.Model | None = None
    _positional: ClassVar[tuple[str, ...]] = ("name",)

    name: str

    def __init__(
        self,
        name: str,
        *,
        outcomes: str | Sequence[str] | None = None,
        control: Policy | None = None,
        treatment: str | None = None,
        treatment_columns: Sequence[str] | None = None,
        features: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        weight: str | None = None,
        cluster: str | None = None,
        stratum: str | None = None,
        propensity: str | None = None,
        prediction: Mapping[str, str] | None = None,
        population: str | None = None,
        time: str | None = None,
        id: str | Sequence[str] | None = None,
        design: Design = "randomized",
        policies: PoliciesLike | None = None,
        contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
        preset: str | None = None,
        data_encoder: Mapping[str, Any] | None = None,
        seed: int = 3407,
        threads: int | None = None,
        memory: str | None = None,
        progress: bool | None = None,
        **settings: Any,
    ) -> None:
        self.name = name
        self.outcomes = outcomes
        self.control = control
        self.treatment = treatment
        self.treatment_columns = treatment_columns
        self.features = features
        self.exclude = exclude
        self.weight = weight
        self.cluster = cluster
        self.stratum = stratum
        self.propensity = propensity
        self.prediction = prediction
        self.population = population
        self.time = time
        self.id = id
        self.design = design
        self.policies = policies
        self.contexts = contexts
        self.preset = preset
        self.data_encoder = data_encoder
        self.seed = seed
        self.threads = threads
        self.memory = memory
        self.progress = progress
        check_names(self.name, settings, tuple(self._arguments()), self._label())
        self._store(**settings)

    def _store(self, **parameters: Any) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)

    # The conventions of scikit-learn.

    @classmethod
    def _arguments(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [one.name for one in parameters if one.name != "self" and one.kind is not one.VAR_KEYWORD]

    def _label(self) -> str:
        return f"{type(self).__name__}({self.name!r})" if self._positional else type(self).__name__

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and the settings that were given."""
        names = [*self._arguments(), *self._given()]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> Self:
        """Changes arguments or settings."""
        arguments = self._arguments()
        settings = {name: value for name, value in parameters.items() if name not in arguments}
        check_names(parameters.get("name", self.name), settings, tuple(arguments), self._label())
        self._store(**parameters)
        return self

    def _given(self) -> list[str]:
        return sorted(name for name in vars(self) if name != "name" and table_of(self.name, name) is not None)

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self).__init__).parameters
        defaults = {name: parameter.default for name, parameter in parameters.items()}
        shown = [repr(getattr(self, name)) for name in self._positional]
        for name, value in sorted(self.get_params().items()):
            if name not in self._positional and (name not in defaults or value != defaults[name]):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return _html.model(repr(self), self.manifest_ if self._model is not None else None)

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        inputs = InputTags(allow_nan=True, string=True, categorical=True)
        target = TargetTags(required=True, multi_output=True)
        return Tags(estimator_type=None, target_tags=target, input_tags=inputs)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_model"}
        return {**state, "_model": None if self._model is None else self._model.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("_model")
        self.__dict__.update(state)
        if content is not None:
            self._model = _poul.Model.from_bytes(content)

    # Learning.

    def fit(
        self,
        data: Any = None,
        T: Any = None,
        *,
        X: Any = None,
        Y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        policies: PoliciesLike | None = None,
        contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
        baseline_data: Any = None,
        strata_table: Any = None,
        warm_start: Learner | str | os.PathLike[str] | None = None,
        **roles: Any,
    ) -> Self:
        """Learns effects from a table, or from arrays.

        ``fit(frame, policies=…, treatment=…, …)`` takes a pandas, polars or pyarrow frame, a DuckDB relation, a mapping
        of arrays, or the path of a Parquet, CSV or Arrow file, which is streamed. ``fit(Y, T, X=X)`` takes outcomes,
        treatments and features; several columns of ``T`` are a factorial design.

        Parameters
        ----------
        policies
            What each policy does: a policy file, a mapping as in one, or :class:`Policies`. Without any, every label of
            the treatment is a policy without structure.
        contexts
            Weights of contexts: a mapping or a file.
        baseline_data
            Tables of rows without a treatment, from which the outcome model learns too.
        strata_table
            Assignment probabilities as designed: `stratum,policy,probability`.
        warm_start
            A fitted model, or its file, that training starts from; its roles and settings are the defaults.
        """
        self._check_roles(roles, "fit")
        saved = self._saved(warm_start)
        given = {name: roles.get(name, getattr(self, name)) for name in ROLES}
        if saved is not None:
            fitted = json.loads(saved.manifest())["roles"]
            own = roles_of(given)
            if "design" not in roles and self.design == "randomized":
                del own["design"]
            request_roles = {**fitted, **own}
        else:
            request_roles = roles_of(given)
        if T is not None or Y is not None:
            arrays = _arrays.Arrays(
                Y if Y is not None else data, T, X, sample_weight=sample_weight, groups=groups
            )
            frame = arrays.frame
            if "control" not in request_roles and policies is None:
                control = arrays.control()
                request_roles.update({} if control is None else {"control": control})
            request_roles.update(arrays.roles)
        else:
            if data is None:
                raise ArgumentError("there is nothing to fit", "give a frame, a path, or arrays Y, T and X")
            for name, value in (("X", X), ("sample_weight", sample_weight), ("groups", groups)):
                if value is not None:
                    raise ArgumentError(f"`{name}` goes with arrays Y and T", "name a column: weight=, cluster=")
            frame, _ = take(data)
        contexts = contexts if contexts is not None else self.contexts
        policies = policies if policies is not None else self.policies
        set_ = native(policies, contexts)
        if saved is not None and set_ is not None and policies is not None:
            set_ = _beside_saved(saved.policies, set_, policies, contexts)
        request = {
            "roles": request_roles,
            "learner": self.name,
            "settings": settings_of(self.name, {name: getattr(self, name) for name in self._given()}, self.preset),
            "encoder": dict(self.data_encoder or {}),
            "contexts": None if policies is not None else context_weights(contexts),
            "seed": self.seed,
            "memory": self.memory,
            "threads": self.threads,
        }
        tables = baseline_data if isinstance(baseline_data, (list, tuple)) else [baseline_data]
        baseline = [take(table)[0] for table in tables if table is not None]
        strata = None if strata_table is None else take(strata_table)[0]
        with Listener(self.progress) as listener:
            self._model = _poul.fit(frame, to_json(request), listener, set_, baseline, strata, saved)
        return self

    def _saved(self, warm_start: Learner | str | os.PathLike[str] | None) -> _poul.Model | None:
        if warm_start is None:
            return None
        return warm_start._fitted() if isinstance(warm_start, Learner) else _poul.Model.load(os.fspath(warm_start))

    @staticmethod
    def _check_roles(roles: Mapping[str, Any], where: str) -> None:
        if "W" in roles:
            hint = "give all features as X: those that effects do not follow are shrunk"
            raise ArgumentError("`W` is not told apart from `X` here", hint)
        for name in roles:
            if name not in ROLES:
                raise unknown_argument(name, (*ROLES, "policies", "contexts"), where)

    def _fitted(self) -> _poul.Model:
        if self._model is None:
            raise NotFittedError(f"{self._label()} is not fitted", "call fit first, or load a model with poul.load")
        return self._model

    # What was learned.

    @property
    def manifest_(self) -> dict[str, Any]:
        """Everything that the model file says of the fit."""
        manifest: dict[str, Any] = json.loads(self._fitted().manifest())
        return manifest

    @property
    def policies_(self) -> Policies:
        """The policies it was fitted with."""
        return Policies._of(self._fitted().policies)

    @property
    def outcomes_(self) -> list[str]:
        """The outcomes, in the order of all effects."""
        return [outcome["name"] for outcome in self.manifest_["outcomes"]]

    @property
    def control_(self) -> str | None:
        """The policy that others are compared with."""
        control: str | None = self.manifest_["control"]
        return control

    @property
    def notes_(self) -> list[str]:
        """What the user should know."""
        notes: list[str] = self.manifest_["notes"]
        return notes

    @property
    def feature_names_in_(self) -> list[str]:
        """The features, in the order of training."""
        return [feature["name"] for feature in self.manifest_["encoder"]["features"]]

    @property
    def n_features_in_(self) -> int:
        """How many features there are."""
        return len(self.feature_names_in_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, which ``poul`` and :func:`load` read."""
        self._fitted().save(os.fspath(path))

    # Using it.

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
        population: str | None = None,
        id: str | Sequence[str] | None = None,
        out: str | os.PathLike[str] | None = None,
        X: Any = None,
        T0: Any = None,
        T1: Any = None,
    ) -> Any:
        """The effect of policies on each row: the same kind of frame back, one row for each row and policy.

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
            Whether to score policies on atoms that no training row carried, which count as zero.
        support
            Adds the column `unseen_share`.
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
        request = {
            "policy": policy_names(policy) or added,
            "against": None if against is None else policy_name(against),
            "interval": interval,
            "allow_unseen": allow_unseen,
            "support": support,
            "population": population,
            "id": [id] if isinstance(id, str) else None if id is None else list(id),
            "threads": self.threads,
        }
        out = None if out is None else os.fspath(out)
        with Listener(self.progress) as listener:
            found = model.effect(frame, to_json(request), listener, set_, out)
        if isinstance(found, int):
            return out
        result = give(found, kind)
        # Of rows that a filter left out nothing is known where ids stand for row numbers.
        return result if population is not None and "row" not in found.column_names else with_index(result, data, kind)

    def effect_interval(
        self, X: Any = None, *, T0: Any = None, T1: Any = None, alpha: float = 0.05
    ) -> tuple[Any, Any]:
        """Bounds of the effects at level 1 − ``alpha``, from the spread of the ensemble."""
        if not 0 < alpha < 1:
            raise UsageError(f"alpha is {alpha}", "it lies between 0 and 1, such as 0.05")
        _, lower, upper = self._array_effects(X, T0, T1, 1 - alpha)
        return lower, upper

    def ate(self, X: Any = None, *, T0: Any = None, T1: Any = None) -> Any:
        """The mean effect over the rows of ``X``: a number, or one for each outcome."""
        return self._array_effects(X, T0, T1, None)[0].mean(axis=0, dtype="float64")

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

    def evaluate(
        self,
        data: Any = None,
        T: Any = None,
        *,
        X: Any = None,
        Y: Any = None,
        policy: Policy | Sequence[Policy] | None = None,
        against: Policy | None = None,
        policies: PoliciesLike | None = None,
        contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
        truth: Any = None,
        cost_curve: tuple[str, str] | None = None,
        by: str | Sequence[str] = (),
        allow_unseen: bool = False,
        draws: int = 200,
        level: float = 0.9,
        bins: int = 10,
        checks: bool = True,
        placebo: int = 0,
        min_rows: int = 100,
        seed: int | None = None,
        **roles: Any,
    ) -> Evaluation:
        """How good the effects are on rows that were not trained on: ranking, size, calibration, with intervals.

        Parameters
        ----------
        policy, against, policies, allow_unseen
            As in :meth:`effect`. Default: every policy that the rows have and the model can score.
        truth
            True effects, where they are known: a column, ``{policy: column}`` or ``{(outcome, policy): column}``.
        cost_curve
            Two outcomes, such as ``("gmv", "cost")``, to set against each other as the targeted share grows.
        by
            Columns to average effects by: numbers in quarters, categories.
        draws, level
            Bootstrap draws for the intervals of metrics (0 for none); the level of all intervals.
        bins
            Bins of the calibration table, and groups by predicted effect.
        checks
            Whether to check the assumptions, map the policies and list the effects of atoms.
        placebo
            How often to fit the learner on permuted treatment, to see what noise looks like.
        min_rows
            Training rows from which an atom counts as well seen.
        roles
            Roles of columns that differ from those of the fit.
        """
        model = self._fitted()
        self._check_roles(roles, "evaluate")
        own = roles_of(roles)
        kind: Kind = "arrow"
        if T is not None or Y is not None:
            fitted = self.manifest_["roles"]
            names = {
                "Y": self.outcomes_,
                "T": fitted["treatment_columns"] or [fitted["treatment"] or "policy"],
                "X": self.feature_names_in_,
            }
            frame = _arrays.Arrays(Y if Y is not None else data, T, X, names=names).frame
        else:
            frame, kind = take(data)
        set_, _ = self._policies_beside(model, policies, contexts)
        request = evaluation_request(
            own,
            truth=truth,
            policy=policy,
            against=against,
            cost_curve=cost_curve,
            by=by,
            memory=self.memory,
            threads=self.threads,
            allow_unseen=allow_unseen,
            draws=draws,
            level=level,
            bins=bins,
            checks=checks,
            placebo=placebo,
            min_rows=min_rows,
            seed=self.seed if seed is None else seed,
        )
        with Listener(self.progress) as listener:
            return Evaluation(model.evaluate(frame, to_json(request), listener, set_), kind)

    def support(
        self, policy: Policy | Sequence[Policy] | None = None, *, policies: PoliciesLike | None = None
    ) -> list[dict[str, Any]]:
        """How well the training data support policies: the nearest that was run, its distance, rows, unseen atoms."""
        model = self._fitted()
        set_, added = self._policies_beside(model, policies, None)
        names = policy_names(policy) or added or set_.names
        found: list[dict[str, Any]] = json.loads(model.support(set_, names))
        return found

    def certify(
        self,
        policy: Policy | Sequence[Policy] | None = None,
        *,
        policies: PoliciesLike | None = None,
        min_rows: int = 100,
        nearest: int = 3,
    ) -> list[dict[str, Any]]:
        """What can be said of policies before they are run, as ``poul policy certify`` does.

        Each entry has the nearest policies that were run and their distances, the share of the mixture on atoms with at
        least ``min_rows`` training rows, the weak atoms, and the bound on how far effects can differ from the nearest's.
        """
        model = self._fitted()
        set_, added = self._policies_beside(model, policies, None)
        names = policy_names(policy) or added or set_.names
        found: list[dict[str, Any]] = json.loads(model.certify(set_, names, min_rows, nearest))
        return found

    @staticmethod
    def _policies_beside(
        model: _poul.Model, policies: PoliciesLike | None, contexts: Any
    ) -> tuple[_poul.PolicySet, list[str]]:
        own = model.policies
        if policies is None:
            return own, []
        every = beside(own, policies, contexts)
        return every, [name for name in every.names if name not in own]


class Poul(Learner):
    """The method: permutation-invariant orthogonal uplift learning.

    Takes the arguments of :class:`Learner`, and its own settings as keywords.

    >>> import poul
    >>> poul.Poul(outcomes="visit", members=3, epochs=20).get_params()["members"]
    3
    """

    _positional = ()

    def __init__(
        self,
        *,
        outcomes: str | Sequence[str] | None = None,
        control: Policy | None = None,
        treatment: str | None = None,
        treatment_columns: Sequence[str] | None = None,
        features: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        weight: str | None = None,
        cluster: str | None = None,
        stratum: str | None = None,
        propensity: str | None = None,
        prediction: Mapping[str, str] | None = None,
        population: str | None = None,
        time: str | None = None,
        id: str | Sequence[str] | None = None,
        design: Design = "randomized",
        policies: PoliciesLike | None = None,
        contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
        preset: str | None = None,
        data_encoder: Mapping[str, Any] | None = None,
        seed: int = 3407,
        threads: int | None = None,
        memory: str | None = None,
        progress: bool | None = None,
        **settings: Unpack[PoulSettings],
    ) -> None:
        super().__init__(
            "poul",
            outcomes=outcomes,
            control=control,
            treatment=treatment,
            treatment_columns=treatment_columns,
            features=features,
            exclude=exclude,
            weight=weight,
            cluster=cluster,
            stratum=stratum,
            propensity=propensity,
            prediction=prediction,
            population=population,
            time=time,
            id=id,
            design=design,
            policies=policies,
            contexts=contexts,
            preset=preset,
            data_encoder=data_encoder,
            seed=seed,
            threads=threads,
            memory=memory,
            progress=progress,
            **settings,
        )


def load(path: str | os.PathLike[str]) -> Learner:
    """Reads a model file, written here or by the ``poul`` command.

    The roles and settings of the fit are the parameters of what comes back.
    """
    model = _poul.Model.load(os.fspath(path))
    manifest = json.loads(model.manifest())
    name, stored = manifest["learner"], manifest["settings"]
    parameters: dict[str, Any] = {"seed": manifest["seed"], "preset": stored.get("preset")}
    for role, value in manifest["roles"].items():
        role = "outcomes" if role == "outcome" else role
        if role in ROLES and value:
            parameters[role] = value
    for setting, value in (*stored["model"].items(), *stored["training"].items()):
        if table_of(name, setting) is not None:
            parameters[setting] = value
    learner = Poul(**parameters) if name == "poul" else Learner(name, **parameters)
    learner._model = model
    return learner


def _is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def _beside_saved(
    saved: _poul.PolicySet, read: _poul.PolicySet, policies: PoliciesLike, contexts: Any
) -> _poul.PolicySet:
    """A file that names no context of its own is about those of the saved model."""
    known = {context for context, _ in saved.contexts}
    own = {context for context, _ in read.contexts}
    return read if own - known or own == known else beside(saved, policies, contexts)


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
