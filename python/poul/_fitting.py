"""Learning, from frames with roles or from arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Self

from . import _arrays, _poul
from ._arguments import check_roles
from ._errors import ArgumentError
from ._fitted import Fitted
from ._frames import take
from ._policies import PoliciesLike, beside, context_weights, native
from ._progress import Listener
from ._settings import ROLES, checkpoint_of, roles_of, to_json


class Fitting(Fitted):
    """A learner that learns."""

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
        warm_start: Fitted | str | os.PathLike[str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
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
        checkpoint
            A folder in which training leaves what it has done, for work that is long or may be stopped. It is deleted
            once the model is there. Default: none.
        resume
            Whether to resume from what is in that folder: the model is the one that the fit would have given had it not
            been stopped. Data, settings and seed must be the same.
        """
        check_roles(roles, Fitting.fit)
        kept = checkpoint_of(checkpoint, resume)
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
            "settings": self._settings(),
            "encoder": dict(self.data_encoder or {}),
            "contexts": None if policies is not None else context_weights(contexts),
            "seed": self.seed,
            "memory": self.memory,
            "threads": self.threads,
            "checkpoint": kept,
        }
        tables = baseline_data if isinstance(baseline_data, (list, tuple)) else [baseline_data]
        baseline = [take(table)[0] for table in tables if table is not None]
        strata = None if strata_table is None else take(strata_table)[0]
        with Listener(self.progress, kept) as listener:
            self._model = _poul.fit(frame, to_json(request), listener, set_, baseline, strata, saved)
        self._evaluation = None
        return self

    def _saved(self, warm_start: Fitted | str | os.PathLike[str] | None) -> _poul.Model | None:
        if warm_start is None:
            return None
        return warm_start._fitted() if isinstance(warm_start, Fitted) else _poul.Model.load(os.fspath(warm_start))


def _beside_saved(
    saved: _poul.PolicySet, read: _poul.PolicySet, policies: PoliciesLike, contexts: Any
) -> _poul.PolicySet:
    """A file that names no context of its own is about those of the saved model."""
    known = {context for context, _ in saved.contexts}
    own = {context for context, _ in read.contexts}
    return read if own - known or own == known else beside(saved, policies, contexts)
