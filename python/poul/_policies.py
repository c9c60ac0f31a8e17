"""Sets of policies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _poul
from ._errors import ArgumentError
from ._frames import kind_of, path_or_none, take
from ._progress import Listener

if TYPE_CHECKING:
    from ._learner import Learner

#: What stands in for a set of policies wherever one is asked for.
PoliciesLike: TypeAlias = "Policies | Mapping[str, Any] | str | os.PathLike[str]"
#: A policy by name, or a combination of factorial columns; a number or a boolean where the treatment column holds such.
Policy: TypeAlias = str | int | float | bool | Mapping[str, Any]


class Policies:
    """Policies over common contexts, in one canonical order.

    A policy says, for each context, how actions are chosen. With the weights of contexts it induces a mixture over the
    atoms (context, action).

    >>> policies = Policies.from_dict(
    ...     {"control": {"*": "none"}, "T2": {"*": "none", "peak": "upgrade", "night": {"upgrade": 0.5, "none": 0.5}}},
    ...     contexts={"peak": 3, "night": 1},
    ... )
    >>> policies
    Policies(2 policies, 2 contexts, 2 actions, 4 atoms)
    >>> policies.distance("control", "T2")
    1.75
    >>> policies.nearest("T2")
    [('control', 1.75)]
    >>> policies.mixture("T2")[("peak", "upgrade")]
    0.75
    """

    _set: _poul.PolicySet

    def __init__(self, policies: Mapping[str, Any], contexts: Mapping[str, float] | None = None) -> None:
        self._set = Policies.from_dict(policies, contexts)._set

    @classmethod
    def _of(cls, native: _poul.PolicySet) -> Policies:
        made = cls.__new__(cls)
        made._set = native
        return made

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        contexts: str | os.PathLike[str] | None = None,
        exposure_log: str | os.PathLike[str] | None = None,
        context_column: str | None = None,
    ) -> Policies:
        """Reads a policy file: TOML, JSON, long CSV or Parquet; ``contexts`` is a file of weights for the long form."""
        contexts = path_or_none(contexts, "contexts")
        exposure_log = path_or_none(exposure_log, "exposure_log")
        return cls._of(_poul.PolicySet.read(os.fspath(path), contexts, exposure_log, context_column))

    @classmethod
    def from_dict(cls, policies: Mapping[str, Any], contexts: Mapping[str, float] | None = None) -> Policies:
        """The tree of a policy file: for each policy, for each context (``"*"`` for the others), an action or
        probabilities of actions. A mapping with the keys ``policies`` and ``contexts`` is taken as the whole file."""
        return cls._of(_poul.PolicySet.from_json(tree(policies, contexts)))

    @classmethod
    def from_columns(
        cls, data: Any, columns: Sequence[str], *, contexts: Mapping[str, float] | None = None
    ) -> Policies:
        """The combinations of factorial columns that the rows of a frame or a file have."""
        frame, _ = take(data)
        with Listener(False) as listener:
            weights = None if contexts is None else {name: float(weight) for name, weight in contexts.items()}
            return cls._of(_poul.PolicySet.from_frame(frame, list(columns), weights, listener))

    @property
    def names(self) -> list[str]:
        """Names of the policies, sorted."""
        return self._set.names

    @property
    def contexts(self) -> dict[str, float]:
        """The contexts and their weights, which sum to 1."""
        return dict(self._set.contexts)

    @property
    def actions(self) -> list[str]:
        """The actions, sorted."""
        return self._set.actions

    @property
    def atoms(self) -> list[tuple[str, str]]:
        """The pairs of context and action that some policy takes."""
        return self._set.atoms

    def mixture(self, name: str) -> dict[tuple[str, str], float]:
        """The share of exposure that a policy spends on each atom."""
        return {(context, action): mass for context, action, mass in self._set.mixture(name)}

    def distance(self, a: str, b: str) -> float:
        """How far apart two mixtures are: 0 where they are the same, 2 where they share nothing."""
        return self._set.distance(a, b)

    def diff(self, a: str, b: str) -> dict[str, Any]:
        """What changes from one policy to another, context by context."""
        changes: dict[str, Any] = json.loads(self._set.diff(a, b))
        return changes

    def nearest(self, name: str, count: int = 5) -> list[tuple[str, float]]:
        """The nearest other policies and their distances."""
        return self._set.nearest(name, count)

    def certify(
        self, name: str, model: Learner, *, min_rows: int = 100, nearest: int = 3, level: float = 0.9
    ) -> dict[str, Any]:
        """What a fitted model can say of one of the policies before it is run: see :meth:`Learner.certify`."""
        (found,) = model.certify(name, policies=self, min_rows=min_rows, nearest=nearest, level=level)
        return found

    def aliases(self) -> list[list[str]]:
        """Groups of policies that are the same mixture."""
        return self._set.aliases()

    def union(self, other: PoliciesLike) -> Policies:
        """The policies of both, under the contexts and weights of this set."""
        return Policies._of(beside(self._set, other))

    def to_dict(self) -> dict[str, Any]:
        """The tree of a policy file."""
        document: dict[str, Any] = json.loads(self._set.to_json())
        return document

    def to_toml(self) -> str:
        """The text of a policy file."""
        return self._set.to_toml()

    def __len__(self) -> int:
        return len(self._set)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._set

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policies) and self._set == other._set

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        return Policies.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        counts = (len(self), len(self._set.contexts), len(self.actions), len(self.atoms))
        words = ("policies", "contexts", "actions", "atoms")
        return f"Policies({', '.join(f'{n:,} {word}' for n, word in zip(counts, words))})"

    def _repr_html_(self) -> str:
        shown = 20
        rows = []
        for name in self.names[:shown]:
            by_context: dict[str, list[str]] = {}
            for (context, action), mass in self.mixture(name).items():
                by_context.setdefault(context, []).append(f"{action} {mass:.3g}")
            cells = "; ".join(f"{context}: {', '.join(actions)}" for context, actions in by_context.items())
            rows.append(f"<tr><td>{escape(name)}</td><td style='text-align:left'>{escape(cells[:300])}</td></tr>")
        more = f"<p>and {len(self) - shown:,} more</p>" if len(self) > shown else ""
        return f"<p>{escape(repr(self))}</p><table><tr><th>policy</th><th>mixture</th></tr>{''.join(rows)}</table>{more}"


def combination(values: Mapping[str, Any]) -> str:
    """The name of a combination of factorial columns.

    >>> combination({"Job": "nurse", "Age": 30})
    '"Job"="nurse", "Age"="30"'
    """

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return ", ".join(f"{quoted(str(column))}={quoted(label(value))}" for column, value in values.items())


def label(value: Any) -> str:
    """A treatment as the name of a policy: whole numbers without a fraction, booleans as 0 and 1."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def policy_name(policy: Policy) -> str:
    """A policy by its name, or a combination of factorial columns.

    >>> policy_name("T2"), policy_name(1), policy_name(False)
    ('T2', '1', 'false')
    """
    if isinstance(policy, Mapping):
        return combination(policy)
    policy = policy.item() if hasattr(policy, "item") else policy
    # As boolean columns of frames are read; arrays of treatments have their own vocabulary, T0 and T1.
    return str(policy).lower() if isinstance(policy, bool) else label(policy)


def policy_names(policy: Any) -> list[str]:
    """One policy or several."""
    if policy is None:
        return []
    is_one = isinstance(policy, (str, bool, int, float, Mapping)) or getattr(policy, "ndim", None) == 0
    return [policy_name(policy)] if is_one else [policy_name(one) for one in policy]


def tree(policies: Mapping[str, Any], contexts: Mapping[str, float] | None = None) -> str:
    """The JSON of a policy file."""
    whole = "policies" in policies and set(policies) <= {"policies", "contexts", "attributes"}
    document = dict(policies) if whole and contexts is None else {"policies": policies}
    if contexts is not None:
        document["contexts"] = contexts
    try:
        return json.dumps(document, indent=1)
    except TypeError as error:
        raise ArgumentError(f"policies: {error}", "give names, and numbers for probabilities and weights") from None


def native(policies: PoliciesLike | None, contexts: Any = None) -> _poul.PolicySet | None:
    """A set of policies, however it is given."""
    if policies is None:
        return None
    if isinstance(policies, Policies):
        return policies._set
    if isinstance(policies, Mapping):
        return _poul.PolicySet.from_json(tree(policies, contexts if isinstance(contexts, Mapping) else None))
    if kind_of(policies) == "path":
        return _poul.PolicySet.read(os.fspath(policies), path_or_none(contexts, "contexts"))
    raise ArgumentError("policies must be a path, a mapping or `Policies`")


def beside(own: _poul.PolicySet, policies: PoliciesLike, contexts: Any = None) -> _poul.PolicySet:
    """Policies laid beside those of a model, whose contexts and weights hold."""
    if isinstance(policies, Policies):
        return own.union(policies._set)
    if isinstance(policies, Mapping):
        return own.union_json(tree(policies, contexts))
    if kind_of(policies) == "path":
        return own.union_file(os.fspath(policies), path_or_none(contexts, "contexts"))
    raise ArgumentError("policies must be a path, a mapping or `Policies`")


def context_weights(contexts: Any) -> dict[str, float] | None:
    """Weights of contexts for policies that come from the data."""
    if contexts is None or isinstance(contexts, Mapping):
        return None if contexts is None else {name: float(weight) for name, weight in contexts.items()}
    return _poul.context_weights(os.fspath(contexts))
