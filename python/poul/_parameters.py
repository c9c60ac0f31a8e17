"""A learner's arguments and settings, by the conventions of scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from ._arguments import arguments_of, check_roles
from ._policies import PoliciesLike, Policy
from ._settings import Design, ExposureScale, check_names, settings_of, table_of


class Parameters:
    """Arguments by name. Settings of the learner stand beside them, those only that were given."""

    _positional: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    outcomes: str | Sequence[str] | None
    auxiliary: str | Sequence[str] | None
    control: Policy | None
    treatment: str | None
    treatment_columns: Sequence[str] | None
    features: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    weight: str | None
    cluster: str | None
    stratum: str | None
    propensity: str | None
    prediction: Mapping[str, str] | None
    exposure: str | Mapping[str, str] | None
    exposure_scale: ExposureScale
    population: str | None
    time: str | None
    id: str | Sequence[str] | None
    design: Design
    policies: PoliciesLike | None
    contexts: Mapping[str, float] | str | os.PathLike[str] | None
    preset: str | None
    data_encoder: Mapping[str, Any] | None
    seed: int
    threads: int | None
    memory: str | None
    progress: bool | None

    def _take(self, given: Mapping[str, Any]) -> None:
        """Keeps the arguments of a constructor by their names, and its settings beside them."""
        self._store(**{name: value for name, value in given.items() if name not in ("self", "settings")})
        check_names(self.name, given["settings"], tuple(self._arguments()), self._label())
        self._store(**given["settings"])

    def _store(self, **parameters: Any) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)

    @classmethod
    def _arguments(cls) -> list[str]:
        return arguments_of(cls.__init__)

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
        defaults = type(self).__init__.__kwdefaults__ or {}
        shown = [repr(getattr(self, name)) for name in self._positional]
        for name, value in sorted(self.get_params().items()):
            # By what is shown: arrays have no one answer to whether they are equal.
            if name not in self._positional and (name not in defaults or repr(value) != repr(defaults[name])):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        inputs = InputTags(allow_nan=True, string=True, categorical=True)
        target = TargetTags(required=True, multi_output=True)
        return Tags(estimator_type=None, target_tags=target, input_tags=inputs)

    def _settings(self) -> dict[str, Any]:
        """Settings by table, as the native part reads them."""
        return settings_of(self.name, {name: getattr(self, name) for name in self._given()}, self.preset)

    _check_roles = staticmethod(check_roles)
