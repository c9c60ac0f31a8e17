"""Real clients: DoWhy's estimators and refuters, and EconML's tests of effects, around learners of this package."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import poul

warnings.filterwarnings("ignore")

LEARNERS = {
    "poul": lambda: poul.Poul(design="observational", members=2, epochs=15, folds=2),
    "ridge": lambda: poul.Learner("ridge", design="observational"),
    "causal-forest": lambda: poul.Learner("causal-forest", design="observational", trees=200),
}


def confounded(n: int = 3000) -> pd.DataFrame:
    """A treatment of effect 2 that follows a feature which drives the outcome too."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    treated = (rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    y = 2 * treated + 3 * x[:, 0] + x[:, 1] + rng.normal(size=n)
    return pd.DataFrame({"x0": x[:, 0], "x1": x[:, 1], "x2": x[:, 2], "t": treated, "y": y})


@pytest.mark.parametrize("name", LEARNERS)
def test_dowhy_estimates_and_refutes(name: str) -> None:
    from dowhy import CausalModel
    from dowhy.causal_estimators.econml import Econml
    from dowhy.causal_refuters import refute_placebo_treatment, refute_random_common_cause

    data = confounded()
    causes = ["x0", "x1", "x2"]
    graph = CausalModel(data, treatment="t", outcome="y", common_causes=causes, effect_modifiers=causes)
    estimand = graph.identify_effect(proceed_when_unidentifiable=True)
    estimand.set_identifier_method("backdoor")
    estimator = Econml(estimand, econml_estimator=LEARNERS[name]())
    estimator.fit(data, effect_modifier_names=causes)
    estimate = estimator.estimate_effect(data, treatment_value=1, control_value=0, target_units="ate")
    naive = data[data.t == 1].y.mean() - data[data.t == 0].y.mean()
    assert naive > 4 and abs(estimate.value - 2) < 0.5, (naive, estimate.value)
    common = refute_random_common_cause(data, estimand, estimate, num_simulations=2, random_state=0)
    assert abs(common.new_effect - estimate.value) < 0.5
    placebo = refute_placebo_treatment(
        data, estimand, estimate, treatment_names=["t"], placebo_type="permute", num_simulations=2, random_state=np.random.RandomState(0)
    )
    assert abs(placebo.new_effect) < 0.5, placebo.new_effect


def test_econml_tests_the_effects() -> None:
    from econml.validate import DRTester
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    rng = np.random.default_rng(0)
    n = 3000
    X, T = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    Y = X[:, 0] + T * (1 + 2 * X[:, 1]) + rng.normal(size=n)
    train, test = slice(0, n // 2), slice(n // 2, n)
    model = poul.Learner("ridge").fit(Y[train], T[train], X=X[train])
    tester = DRTester(
        model_regression=GradientBoostingRegressor(random_state=0),
        model_propensity=GradientBoostingClassifier(random_state=0),
        cate=model,
    )
    tester.fit_nuisance(X[test], T[test], Y[test], X[train], T[train], Y[train])
    blp = tester.evaluate_blp(X[test], X[train])
    assert blp.params[0] > 0.5 and blp.pvals[0] < 0.01, (blp.params, blp.pvals)


def test_a_client_of_both_vocabularies_agrees() -> None:
    data = confounded(1000)
    X, T, Y = data[["x0", "x1", "x2"]], data["t"], data["y"]
    from econml.dml import LinearDML

    theirs = LinearDML(discrete_treatment=True, random_state=0).fit(Y, T, X=X)
    ours = LEARNERS["ridge"]().fit(Y, T, X=X)
    assert theirs.effect(X, T0=0, T1=1).shape == ours.effect(X, T0=0, T1=1).shape
    assert abs(theirs.ate(X, T0=0, T1=1) - ours.ate(X, T0=0, T1=1)) < 0.6
