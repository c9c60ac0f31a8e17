"""Allocations: the same as on the command line, by the same names, in frames of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import polars
import pytest

import poul


def spent(model: poul.Poul, rides: poul.Simulation) -> float:
    """A budget that binds: part of what the best for every user would cost."""
    free = model.allocate(rides.test, maximize="gmv")
    return 0.3 * max(free.value["cost"], 1.0)


def test_a_budget_is_kept_and_its_price_told(model: poul.Poul, rides: poul.Simulation) -> None:
    users = pd.read_parquet(rides.test)
    limit = spent(model, rides)
    found = model.allocate(users, maximize="gmv", budget={"cost": limit})
    (budget,) = found.constraints
    assert budget["used"] <= limit * (1 + 1e-6) and budget["price"] >= 0
    assert found.users == len(users) and found.gap is not None and found.gap >= 0
    frame = found.frame
    assert isinstance(frame, pd.DataFrame)
    assert (frame["share"] * frame["effect_cost"]).sum() == pytest.approx(found.value["cost"], rel=1e-4)
    assert frame["share"].sum() == pytest.approx(len(users))
    assert sum(own["users"] for own in found.policies) == pytest.approx(len(users))
    assert found.curve and all(a["predicted"] <= b["predicted"] + 1e-6 for a, b in zip(found.curve, found.curve[1:]))
    assert "gmv" in found.summary and found.summary in repr(found)


def test_the_kind_of_frame_comes_back(model: poul.Poul, rides: poul.Simulation, tmp_path: Path) -> None:
    users = polars.read_parquet(rides.test)
    found = model.allocate(users, maximize="gmv", cap={"T1": 0.2})
    assert isinstance(found.frame, polars.DataFrame)
    assert (found.frame["policy"] == "T1").mean() <= 0.2
    out = tmp_path / "a.parquet"
    written = model.allocate(rides.test, maximize="gmv", cap={"T1": 0.2}, out=out)
    assert written.frame == str(out)
    assert pd.read_parquet(out)["policy"].tolist() == found.frame["policy"].to_list()


def test_prices_decide_alone(model: poul.Poul, rides: poul.Simulation, tmp_path: Path) -> None:
    users = pd.read_parquet(rides.test)
    found = model.allocate(users, maximize="gmv", budget={"cost": spent(model, rides)})
    again = model.allocate(users, prices=found.prices)
    whole = found.frame[found.frame["share"] == 1]
    same = again.frame.merge(whole, on=list(whole.columns[: whole.columns.get_loc("policy")]))
    assert (same["policy_x"] == same["policy_y"]).mean() > 0.99
    assert again.gap is None
    found.save_prices(tmp_path / "prices.json")
    from_file = model.allocate(users, prices=tmp_path / "prices.json")
    assert from_file.frame["policy"].tolist() == again.frame["policy"].tolist()
    with pytest.raises(poul.UsageError):
        model.allocate(users, prices=found.prices, budget={"cost": 1})
    with pytest.raises(poul.ArgumentError):
        model.allocate(users, maximize="gmv", prices=found.prices)


def test_outcomes_say_what_it_is_worth(model: poul.Poul, rides: poul.Simulation) -> None:
    found = model.allocate(rides.test, maximize="gmv", budget={"cost": spent(model, rides)}, risk=0.3)
    worth = found.evaluation
    assert worth is not None and worth["rows"] == rides.test_rows
    names = [rule["rule"] for rule in worth["rules"]]
    assert names[0] == "this allocation" and len(names) == 5
    assert all(point["lower"] <= point["value"] <= point["upper"] for point in found.curve)
    with pytest.raises(poul.InputError, match="fitted on this very table"):
        model.allocate(rides.train, maximize="gmv")
    forced = model.allocate(rides.train, maximize="gmv", force=True)
    assert forced.evaluation is not None and "flatters" in forced.evaluation["notes"][-1]
    bare = pd.read_parquet(rides.test).drop(columns=["gmv", "cost"])
    assert model.allocate(bare, maximize="gmv").evaluation is None


def test_wrong_limits_are_told(model: poul.Poul, rides: poul.Simulation) -> None:
    for limits in (
        {"budget": {"csot": 1.0}},
        {"cap": {"nobody": 0.5}},
        {"floor": {"T1": 0.7, "T2": 0.7}},
        {"risk": 2.0},
        {"eligible": {"T1": "no_such_column > 3"}},
        {"group": "no_such_column", "group_budgets": {"group": ["a"], "cost": [1.0]}},
    ):
        with pytest.raises(poul.PoulError):
            model.allocate(rides.test, maximize="gmv", **limits)
    with pytest.raises(poul.PoulError):
        model.allocate(rides.test)


def test_the_curve_is_drawn(model: poul.Poul, rides: poul.Simulation) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    found = model.allocate(rides.test, maximize="gmv", budget={"cost": spent(model, rides)}, points=5)
    assert len(found.curve) == 5
    axes = found.plot()
    assert axes.get_xlabel() == "budget"
    plt.close(axes.figure)
    with pytest.raises(poul.ArgumentError):
        model.allocate(rides.test, maximize="gmv").plot()
    json.dumps(found.to_dict())
