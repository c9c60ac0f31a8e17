"""Learners by name, the method's own, and models from files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from . import _arrays, _poul
from ._allocation import Allocating
from ._assessment import evaluation_request
from ._design import Designing
from ._errors import UsageError
from ._evaluation import Evaluation
from ._fitting import Fitting
from ._frames import Kind, take
from ._policies import PoliciesLike, Policy
from ._progress import Listener
from ._scoring import Scoring
from ._settings import ROLES, Design, ExposureScale, PoulSettings, roles_of, table_of, to_json


class Learner(Fitting, Allocating, Designing, Scoring):
    """Any learner by name, with its settings as keywords.

    Roles of columns may be given here or to :meth:`fit`, which wins; settings are those of ``[model]`` and
    ``[training]`` in ``poul.toml``, by the same names.

    Parameters
    ----------
    name
        The learner: see :func:`poul.learners`.
    outcomes
        What happened: one or more columns.
    auxiliary
        Outcomes that only teach who responds (visits, opens); their own effects are not reported.
    control
        The policy that others are compared with. Default: `control`, where there is such a policy.
    treatment, treatment_columns
        The column with each row's policy (default `policy`), or the columns of a factorial design.
    features, exclude
        Names or globs of features, and of columns that are none. Default: every column without another role.
    weight, cluster, stratum, propensity, prediction, population, time, id
        Columns with other roles; `population` is an expression, `propensity` a glob, `prediction` a mapping.
    exposure, exposure_scale
        How much each row meets each context, before the experiment: a mapping from contexts to columns, or a glob
        such as ``"trips_*"``. Divided by the row's sum (`share`) or by the mean sum of all rows (`total`).
    design
        How assignment happened: `randomized`, `stratified` or `observational`.
    policies, contexts
        Defaults for :meth:`fit`.
    preset, data_encoder
        A named set of defaults; how features become numbers: ``max_levels``, ``min_level_rows``, ``heavy_tail`` and
        ``clip``, the settings of ``[data.encoder]``.
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

    def __init__(
        self,
        name: str,
        *,
        outcomes: str | Sequence[str] | None = None,
        auxiliary: str | Sequence[str] | None = None,
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
        exposure: str | Mapping[str, str] | None = None,
        exposure_scale: ExposureScale = "share",
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
        self._take(locals())

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
            self._evaluation = Evaluation(model.evaluate(frame, to_json(request), listener, set_), kind)
        return self._evaluation

    def report(self, path: str | os.PathLike[str], data: Any = None, T: Any = None, **keywords: Any) -> None:
        """Writes the page of ``poul evaluate --report``: one HTML file that opens offline.

        The page is about the rows of ``data``, with the other arguments of :meth:`evaluate`; without ``data``, about what
        :meth:`evaluate` found last.
        """
        if data is not None or keywords:
            self.evaluate(data, T, **keywords)
        self._fitted()
        if self._evaluation is None:
            raise UsageError("there is nothing to report on yet", 'name rows to evaluate: model.report("report.html", test)')
        self._evaluation.report(path)

    def score(self, data: Any = None, T: Any = None, *, X: Any = None, Y: Any = None, **roles: Any) -> float:
        """The R-score on rows with treatments and outcomes: what scikit-learn's ``cross_val_score`` and ``GridSearchCV``
        compare models by.

        The share that the effects explain of what the outcome model leaves of the outcomes: 0 for no differences between
        policies or rows, negative where the effects are worse than none. The mean over outcomes.
        """
        found = self.evaluate(data, T, X=X, Y=Y, draws=0, checks=False, **roles).assigned
        scores = [own["r_score"] for own in found if own["policies"] == "all" and own["r_score"] is not None]
        return sum(scores) / len(scores) if scores else float("nan")


class Poul(Learner):
    """The method: permutation-invariant orthogonal uplift learning.

    Takes the arguments of :class:`Learner`, and its own settings as keywords.

    Parameters
    ----------
    embedding, embedding_dim
        How an action in a context becomes a vector: `additive`, `lookup` or `hierarchical`; the width of these vectors.
    effect_dim
        Width of the policy embedding.
    rho_hidden, rho_skip, layer_norm, lipschitz
        The policy embedding: width of its hidden layer (0: linear), whether it has a linear part beside that layer, whether
        the layer is normalised, its largest Lipschitz constant (0: unbounded).
    hidden, dropout
        The heterogeneity net: widths of its hidden layers, dropout after each.
    shared_treatment_net, shared_gain
        Whether all outcomes share one policy embedding; whether outcomes learn from each other who responds.
    centring, centring_draws
        How the policy embedding is centred, and how many policies `sampled` centring draws in a step.
    loss
        `squared`, or `logistic` for outcomes that are 0 or 1.
    members, member_rows
        Networks that are trained and averaged; the rows of each: `all`, or `half` for intervals of single rows.
    outcome_model, outcome_hidden, outcome_training
        The outcome model (`auto` takes what predicts best out of fold), widths of its hidden layers, how it is trained.
    folds
        Folds of cross-fitting; 0: by the number of rows.
    epochs, phases, patience, validation_share
        Most passes over the rows; training on one population after the other instead; passes without a better validation
        loss before training ends (0: run all); the share of rows held out for validation.
    learning_rate, batch_rows, average, clip_norm
        Step size; rows of a batch (0: by the number of rows); decay of the running average of weights; longest gradient.
    decay_g, decay_rho, decay_phi, decay_delta, delta_start
        Weight decay of the heterogeneity net, of the policy embedding, of what actions and contexts share, and of what is
        particular to an action in a context, with the initial size of the latter.
    gate_penalty
        Penalty that drops features along which effects do not differ; 0: none.
    noise_weights, calibrate
        Whether rows with a noisier outcome count less; whether predicted differences between rows are shrunk to what
        held-out rows confirm.
    clip
        Smallest propensity of a policy where propensities are estimated.

    >>> import poul
    >>> poul.Poul(outcomes="visit", members=3, epochs=20).get_params()["members"]
    3
    """

    _positional = ()

    def __init__(
        self,
        *,
        outcomes: str | Sequence[str] | None = None,
        auxiliary: str | Sequence[str] | None = None,
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
        exposure: str | Mapping[str, str] | None = None,
        exposure_scale: ExposureScale = "share",
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
        self._take({"name": "poul", **locals()})


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
