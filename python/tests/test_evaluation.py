"""Evaluations, comparisons, plots."""

from __future__ import annotations

import json

import matplotlib
import numpy as np
import pandas as pd
import pytest

import poul

matplotlib.use("agg")


@pytest.fixture(scope="module")
def evaluation(model: poul.Poul, rides: poul.Simulation) -> poul.Evaluation:
    return model.evaluate(rides.test, draws=20, cost_curve=("gmv", "cost"))


def test_numbers_tables_and_files(evaluation: poul.Evaluation, rides: poul.Simulation, tmp_path) -> None:
    assert evaluation.rows == rides.test_rows and evaluation.level == 0.9
    metrics = evaluation.metrics("gmv", "T1")
    low, high = metrics["auuc_interval"]
    assert low <= metrics["auuc"] <= high and metrics["against"] == "control"
    assert len(evaluation.metrics("gmv")["policies"]) > 1
    with pytest.raises(ValueError, match="which outcome"):
        evaluation.metrics()
    with pytest.raises(ValueError, match="nothing is known"):
        evaluation.metrics("gmv", "T99")
    evaluation.save(tmp_path / "metrics.json")
    assert json.loads((tmp_path / "metrics.json").read_text()) == evaluation.to_dict()
    table = pd.DataFrame(evaluation.table())
    assert {"outcome", "policy", "auuc"} <= set(table.columns)
    assert "AUUC" in repr(evaluation) and "Effects are against control" in repr(evaluation)
    assert "<svg" in evaluation._repr_html_() and "<table" in evaluation._repr_html_()
    assert evaluation.cost_curves


@pytest.mark.parametrize("kind", ["gain", "calibration"])
def test_plots(evaluation: poul.Evaluation, kind: str) -> None:
    import matplotlib.pyplot as plt

    axes = evaluation.plot(kind=kind)
    assert len(axes) == 2 and axes[0].get_title().startswith("gmv")
    one = evaluation.plot("gmv", "T1", kind=kind)
    assert "T1 against control" in one.get_title()
    assert evaluation.plot("cost", kind=kind, ax=one) is one
    plt.close("all")
    with pytest.raises(ValueError, match="no plot"):
        evaluation.plot(kind="pie")


def test_effects_of_another_tool_are_measured(model: poul.Poul, rides: poul.Simulation) -> None:
    frame = pd.read_parquet(rides.test)
    frame["tau"] = model.effect(frame, policy="T1")["effect_gmv"].astype(float)
    ours = model.evaluate(frame, policy="T1", draws=20).metrics("gmv", "T1")
    theirs = poul.evaluate(
        frame, {"T1": "tau"}, outcomes="gmv", control="control", policy="T1", draws=20, population=None
    ).metrics("gmv", "T1")
    assert theirs["auuc"] == pytest.approx(ours["auuc"]) and theirs["ate"] == pytest.approx(ours["ate"])
    with pytest.raises(ValueError, match="there is no column `tua`"):
        poul.evaluate(frame, "tua", outcomes="gmv", control="control")


def test_the_truth_is_measured_against() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    frame = pd.DataFrame({"x": rng.normal(size=n), "policy": rng.choice(["control", "a"], n)})
    frame["tau"] = 1 + frame["x"]
    frame["y"] = frame["x"] + frame["tau"] * (frame["policy"] == "a") + rng.normal(size=n)
    model = poul.Learner("ridge", outcomes="y", exclude="tau").fit(frame)
    assert model.evaluate(frame, truth="tau", draws=0).metrics()["normalised_pehe"] < 0.3


def test_learners_side_by_side(rides: poul.Simulation) -> None:
    comparison = poul.compare(
        pd.read_parquet(rides.train),
        ["ridge", "random", poul.Learner("causal-forest", trees=20, nuisance_trees=20)],
        test=pd.read_parquet(rides.test),
        policies=rides.policies,
        outcomes="gmv",
        exclude="cost",
        control="control",
        truth=rides.truth,
        draws=20,
    )
    assert comparison.learners == ["ridge", "random", "causal-forest"] and not comparison.failures
    table = pd.DataFrame(comparison.table())
    assert {"learner", "auuc", "auuc_interval", "auuc_difference"} <= set(table.columns)
    assert "ridge" in repr(comparison) and "<table" in comparison._repr_html_()
    with pytest.raises(ValueError, match="did you mean `ridge`"):
        poul.compare(rides.train, ["rigde"], policies=rides.policies, outcomes="gmv")
    with pytest.raises(TypeError, match="exclude each other"):
        poul.compare(rides.train, test=rides.test, test_share=0.2, outcomes="gmv")
