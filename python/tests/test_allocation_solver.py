"""Allocations beside HiGHS, the solver of linear and integer programs in SciPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix

import poul
from poul import _poul

Limit = tuple[str, int, int | None, float]


@dataclass
class World:
    """Users by policies; policy 0 is the control, which gains and costs nothing."""

    values: NDArray[np.float32]
    loads: NDArray[np.float32]
    groups: NDArray[np.int64]
    eligible: NDArray[np.bool_] | None
    limits: list[Limit]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> World:
        users, policies, loads = rng.integers(1, 41), rng.integers(2, 6), rng.integers(1, 3)
        # Coarse numbers tie; costs may be negative or nothing; costs come in many units.
        coarse = (lambda x: np.round(x * 4) / 4) if rng.random() < 0.3 else (lambda x: x)
        values = coarse(rng.uniform(-1, 2, (users, policies)))
        cost = coarse(rng.uniform(-0.2, 1, (users, policies))) * (rng.random((users, policies)) > 0.1)
        values[:, 0] = cost[:, 0] = 0
        unit = 10.0 ** rng.integers(-2, 4)
        both = np.stack([cost * unit, (cost - rng.uniform(0.2, 0.6) * values) * unit], axis=2)
        eligible = rng.random((users, policies)) > 0.2
        eligible[:, 0] = True
        world = cls(
            values.astype(np.float32),
            both[:, :, :loads].astype(np.float32),
            rng.integers(0, 3, users),
            eligible if rng.random() < 0.5 else None,
            [],
        )
        world.limits = world.draw_limits(rng, unit)
        return world

    def draw_limits(self, rng: np.random.Generator, unit: float) -> list[Limit]:
        users, policies = self.values.shape
        limits: list[Limit] = []
        if rng.random() < 0.7:
            limits.append(("load", 0, None, unit * users * rng.uniform(-0.05, 0.4)))
        if self.loads.shape[2] > 1 and rng.random() < 0.7:
            limits.append(("load", 1, None, 0.0))
        for group in range(3):
            if rng.random() < 0.25:
                limits.append(("load", 0, group, unit * users / 3 * rng.uniform(0, 0.4)))
        for policy in range(1, policies):
            if rng.random() < 0.25:
                limits.append(("users", policy, None, float(np.floor(users * rng.uniform(0, 0.5)))))
            if rng.random() < 0.15:
                limits.append(("minus users", policy, None, -float(np.ceil(users * rng.uniform(0, 0.2)))))
            if rng.random() < 0.15:
                limits.append(("users", policy, 1, float(np.floor(users / 3 * rng.uniform(0, 0.5)))))
        return limits

    def solve(self) -> tuple[list[int], list[tuple[int, int, float]], float, float, list[tuple[float, float, float]]]:
        eligible = None if self.eligible is None else self.eligible.ravel().tolist()
        users, policies = self.values.shape
        values, loads = self.values.ravel().tolist(), self.loads.ravel().tolist()
        shape = (policies, self.loads.shape[2])
        return _poul._solve_allocation(*shape, values, loads, self.limits, self.groups.tolist(), eligible)

    def adds(self, limit: Limit) -> NDArray[np.float64]:
        """What each user and policy adds to a limit."""
        kind, index, group, _ = limit
        users, policies = self.values.shape
        if kind == "load":
            adds = self.loads[:, :, index].astype(np.float64)
        else:
            adds = np.zeros((users, policies))
            adds[:, index] = 1.0 if kind == "users" else -1.0
        return adds if group is None else adds * (self.groups == group)[:, None]

    def program(self):
        """Costs, rows and amounts of limits, and the rows that give every user one policy."""
        users, policies = self.values.shape
        rows = np.array([self.adds(limit).ravel() for limit in self.limits]).reshape(-1, users * policies)
        # Rows in units in which HiGHS is as exact as it can be.
        scale = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-300)
        amounts = np.array([limit[3] for limit in self.limits]) / np.where(scale > 1e-200, scale, 1.0)
        rows = rows / np.where(scale > 1e-200, scale, 1.0)[:, None]
        one = csr_matrix(np.kron(np.eye(users), np.ones(policies)))
        most = np.ones(users * policies) if self.eligible is None else self.eligible.ravel().astype(float)
        return -self.values.astype(np.float64).ravel(), rows, amounts, one, most

    def best_divided(self) -> float | None:
        costs, rows, amounts, one, most = self.program()
        found = linprog(
            costs,
            A_ub=csr_matrix(rows) if len(rows) else None,
            b_ub=amounts if len(rows) else None,
            A_eq=one,
            b_eq=np.ones(one.shape[0]),
            bounds=np.stack([np.zeros_like(most), most], axis=1),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert found.status in (0, 2), found.message
        return -found.fun if found.status == 0 else None

    def best_whole(self) -> float | None:
        costs, rows, amounts, one, most = self.program()
        constraints = [LinearConstraint(one, 1, 1)]
        if len(rows):
            # Sums that are at their amount but for rounding keep to it.
            constraints.append(LinearConstraint(rows, -np.inf, amounts + 1e-9))
        found = milp(
            costs,
            constraints=constraints,
            bounds=Bounds(0, most),
            integrality=np.ones_like(most),
            options={"mip_rel_gap": 0.0},
        )
        assert found.status in (0, 2), found.message
        return -found.fun if found.status == 0 else None


def test_a_thousand_problems_with_every_kind_of_limit_agree_with_highs() -> None:
    rng = np.random.default_rng(3407)
    counts = {"solved": 0, "impossible": 0, "divided only": 0, "whole": 0}
    for number in range(1000):
        world = World.draw(rng)
        best = world.best_divided()
        try:
            policies, divided, value, bound, kept = world.solve()
        except poul.UsageError as error:
            if best is None:
                counts["impossible"] += 1
                assert "cannot" in str(error), f"{number}: {error}"
            else:
                # Possible only with divided users.
                assert "divided" in str(error) or "divides" in str(error), f"{number}: {error}"
                assert world.best_whole() is None, number
                counts["divided only"] += 1
            continue
        assert best is not None, number
        tolerance = 1e-9 * (1 + abs(best))
        assert abs(bound - best) <= tolerance, f"{number}: {bound} {best}"
        assert value <= best + tolerance
        shares = np.zeros(world.values.shape)
        shares[np.arange(len(policies)), policies] = 1.0
        for user, policy, share in divided:
            shares[user, policies[user]] -= share
            shares[user, policy] += share
        assert world.eligible is None or not shares[~world.eligible].any()
        assert abs((shares * world.values).sum() - value) <= tolerance
        for limit, (used, slack, price) in zip(world.limits, kept, strict=True):
            own = (shares * world.adds(limit)).sum()
            size = abs(limit[3]) + np.abs(world.adds(limit)).max()
            assert own <= limit[3] + 1e-11 * size, f"{number}: {limit} {own}"
            assert abs(own - used) <= 1e-9 * size and abs(limit[3] - own - slack) <= 1e-9 * size and price >= 0
        if len(world.values) <= 10 and not divided:
            whole = world.best_whole()
            hull_only = world.loads.shape[2] == 1 and all(kind == "load" for kind, *_ in world.limits)
            assert whole is not None
            assert value <= whole + 1e-6
            assert hull_only or value >= whole - 1e-6, f"{number}: {value} {whole}"
            counts["whole"] += 1
        counts["solved"] += 1
    assert counts["solved"] > 400 and counts["impossible"] > 50 and counts["whole"] > 50, counts


def test_the_path_is_the_linear_program_at_every_budget() -> None:
    rng = np.random.default_rng(7)
    for number in range(40):
        world = World.draw(rng)
        users, policies = world.values.shape
        world.eligible, world.loads = None, world.loads[:, :, :1]
        cost = world.loads[:, :, 0].astype(np.float64)
        least, most = cost.min(axis=1).sum(), cost.max(axis=1).sum()
        budgets = [least - 0.01 * (1 + abs(least)), *np.linspace(least, most, 7)[1:]]
        path = _poul._budget_path(policies, world.values.ravel().tolist(), world.loads.ravel().tolist(), budgets)
        for budget, point in zip(budgets, path, strict=True):
            world.limits = [("load", 0, None, budget)]
            best = world.best_divided()
            assert (point is None) == (best is None), (number, budget)
            if point is None:
                with pytest.raises(poul.UsageError, match="the least amount that works is"):
                    world.solve()
                continue
            load, value, price = point
            assert load <= budget and price >= 0
            assert abs(value - best) <= 1e-9 * (1 + abs(best)), (number, budget)
            _, divided, own, bound, _ = world.solve()
            assert len(divided) <= 1 and abs(own - best) <= 1e-9 * (1 + abs(best)) and own <= bound


def test_limits_of_an_unknown_kind_are_refused() -> None:
    with pytest.raises(poul.UsageError, match="do not add up"):
        _poul._solve_allocation(1, 1, [0.0], [0.0], [("profit", 0, None, 1.0)])
