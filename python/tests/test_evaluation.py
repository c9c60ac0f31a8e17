"""Evaluations, comparisons, plots."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess

import matplotlib
import numpy as np
import pandas as pd
import pytest

import poul

matplotlib.use("agg")


@pytest.fixture(scope="module")
def evaluation(model: poul.Poul, rides: poul.Simulation) -> poul.Evaluation:
    return model.evaluate(rides.test, draws=20, cost_curve=("gmv", "cost"), by=["core", "avg_fare"])


def cli(command_line: str, *words: object) -> dict:
    """The JSON of a command."""
    done = subprocess.run([command_line, *map(str, words), "--json", "-", "-q"], check=True, capture_output=True)
    return json.loads(done.stdout)


def without_command(document: dict) -> dict:
    return {**document, "provenance": {**document["provenance"], "command": ""}}


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
    assert (tmp_path / "metrics.json").read_text(encoding="utf-8") == evaluation.to_json() + "\n"
    assert json.loads(evaluation.to_json()) == evaluation.to_dict()
    table = pd.DataFrame(evaluation.table())
    assert {"outcome", "policy", "auuc"} <= set(table.columns)
    assert "AUUC" in repr(evaluation) and "Effects are against control" in repr(evaluation)
    assert "<svg" in evaluation._repr_html_() and "<table" in evaluation._repr_html_()
    assert evaluation.cost_curves


def test_a_model_measures_as_on_the_command_line(
    evaluation: poul.Evaluation, model: poul.Poul, rides: poul.Simulation, command_line: str, tmp_path
) -> None:
    model.save(tmp_path / "m.poul")
    theirs = cli(command_line, "evaluate", tmp_path / "m.poul", rides.test, "--draws", "20", "--cost-curve", "gmv,cost",
                 "--by", "core", "--by", "avg_fare")  # fmt: skip
    ours = evaluation.to_dict()
    assert list(ours) == list(theirs)
    assert {"results", "pooled", "cost_curves", "averages", "who_gains", "validation", "policies", "atoms"} < set(ours)
    for key, value in without_command(theirs).items():
        assert ours[key] == value, key
    assert theirs["provenance"]["command"].startswith("poul evaluate ")


def test_columns_measure_as_on_the_command_line(command_line: str, tmp_path) -> None:
    frame = experiment()
    frame.to_parquet(tmp_path / "scored.parquet")
    theirs = cli(command_line, "evaluate", tmp_path / "scored.parquet", "--effects", "a=tau", "--truth", "a=truth",
                 "--outcome", "y", "--by", "city", "--draws", "20", "--level", "0.8", "--seed", "8")  # fmt: skip
    settings = {"truth": {"a": "truth"}, "outcomes": "y", "by": ["city"], "draws": 20, "level": 0.8, "seed": 8}
    assert poul.evaluate(tmp_path / "scored.parquet", {"a": "tau"}, **settings).to_dict() == without_command(theirs)
    in_memory = poul.evaluate(frame, {"a": "tau"}, **settings).to_dict()
    assert in_memory.pop("provenance")["files"][0][0] == "a table in memory (test)"
    theirs.pop("provenance")
    assert in_memory == theirs


def experiment(n: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"policy": rng.choice(["control", "a"], n), "city": rng.choice(["Oslo", "Rome"], n)})
    frame["x"] = rng.normal(size=n)
    frame["truth"] = 1 + frame["x"]
    frame["tau"] = frame["truth"] + rng.normal(size=n)
    frame["y"] = frame["x"] + frame["truth"] * (frame["policy"] == "a") + rng.normal(size=n)
    return frame


def test_averages_come_back_as_the_frame_that_was_given() -> None:
    import polars
    import pyarrow

    frame = experiment()
    measure = {"outcomes": "y", "by": "city", "draws": 0}
    averages = poul.evaluate(frame, "tau", **measure).averages
    assert isinstance(averages, pd.DataFrame)
    whole = averages[averages["by"].isna()]
    assert len(whole) == 1 and whole["group"].isna().all() and whole["rows"].item() == len(frame)
    row = whole.iloc[0]
    assert row["lower"] < row["effect"] < row["upper"] and row["band_lower"] <= row["lower"]
    assert abs(row["effect"] - 1) < 4 * row["se"]
    cities = averages[averages["by"] == "city"]
    assert sorted(cities["group"]) == ["Oslo", "Rome"] and cities["rows"].sum() == len(frame)
    assert (averages["by"] == "predicted effect").sum() == 10
    assert averages["rows"].dtype.kind == "i"
    kinds = {
        polars.DataFrame: polars.from_pandas(frame),
        pyarrow.Table: pyarrow.Table.from_pandas(frame),
        dict: {name: frame[name].to_numpy() for name in frame},
    }
    for kind, given in kinds.items():
        found = poul.evaluate(given, "tau", **measure).averages
        assert isinstance(found, kind)
        np.testing.assert_allclose(np.asarray(found["effect"], dtype=float), averages["effect"])


def test_a_model_is_checked_unless_told_not_to(evaluation: poul.Evaluation) -> None:
    assert isinstance(evaluation.averages, poul.Table) and evaluation.averages.to_pandas()["by"].eq("avg_fare").any()
    assert {check["verdict"] for check in evaluation.checks} <= {"pass", "doubt", "fail"}
    assert evaluation.validation is not None and evaluation.validation["checks"] == evaluation.checks
    assert {own["policy"] for own in evaluation.who_gains} == {"T1", "T1_peak", "T2"}
    assert evaluation.atoms and evaluation.policies and evaluation.provenance["learner"] == "poul"
    html = evaluation._repr_html_()
    assert "Average effects over all rows" in html and "by group" in html and "Can it be trusted?" in html
    assert "Average effects over all rows" in repr(evaluation)

    frame = experiment()
    ridge = poul.Learner("ridge", outcomes="y", exclude=["tau", "truth"]).fit(frame)
    plain = ridge.evaluate(frame, draws=0, checks=False)
    assert plain.checks == [] and plain.validation is None and not plain.policies
    assert "Can it be trusted?" not in plain._repr_html_()
    full = ridge.evaluate(frame, draws=0, placebo=1)
    assert full.validation is not None and full.validation["placebo"][0]["outcome"] == "y"
    arrays = poul.Learner("ridge").fit(frame["y"], frame["policy"], X=frame[["x"]])
    own = arrays.evaluate(frame["y"], frame["policy"], X=frame[["x"]], draws=0)
    assert isinstance(own.averages, poul.Table) and own.checks


def test_designs_are_those_of_the_fit(caplog: pytest.LogCaptureFixture) -> None:
    frame = experiment()
    frame["p_control"], frame["p_a"] = 0.5, 0.5
    roles = {"outcomes": "y", "exclude": ["tau", "truth"], "design": "observational", "propensity": "p_*"}
    model = poul.Learner("ridge", **roles).fit(frame)
    assert model.evaluate(frame, draws=0).provenance["design"] == "observational"
    with caplog.at_level(logging.WARNING, logger="poul"):
        model.evaluate(frame.drop(columns=["p_control", "p_a"]), draws=0, checks=False)
        without = poul.evaluate(frame, "tau", outcomes="y", design="observational", draws=0)
    assert any("no column like `p_*`" in record.message for record in caplog.records)
    assert any("columns of probabilities (`propensity`)" in record.message for record in caplog.records)
    assert len(without.averages) == 0


def test_what_is_wrong_is_told_in_the_words_of_python() -> None:
    frame = experiment()
    model = poul.Learner("ridge", outcomes="y", exclude=["tau", "truth"]).fit(frame)
    for wrong, message in [
        ({"by": "cty"}, "^`by`: there is no column `cty`\nhint: did you mean `city`"),
        ({"by": ["city", "city"]}, "^`by`: `city` is named twice"),
        ({"by": "y"}, "^`by`: `y` is an outcome"),
        ({"placebo": 1, "checks": False}, "one of the checks.*\nhint: leave `placebo` out"),
        ({"min_rows": 0}, "`min_rows` is 0"),
        ({"level": 2.0}, "level"),
        ({"cost_curve": ("y", "x")}, "^`cost_curve`: `x` is not an outcome\nhint: name it as one too: outcomes=\"x\""),
        ({"policy": "a", "against": "a"}, "itself"),
        ({"memory": 3}, "no argument `memory`"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            model.evaluate(frame, **{"draws": 0, **wrong})
    for wrong, message in [
        ({"placebo": 1}, "a placebo needs a model"),
        ({"against": "b"}, "^`against`: unknown policy `b`"),
        ({"cost_curve": "y,x"}, "must be two outcomes"),
        ({"wieght": "x"}, "no argument `wieght`\nhint: did you mean `weight`"),
        ({"truth": 3}, "`truth` must be a column"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            poul.evaluate(frame, "tau", outcomes="y", **wrong)


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


def test_reports_are_written_of_an_evaluation_or_of_rows(model: poul.Poul, rides: poul.Simulation, tmp_path) -> None:
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="nothing to report on yet"):
        again.report(tmp_path / "report.html")
    again.report(tmp_path / "rows.html", rides.test, draws=0)
    again.report(tmp_path / "last.html")
    again.evaluate(rides.test, draws=0).report(tmp_path / "evaluation.html")
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("rows.html", "last.html", "evaluation.html")]
    assert pages[0].startswith("<!DOCTYPE html>") and "Policies against control" in pages[0]
    assert pages[0] == pages[1] == pages[2]
    with pytest.raises(OSError):
        again.report(tmp_path / "no" / "report.html")
