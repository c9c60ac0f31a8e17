"""What a fitted learner says of itself, of its fit and of policies; how it is stored."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from . import _html, _poul
from ._arguments import checked_names
from ._errors import NotFittedError
from ._evaluation import Evaluation
from ._parameters import Parameters
from ._policies import Policies, PoliciesLike, Policy, beside, policy_names


class Fitted(Parameters):
    """A learner that may hold a model."""

    _model: _poul.Model | None = None
    #: What was found by the last evaluation.
    _evaluation: Evaluation | None = None

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
    def nuisances_(self) -> dict[str, Any] | None:
        """What ``outcome_model="auto"`` chose for each outcome and the propensity, with out-of-fold losses; else None."""
        chosen: dict[str, Any] | None = self.manifest_["model"].get("nuisances")
        return chosen

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

    @checked_names
    def support(
        self, policy: Policy | Sequence[Policy] | None = None, *, policies: PoliciesLike | None = None
    ) -> list[dict[str, Any]]:
        """How well the training data support policies: the nearest that was run, its distance, rows, unseen atoms."""
        model = self._fitted()
        set_, added = self._policies_beside(model, policies, None)
        names = policy_names(policy) or added or set_.names
        found: list[dict[str, Any]] = json.loads(model.support(set_, names))
        return found

    @checked_names
    def certify(
        self,
        policy: Policy | Sequence[Policy] | None = None,
        *,
        policies: PoliciesLike | None = None,
        min_rows: int = 100,
        nearest: int = 3,
        level: float = 0.9,
    ) -> list[dict[str, Any]]:
        """What can be said of policies before they are run, as ``poul policy certify`` does.

        Each entry has the nearest policies that were run and their distances, the share of the mixture on atoms with at
        least ``min_rows`` training rows, the weak atoms, the average effect against control with its interval at ``level``,
        and the bound on how far effects can differ from the nearest's.
        """
        model = self._fitted()
        set_, added = self._policies_beside(model, policies, None)
        names = policy_names(policy) or added or set_.names
        found: list[dict[str, Any]] = json.loads(model.certify(set_, names, min_rows, nearest, level))
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

    def _repr_html_(self) -> str:
        return _html.model(repr(self), self.manifest_ if self._model is not None else None)

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name not in ("_model", "_evaluation")}
        return {**state, "_model": None if self._model is None else self._model.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("_model")
        self.__dict__.update(state)
        if content is not None:
            self._model = _poul.Model.from_bytes(content)
