"""Sets of policies, from files, mappings and columns."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import poul

TREE = {"control": {"*": "none"}, "T2": {"*": "none", "peak": "upgrade", "night": {"upgrade": 0.5, "none": 0.5}}}
WEIGHTS = {"peak": 3, "night": 1}


@pytest.fixture
def policies() -> poul.Policies:
    return poul.Policies(TREE, contexts=WEIGHTS)


def test_files_mappings_and_pickles_are_the_same_set(policies: poul.Policies, tmp_path) -> None:
    path = tmp_path / "policies.toml"
    path.write_text(policies.to_toml())
    assert poul.Policies.read(path) == policies
    assert poul.Policies.from_dict({"policies": TREE, "contexts": WEIGHTS}) == policies
    assert poul.Policies.from_dict(policies.to_dict()) == policies
    assert pickle.loads(pickle.dumps(policies)) == policies
    assert poul.Policies({"control": {"peak": "none"}}) != policies


def test_the_long_form_takes_weights_from_a_second_file(policies: poul.Policies, tmp_path) -> None:
    rows = "control,peak,none,1\ncontrol,night,none,1\nT2,peak,upgrade,1\nT2,night,upgrade,0.5\nT2,night,none,0.5\n"
    (tmp_path / "p.csv").write_text("policy,context,action,probability\n" + rows)
    (tmp_path / "w.csv").write_text("context,weight\npeak,3\nnight,1\n")
    assert poul.Policies.read(tmp_path / "p.csv", contexts=tmp_path / "w.csv") == policies


def test_what_a_set_says(policies: poul.Policies) -> None:
    assert (policies.names, policies.actions, len(policies)) == (["T2", "control"], ["none", "upgrade"], 2)
    assert policies.contexts == {"night": 0.25, "peak": 0.75}
    assert list(policies) == policies.names and "T2" in policies and "T3" not in policies
    assert policies.distance("control", "T2") == policies.distance("T2", "control") == 1.75
    diff = policies.diff("control", "T2")
    assert [change["context"] for change in diff["contexts"]] == ["night", "peak"] and diff["distance"] == 1.75
    assert sum(policies.mixture("T2").values()) == pytest.approx(1)
    assert "upgrade" in policies._repr_html_()
    assert policies.aliases() == []


def test_factorial_columns() -> None:
    frame = pd.DataFrame({"Job": ["nurse", "cook", "cook"], "Age": [30, 40, 40], "y": [1, 2, 3]})
    policies = poul.Policies.from_columns(frame, ["Job", "Age"])
    assert policies.names == ["Age=30, Job=nurse", "Age=40, Job=cook"]
    weighted = poul.Policies.from_columns(frame, ["Job", "Age"], contexts={"Job": 3, "Age": 1})
    assert weighted.contexts == {"Age": 0.25, "Job": 0.75}


def test_new_policies_are_laid_beside_known_ones(policies: poul.Policies) -> None:
    both = policies.union({"T3": {"*": "upgrade"}})
    assert both.names == ["T2", "T3", "control"] and both.contexts == policies.contexts
    with pytest.raises(ValueError, match="unknown context"):
        policies.union({"T3": {"*": "none", "noon": "upgrade"}})


def test_mistakes_are_told(policies: poul.Policies) -> None:
    with pytest.raises(ValueError, match="did you mean `T2`"):
        policies.distance("control", "t2")
    with pytest.raises(ValueError, match="sum to 0.9"):
        poul.Policies({"a": {"s": {"x": 0.5, "y": 0.4}}})
    with pytest.raises(TypeError, match="not JSON serializable"):
        poul.Policies({"a": {"s": object()}})
    with pytest.raises(FileNotFoundError):
        poul.Policies.read("no.toml")


def test_a_policy_that_nobody_has_run_is_scored(model: poul.Poul, rides: poul.Simulation) -> None:
    run = model.policies_
    mixed: dict[str, dict[str, float]] = {}
    for name in ("T1", "T2"):
        for (context, action), mass in run.mixture(name).items():
            actions = mixed.setdefault(context, {})
            actions[action] = actions.get(action, 0) + 0.5 * mass / run.contexts[context]
    found = model.effect(rides.test, policies={"mixed": mixed}).to_pandas()
    assert set(found["policy"]) == {"mixed"} and np.isfinite(found["effect_gmv"]).all()
    (support,) = model.support(policies={"mixed": mixed})
    assert support["policy"] == "mixed" and support["unseen_share"] == 0 and support["distance"] > 0
    (certificate,) = model.certify(policies={"mixed": mixed}, nearest=2)
    assert certificate["rows"] == 0 and len(certificate["nearest"]) == 2
    assert certificate["nearest"][0]["distance"] == pytest.approx(support["distance"])
    own = poul.Policies({"mixed": mixed, **{name: run.to_dict()["policies"][name] for name in ("T1",)}}, contexts=run.contexts)
    assert own.certify("mixed", model)["verdict"] == certificate["verdict"]
    with pytest.raises(ValueError, match="min_rows"):
        model.certify("T1", min_rows=0)
