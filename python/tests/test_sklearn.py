"""The conventions of scikit-learn: its own checks where they apply, parameters, clones, pickles."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import poul
from poul._settings import PoulSettings, defaults

#: The checks that do not fit on (X, y): a treatment is no part of scikit-learn's conventions.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("name", CHECKS)
def test_estimator_checks(name: str) -> None:
    check = getattr(estimator_checks, name)
    try:
        check("Poul", poul.Poul())
    except estimator_checks.SkipTest as skipped:
        pytest.skip(str(skipped))


def test_values_are_checked_by_fitting_not_before() -> None:
    # scikit-learn's check_do_not_raise_errors_in_init_or_set_params takes `**settings` for an argument called `settings`.
    tables = defaults("poul")
    names = [*poul.Poul().get_params(), *tables["model"], *tables["training"]]
    for value in (-1, 3.0, "helloworld", np.array([1.0, 4.0]), [1], {}, []):
        parameters = {name: value for name in names}
        learner = poul.Poul(**parameters).set_params(**parameters)
        assert learner.get_params().keys() == parameters.keys() and "members=" in repr(learner)


def test_clones_have_the_parameters_and_nothing_learned(model: poul.Poul) -> None:
    copied = clone(model)
    assert copied.get_params() == model.get_params() and copied._model is None
    check_is_fitted(model)
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(copied)
    forest = poul.Learner("causal-forest", trees=100, outcomes="y")
    assert repr(clone(forest)) == repr(forest) == "Learner('causal-forest', outcomes='y', trees=100)"
    stack = poul.Learner("stack", of=["ridge", "constant"], outcomes="y")
    assert repr(clone(stack)) == repr(stack) == "Learner('stack', of=['ridge', 'constant'], outcomes='y')"


def test_parameters_are_set() -> None:
    learner = poul.Poul().set_params(members=3, outcomes=["y"], learning_rate=0.01)
    assert learner.get_params()["members"] == 3
    assert repr(learner) == "Poul(learning_rate=0.01, members=3, outcomes=['y'])"


def test_pickles_and_copies_give_the_same_effects(model: poul.Poul, rides: poul.Simulation) -> None:
    expected = model.effect(rides.test, policy="T2").to_pandas()["effect_gmv"]
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        found = again.effect(rides.test, policy="T2").to_pandas()["effect_gmv"]
        np.testing.assert_array_equal(found, expected)
        assert again.get_params() == model.get_params()


def test_notebooks_see_the_main_numbers(model: poul.Poul) -> None:
    html = model._repr_html_()
    assert "1,500" in html and "gmv" in html and "control" in html
    assert "not fitted" in poul.Poul(outcomes="<b>")._repr_html_() and "<b>" not in poul.Poul(outcomes="<b>")._repr_html_()


@pytest.mark.parametrize("name", list(poul.learners()))
def test_every_setting_has_one_place(name: str) -> None:
    tables = defaults(name)
    assert not set(tables["model"]) & set(tables["training"])
    arguments = set(poul.Learner._arguments()) | set(dir(poul.Learner))
    assert not arguments & (set(tables["model"]) | set(tables["training"]))


def test_model_selection_goes_by_the_r_score(rides: poul.Simulation) -> None:
    data = pd.read_parquet(rides.train).head(900)
    ridge = poul.Learner("ridge", outcomes="gmv", exclude="cost", control="control", policies=rides.policies)
    scores = cross_val_score(ridge, data, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.shape == (3,) and np.isfinite(scores).all() and (scores < 1).all()
    search = GridSearchCV(ridge, {"folds": [2, 3]}, cv=2).fit(data)
    assert search.best_params_["folds"] in (2, 3) and np.isfinite(search.best_score_)
    assert len(search.best_estimator_.effect(data, policy="T1")) == len(data)
    # Effects that have nothing to do with the outcome explain less.
    fitted = clone(ridge).fit(data)
    shuffled = data.assign(gmv=data["gmv"].sample(frac=1, random_state=0).to_numpy())
    assert fitted.score(data) > clone(ridge).fit(shuffled).score(data)
    two = clone(ridge).set_params(outcomes=["gmv", "cost"], exclude=None).fit(data)
    assigned = [own["r_score"] for own in two.evaluate(data, draws=0, checks=False).assigned if own["policies"] == "all"]
    assert len(assigned) == 2 and two.score(data) == pytest.approx(sum(assigned) / 2)


def test_the_stubs_name_every_setting() -> None:
    tables = defaults("poul")
    assert list(PoulSettings.__annotations__) and set(PoulSettings.__annotations__) == {
        *tables["model"],
        *tables["training"],
    }


def test_every_setting_is_explained() -> None:
    explained = {
        name.strip()
        for line in (poul.Poul.__doc__ or "").splitlines()
        if line.startswith("    ") and not line.startswith("     ")
        for name in line.split(",")
    }
    tables = defaults("poul")
    assert not {*tables["model"], *tables["training"]} - explained
