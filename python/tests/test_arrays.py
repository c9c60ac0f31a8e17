"""The vocabulary of EconML."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import poul


def experiment(n: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    T = rng.integers(0, 3, n)
    Y = X[:, 0] + T * (1.0 + X[:, 1]) + 0.1 * rng.normal(size=n)
    return Y, T, X


def ridge(**parameters: object) -> poul.Learner:
    return poul.Learner("ridge", **parameters)


def test_effects_are_found() -> None:
    Y, T, X = experiment()
    model = ridge().fit(Y, T, X=X)
    tau = model.effect(X, T0=0, T1=2)
    assert tau.shape == (4000,) and tau.dtype == np.float32
    assert np.corrcoef(tau, 2 + 2 * X[:, 1])[0, 1] > 0.98
    assert abs(model.ate(X, T0=0, T1=1) - 1) < 0.1
    np.testing.assert_allclose(model.effect(X, T0=2, T1=0), -tau, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.effect(X, T0=1, T1=1), 0)
    np.testing.assert_array_equal(model.effect(X), model.effect(X, T0=0, T1=1))
    assert model.control_ == "0"


def test_treatments_may_differ_from_row_to_row() -> None:
    Y, T, X = experiment(600)
    model = ridge().fit(Y, T, X=X)
    T1 = np.random.default_rng(2).integers(0, 3, 600)
    found = model.effect(X, T0=np.zeros(600, dtype=int), T1=T1)
    for value in range(3):
        np.testing.assert_array_equal(found[T1 == value], model.effect(X, T0=0, T1=value)[T1 == value])


def test_names_and_containers_do_not_matter() -> None:
    Y, T, X = experiment(600)
    plain = ridge().fit(Y, T, X=X).effect(X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = ridge().fit(Y=pd.Series(Y, name="spend"), T=pd.DataFrame({"arm": T}), X=frame)
    assert (named.outcomes_, named.feature_names_in_, named.n_features_in_) == (["spend"], ["a", "b", "c"], 3)
    np.testing.assert_array_equal(named.effect(frame, T0=0, T1=1), plain)
    np.testing.assert_array_equal(named.effect(X), plain)
    np.testing.assert_array_equal(ridge().fit(Y, T, X=np.asfortranarray(X)).effect(X), plain)
    with pytest.raises(ValueError, match="2 columns instead of 3"):
        named.effect(X[:, :2])


def test_booleans_and_labels_are_treatments() -> None:
    Y, T, X = experiment(600)
    as_bool = ridge().fit(Y, T > 0, X=X)
    as_int = ridge().fit(Y, (T > 0).astype(int), X=X)
    as_float = ridge().fit(Y, (T > 0).astype(float), X=X)
    for other in (as_bool, as_float):
        np.testing.assert_array_equal(other.effect(X, T0=False, T1=True), as_int.effect(X, T0=0, T1=1))
    words = np.array(["none", "sms", "mail"])[T]
    model = ridge(control="none").fit(Y, words, X=X)
    assert model.effect(X, T0="none", T1="mail").mean() > model.effect(X, T0="none", T1="sms").mean()


def test_several_columns_are_a_factorial_design() -> None:
    rng = np.random.default_rng(3)
    n = 3000
    X, T = rng.normal(size=(n, 2)), rng.integers(0, 2, (n, 2))
    Y = T[:, 0] + 3 * T[:, 1] + 0.1 * rng.normal(size=n)
    model = ridge().fit(Y, T, X=X)
    assert abs(model.ate(X, T0=(0, 0), T1=(1, 1)) - 4) < 0.1
    assert abs(model.ate(X, T0=(1, 0), T1=(0, 1)) - 2) < 0.1
    with pytest.raises(ValueError, match="a treatment has 2 values"):
        model.effect(X, T0=0, T1=1)


def test_several_outcomes_and_weights() -> None:
    Y, T, X = experiment(800)
    model = ridge().fit(np.column_stack([Y, -2 * Y]), T, X=X, sample_weight=np.ones(800), groups=np.arange(800))
    tau = model.effect(X, T0=0, T1=1)
    assert tau.shape == (800, 2) and model.ate(X).shape == (2,)
    # The outcome model is one network with a head for each outcome, which starts from weights of its own: outcomes that
    # are multiples have effects that are so too up to what that network left unexplained, not to the last digit.
    assert np.corrcoef(tau[:, 0], tau[:, 1])[0, 1] < -0.999
    for effects, truth in ((tau[:, 0], 1 + X[:, 1]), (tau[:, 1], -2 - 2 * X[:, 1])):
        assert np.sqrt(np.mean((effects - truth) ** 2)) < 0.15 * np.std(truth)


def test_units_of_the_outcome_do_not_matter() -> None:
    Y, T, X = experiment(600)
    expected = 4 * ridge().fit(Y, T, X=X).effect(X, T0=0, T1=1)
    np.testing.assert_allclose(ridge().fit(4 * Y, T, X=X).effect(X, T0=0, T1=1), expected, rtol=1e-6)


def test_intervals_hold_the_effect() -> None:
    Y, T, X = experiment(600)
    model = poul.Poul(members=3, epochs=3, folds=2).fit(Y, T, X=X)
    lower, upper = model.effect_interval(X, T0=0, T1=2, alpha=0.1)
    tau = model.effect(X, T0=0, T1=2)
    assert np.all(lower <= tau) and np.all(tau <= upper)
    wider, _ = model.effect_interval(X, T0=0, T1=2, alpha=0.01)
    assert np.all(wider <= lower)
    with pytest.raises(ValueError, match="alpha"):
        model.effect_interval(X, alpha=2)


def test_an_evaluation_of_arrays() -> None:
    Y, T, X = experiment(2000)
    model = ridge().fit(Y[:1000], T[:1000], X=X[:1000])
    evaluation = model.evaluate(Y[1000:], T[1000:], X=X[1000:], draws=20)
    assert evaluation.metrics(policy="2")["auuc"] > 0.6
