"""Which policy each user should have: the flags of ``poul allocate`` as keywords, and what comes out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._arguments import checked_names
from ._errors import ArgumentError
from ._fitted import Fitted
from ._frames import Kind, give, take
from ._policies import PoliciesLike, Policy, policy_name, policy_names
from ._progress import Listener
from ._settings import to_json


class Allocation:
    """An allocation: who gets what, limits with their prices, what it is worth.

    The names are those of ``poul allocate --json``.
    """

    def __init__(self, text: str, prices: str, frame: Any, kind: Kind = "pandas") -> None:
        self._text = text
        self._document: dict[str, Any] = json.loads(text)
        self._prices = prices
        self._kind: Kind = kind
        #: A row for each user and policy it gets: ids, ``policy``, ``share``, ``effect_…``; the path where it was written.
        self.frame = frame

    @property
    def users(self) -> int:
        """How many users there are."""
        users: int = self._document["users"]
        return users

    @property
    def value(self) -> dict[str, float]:
        """The predicted total of each outcome, against everybody keeping the control."""
        value: dict[str, float] = self._document["value"]
        return value

    @property
    def policies(self) -> list[dict[str, Any]]:
        """Users, share and predicted totals of each policy."""
        policies: list[dict[str, Any]] = self._document["policies"]
        return policies

    @property
    def constraints(self) -> list[dict[str, Any]]:
        """Each limit with what is used of it, its slack and its price."""
        constraints: list[dict[str, Any]] = self._document["constraints"]
        return constraints

    @property
    def gap(self) -> float | None:
        """How far from the best it can be; None where prices decided."""
        gap: float | None = self._document["duality_gap"]
        return gap

    @property
    def curve(self) -> list[dict[str, Any]]:
        """What budgets bring: ``budget``, ``value``, ``lower``, ``upper``, ``predicted``; empty without a budget."""
        curve: list[dict[str, Any]] = self._document.get("curve", [])
        return curve

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """What it is worth by outcomes, beside other ways to give policies; None where users have none."""
        evaluation: dict[str, Any] | None = self._document.get("evaluation")
        return evaluation

    @property
    def prices(self) -> dict[str, Any]:
        """What decides single users in the same way; give it to :meth:`Learner.allocate` as ``prices``."""
        prices: dict[str, Any] = json.loads(self._prices)
        return prices

    @property
    def summary(self) -> str:
        """The decision in a sentence."""
        summary: str = self._document["summary"]
        return summary

    def to_dict(self) -> dict[str, Any]:
        """Everything but the frame."""
        document: dict[str, Any] = json.loads(self._text)
        return document

    def save_prices(self, path: str | os.PathLike[str]) -> None:
        """Writes the prices, which ``poul allocate --prices`` reads."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(self.prices, indent=2) + "\n")

    def plot(self, *, ax: Any = None) -> Any:
        """Draws the curve of what budgets bring with matplotlib and gives its axes back."""
        if not self.curve:
            raise ArgumentError("there is no curve to draw", "allocate with a budget for all users")
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ArgumentError("plots need matplotlib", "pip install matplotlib") from None
        axes = plt.subplots(figsize=(5, 4))[1] if ax is None else ax
        budget = [point["budget"] for point in self.curve]
        axes.plot(budget, [point["predicted"] for point in self.curve], linestyle="--", color="gray", label="predicted")
        if all(point["lower"] is not None for point in self.curve):
            lower, upper = ([point[end] for point in self.curve] for end in ("lower", "upper"))
            axes.plot(budget, [point["value"] for point in self.curve], label="by outcomes")
            axes.fill_between(budget, lower, upper, alpha=0.2, linewidth=0)
        maximize = self._document["maximize"]
        axes.set(xlabel="budget", ylabel=maximize, title=f"{maximize} that budgets bring")
        axes.legend()
        return axes

    def __repr__(self) -> str:
        shown = [own for own in self.policies if own["users"] > 0]
        lines = [f"{own['policy']}: {own['users']:,.0f} users ({100 * own['share']:.1f} %)" for own in shown[:10]]
        if len(shown) > 10:
            lines.append(f"and {len(shown) - 10} more policies")
        return "\n".join([f"Allocation of {self.users:,} users", *lines, self.summary])


class Allocating(Fitted):
    """A learner that says which policy each user should have."""

    @checked_names
    def allocate(
        self,
        users: Any,
        *,
        maximize: str | None = None,
        budget: Mapping[str, float] | None = None,
        rate: Mapping[str, float] | None = None,
        cap: Mapping[str, float] | None = None,
        floor: Mapping[str, float] | None = None,
        eligible: Mapping[str, str] | None = None,
        group: str | None = None,
        group_budgets: Any = None,
        at_most_policies: int | None = None,
        risk: float | None = None,
        policy: Policy | Sequence[Policy] | None = None,
        control: Policy | None = None,
        policies: PoliciesLike | None = None,
        contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
        prices: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        curve: bool | None = None,
        points: int = 20,
        level: float = 0.9,
        force: bool = False,
        allow_unseen: bool = False,
        population: str | None = None,
        id: str | Sequence[str] | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> Allocation:
        """Gives every user one policy so that the total of an outcome is as large as limits allow.

        Parameters
        ----------
        users
            A frame of any kind, or the path of files. With the experiment's policies and outcomes in it, the allocation is
            valued by them.
        maximize
            The outcome whose total is to be large.
        budget, rate
            The most that totals may be, ``{"cost": 1e6}``, and the most that one may be of another, ``{"cost/gmv": 0.2}``.
        cap, floor
            The largest and the smallest share of users of a policy.
        eligible
            For a policy, the expression that holds for users who may get it, such as ``"age >= 18"``.
        group, group_budgets
            A column of groups, and a table of their limits: budgets in columns named after outcomes, shares in `cap_POLICY`
            and `floor_POLICY`.
        at_most_policies
            How many policies may be in use, the control not counted.
        risk
            Decide by this quantile of gains and its mirror of costs: 0.1 is cautious. Default: by predicted effects.
        policy, policies
            The policies to choose from (default: all), and policies that were not in training.
        prices
            Prices that were found before, a mapping or a file: they decide each user alone, and nothing else may be asked.
        curve, points
            Whether what other budgets bring is found (default: where there is a budget for all users), at how many points.
        force
            Whether the table that the model was fitted on may be used.
        out
            A `.parquet` or `.csv` file to write the frame to instead, in bounded memory.
        """
        model = self._fitted()
        frame, kind = take(users)
        set_, _ = self._policies_beside(model, policies, contexts)
        request = allocation_request(
            maximize=maximize,
            budget=budget,
            rate=rate,
            cap=cap,
            floor=floor,
            eligible=eligible,
            group=group,
            at_most_policies=at_most_policies,
            risk=risk,
            policy=policy,
            control=control,
            allow_unseen=allow_unseen,
            population=population,
            id=id,
            level=level,
            points=points,
            force=force,
            seed=self.seed,
        )
        found = prices is not None and maximize is None
        if prices is not None and not found:
            raise ArgumentError("`maximize` and `prices` exclude each other", "new prices are in the result: `.prices`")
        wants_curve = bool(budget) and not found if curve is None else curve
        settings = {"request": request, "curve": wants_curve, "memory": self.memory, "threads": self.threads}
        limits = None if group_budgets is None else take(group_budgets)[0]
        path = None if out is None else os.fspath(out)
        with Listener(self.progress) as listener:
            text, priced, table = model.allocate(frame, to_json(settings), listener, set_, limits, _text_of(prices), path)
        return Allocation(text, priced, path if table is None else give(table, kind), kind)


def allocation_request(
    *,
    maximize: str | None = None,
    budget: Mapping[str, float] | None = None,
    rate: Mapping[str, float] | None = None,
    cap: Mapping[str, float] | None = None,
    floor: Mapping[str, float] | None = None,
    eligible: Mapping[str, str] | None = None,
    policy: Policy | Sequence[Policy] | None = None,
    control: Policy | None = None,
    id: str | Sequence[str] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """An allocation as the native part is asked for it; ``settings`` have the same names there."""
    return {
        "maximize": maximize or "",
        "budget": dict(budget or {}),
        "rate": dict(rate or {}),
        "cap": dict(cap or {}),
        "floor": dict(floor or {}),
        "eligible": dict(eligible or {}),
        "policy": policy_names(policy),
        "control": None if control is None else policy_name(control),
        "id": [] if id is None else [id] if isinstance(id, str) else list(id),
        **settings,
    }


def _text_of(prices: Mapping[str, Any] | str | os.PathLike[str] | None) -> str | None:
    if prices is None:
        return None
    if isinstance(prices, Mapping):
        return json.dumps(dict(prices))
    with open(prices, encoding="utf-8") as file:
        return file.read()
