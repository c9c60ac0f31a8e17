"""The policies to run next."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from . import _poul
from ._arguments import checked_names
from ._errors import OutputError, UsageError
from ._fitted import Fitted
from ._frames import Kind, give, take
from ._policies import Policies, Policy, policy_name, policy_names
from ._progress import Listener
from ._settings import to_json


class Designed:
    """What a design found; ``to_dict`` is the document of ``poul design --json``."""

    def __init__(
        self, document: Mapping[str, Any], policies: _poul.PolicySet | None, table: _poul.Frame | None, kind: Kind
    ) -> None:
        self._document, self._policies, self._table, self._kind = dict(document), policies, table, kind

    def to_dict(self) -> dict[str, Any]:
        """Everything: proposals, what was searched, noise, plan, what teaches most."""
        return self._document

    @property
    def conclusion(self) -> str:
        """All of it in a sentence."""
        conclusion: str = self._document["conclusion"]
        return conclusion

    @property
    def proposals(self) -> Any:
        """The policies to run, the best first: a frame with effects, intervals, distance and users needed."""
        if self._table is None:
            raise UsageError("a plan has no proposals", 'ask for some: propose(maximize="gmv")')
        return give(self._table, self._kind)

    @property
    def policies(self) -> Policies:
        """Control and the proposals, ready to run."""
        if self._policies is None:
            raise UsageError("a plan has no new policies", 'ask for some: propose(maximize="gmv")')
        return Policies._of(self._policies)

    def to_toml(self, path: str | os.PathLike[str]) -> None:
        """Writes the policies as a policy file."""
        text = self.policies.to_toml()
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise OutputError(f"cannot write: {error}") from error

    def __repr__(self) -> str:
        return f"Designed({len(self._document['proposals'])} proposals)\n{self.conclusion}"


class Designing(Fitted):
    """A learner that finds the policies to run next."""

    @checked_names
    def propose(
        self,
        users: Any = None,
        *,
        maximize: str | None = None,
        budget: Mapping[str, float] | None = None,
        price: Mapping[str, float] | None = None,
        from_: Policy | None = None,
        edits: int = 3,
        within: float = 0.5,
        min_rows: int = 100,
        grid: Sequence[float] | None = None,
        allow: Mapping[str, Sequence[str]] | None = None,
        proposals: int = 5,
        by: Literal["value", "lower", "improvement"] = "improvement",
        learn: bool = False,
        batch: int = 4,
        rows: int | None = None,
        policy: Policy | Sequence[Policy] | None = None,
        level: float = 0.9,
        population: str | None = None,
        seed: int = 3407,
    ) -> Designed:
        """The policies to run next: a base with few contexts changed, by what the model knows of averages.

        Parameters
        ----------
        users
            A table of users that averages are over. Default: the training population.
        maximize
            The outcome whose average effect is to be as large as possible.
        budget, price
            By outcome, the most that a policy may add for a user, and what a unit of it costs.
        from_
            The policy to change. Default: the best that was run.
        edits, within, min_rows, grid, allow
            Contexts that may change, how far from a policy that was run, training rows of every action in its context,
            probabilities to try, and by context (``"*"`` for all others) the actions that may be taken.
        by
            What policies are judged by: the expected value, its lower bound, or the expected improvement.
        learn, batch
            Find instead the policies, and their shares of ``rows`` users, that teach most about all good ones.
        rows
            Users of the next experiment: what could be told with them. Without ``maximize``, of the ``policy`` given.
        """
        model = self._fitted()
        kind: Kind = "pandas"
        frame: _poul.Frame | None = None
        if users is not None:
            frame, kind = take(users)
        params = {
            "maximize": maximize,
            "budget": dict(budget or {}),
            "price": dict(price or {}),
            "from": None if from_ is None else policy_name(from_),
            "edits": edits,
            "within": within,
            "min_rows": min_rows,
            "grid": None if grid is None else list(grid),
            "allow": {context: list(actions) for context, actions in (allow or {}).items()},
            "proposals": proposals,
            "by": by,
            "learn": learn,
            "batch": batch,
            "rows": rows,
            "policy": policy_names(policy),
            "level": level,
            "seed": seed,
        }
        request = {"params": params, "population": population, "threads": self.threads}
        with Listener(self.progress) as listener:
            text, policies, table = model.design(to_json(request), listener, frame)
        return Designed(json.loads(text), policies, table, kind)
