"""What is wrong with input is told as the fitting exception, in the library's words; nothing panics."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import poul
from conftest import QUICK


def frame(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"policy": rng.choice(["control", "a"], n), "y": rng.normal(size=n), "x": rng.normal(size=n)}
    )


def ridge(**parameters: object) -> poul.Learner:
    return poul.Learner("ridge", **{"outcomes": "y", **parameters})


def changed(**columns: object) -> pd.DataFrame:
    return frame().assign(**columns)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(x=[1, "a"] * 100), "column `x`: mixes types: row 0 is a number, row 1 is text (counted from 0)"),
        (changed(x=[b"1"] * 200), "column `x`: row 0 (counted from 0): is a Python `bytes`"),
        (changed(y=np.nan), "outcome"),
        (changed(y="high"), "column `y`: is text, but outcome must be numeric"),
        (frame().rename(columns={"x": "y"}), "two columns are called `y`"),
        (frame().drop(columns="policy"), "there is no column `policy`"),
        (changed(policy="control"), "every row has the policy `control`"),
        (changed(y=1.0), "outcome `y`: is 1 in every row"),
        (frame(0), ""),
        (changed(x=[[1]] * 200), "column `x`: row 0 (counted from 0): is a Python `list`"),
        (changed(x=[True, 1.5] * 100), "column `x`: mixes types: row 0 is true or false, row 1 is a number (counted from 0)"),
        (changed(policy=["control", 1] * 100), "column `policy`: mixes types: row 0 is text, row 1 is a number (counted from 0)"),
    ],
)
def test_bad_frames_are_value_errors(data: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        ridge().fit(data)
    assert message in str(caught.value)
    assert isinstance(caught.value, poul.PoulError)


def test_nan_outcomes_name_the_row() -> None:
    data = frame()
    data.loc[6, "y"] = np.nan
    with pytest.raises(poul.InputError, match=r"row 6 \(counted from 0\)"):
        ridge().fit(data)
    with pytest.raises(poul.InputError, match=r"row 6 \(counted from 0\)"):
        poul.Learner("ridge").fit(data["y"].to_numpy(), data["policy"].to_numpy(), X=data[["x"]].to_numpy())
    with pytest.raises(poul.InputError, match=r"row 6 \(counted from 0\)"):
        ridge().fit(frame()).evaluate(data)


def test_unknown_names_come_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean `members`"):
        poul.Poul(member=3)
    with pytest.raises(TypeError, match="did you mean `outcomes`"):
        ridge().fit(frame(), outcome="y")
    with pytest.raises(TypeError, match="did you mean `epochs`"):
        poul.Poul().set_params(epoch=3)
    with pytest.raises(ValueError, match="did you mean `causal-forest`"):
        poul.Learner("causal-forrest")
    with pytest.raises(ValueError, match="did you mean `ridge`"):
        poul.Learner("stack", of=["rigde", "constant"], outcomes="y").fit(frame())
    with pytest.raises(ValueError, match="`ridge` is named twice"):
        poul.Learner("stack", of=["ridge", "ridge"], outcomes="y").fit(frame())
    with pytest.raises(ValueError, match="did you mean `control`"):
        ridge(control="contrl").fit(frame())
    with pytest.raises(TypeError, match="`W` is not told apart"):
        ridge().fit(frame()["y"], frame()["policy"], X=frame()[["x"]], W=frame()[["x"]])


def test_functions_know_their_keywords_too(model: poul.Poul, rides: poul.Simulation) -> None:
    for call, meant in (
        (lambda: model.effect(rides.test, polcy="T1"), "policy"),
        (lambda: model.effect_interval(rides.test, alhpa=0.1), "alpha"),
        (lambda: model.ate(rides.test, To=0), "T0"),
        (lambda: model.evaluate(rides.test, outcome="gmv"), "outcomes"),
        (lambda: model.certify("T1", min_row=3), "min_rows"),
        (lambda: model.fit(rides.train, warmstart=model), "warm_start"),
        (lambda: poul.compare(rides.train, seed_=2), "seed"),
        (lambda: poul.simulate(rides.folder / "x", row=3), "rows"),
    ):
        with pytest.raises(TypeError, match=f"did you mean `{meant}`") as caught:
            call()
        assert isinstance(caught.value, poul.PoulError)


def test_columns_of_one_name_are_told_for_every_kind_of_frame() -> None:
    data = frame()
    twice = pa.Table.from_arrays([pa.array(data[name]) for name in ("policy", "y", "x", "x")], names=["policy", "y", "x", "x"])
    for table in (twice, twice.to_reader(), twice.to_batches()[0], data.set_axis(["policy", "y", "y"], axis=1)):
        with pytest.raises(poul.InputError, match="two columns are called `[xy]`"):
            ridge().fit(table)
    wide = data[["x", "x"]]
    with pytest.raises(poul.InputError, match="two columns are called `x`"):
        poul.Learner("ridge").fit(data["y"], data["policy"], X=wide)
    with pytest.raises(poul.InputError, match="two columns are called `x`"):
        poul.Learner("ridge").fit(data["x"], data["policy"], X=data[["x"]])


def test_values_out_of_range_are_told_before_rows_are_read() -> None:
    with pytest.raises(ValueError, match="dropout"):
        poul.Poul(outcomes="y", dropout=2.0).fit(frame())
    with pytest.raises(ValueError, match="finite"):
        poul.Poul(outcomes="y", dropout=float("nan")).fit(frame())
    with pytest.raises(ValueError, match="threads must be at least 1"):
        ridge(threads=0).fit(frame())
    with pytest.raises(ValueError, match="amount of memory"):
        ridge(memory="lots").fit(frame())
    for wrong, told in (
        ({"seed": -1}, "`seed` is -1: must be a whole number of at least 0"),
        ({"threads": "two"}, '`threads` is "two": must be a whole number of at least 0'),
        ({"data_encoder": {"max_levels": -3}}, "`max_levels` is -3: must be a whole number of at least 0"),
        ({"design": "random"}, '`design` is "random": must be one of `randomized`, `stratified`, `observational`'),
        ({"folds": 1.5}, "`folds` is 1.5: must be a whole number of at least 0"),
    ):
        with pytest.raises(ValueError) as caught:
            ridge(**wrong).fit(frame())
        assert told in str(caught.value) and "poul.toml" not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        poul.Poul(outcomes="y", epochs=-1).fit(frame())
    assert str(caught.value) == "`epochs` is -1: must be a whole number of at least 0"
    with pytest.raises(ValueError, match="did you mean `additive`"):
        poul.Poul(outcomes="y", embedding="aditive").fit(frame())


def test_rows_of_arrays_must_agree() -> None:
    data = frame()
    learner = poul.Learner("ridge")
    with pytest.raises(ValueError, match="`X` has 199 rows, `Y` has 200"):
        learner.fit(data["y"].to_numpy(), data["policy"].to_numpy(), X=data[["x"]].to_numpy()[1:])
    with pytest.raises(ValueError, match="the index of `T` differs from that of `Y` at row 0 "):
        learner.fit(data["y"], data["policy"][::-1], X=data[["x"]])
    with pytest.raises(ValueError, match="the index of `X` differs from that of `Y` at row 2 "):
        learner.fit(data["y"], data["policy"].to_numpy(), X=data[["x"]].rename(index={2: 999}))
    with pytest.raises(ValueError, match="the index of `sample_weight` differs"):
        learner.fit(data["y"], data["policy"], X=data[["x"]], sample_weight=data["x"].abs()[::-1])
    with pytest.raises(ValueError, match="the index of `X` differs"):
        ridge().fit(data).evaluate(data["y"], data["policy"], X=data[["x"]][::-1])
    with pytest.raises(TypeError, match="`X` is missing"):
        learner.fit(data["y"], data["policy"])


def test_what_is_no_table_is_a_type_error() -> None:
    for wrong in (3, [1, 2], None, frame()["x"]):
        with pytest.raises(TypeError):
            ridge().fit(wrong)


def test_files_that_are_not_there_or_cannot_be_written(tmp_path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        poul.load(tmp_path / "no.poul")
    assert isinstance(caught.value, poul.PoulError)
    with pytest.raises((FileNotFoundError, ValueError)):
        ridge().fit(tmp_path / "no.parquet")
    with pytest.raises(OSError):
        ridge().fit(frame()).save(tmp_path / "no" / "model.poul")
    (tmp_path / "bad.poul").write_bytes(b"nonsense" * 9)
    with pytest.raises(ValueError, match="bad.poul"):
        poul.load(tmp_path / "bad.poul")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + b"\xff" * 90 + b"PAR1")
    with pytest.raises(ValueError, match="bad.parquet"):
        ridge().fit(tmp_path / "bad.parquet")


def test_a_model_must_be_fitted_first() -> None:
    for ask in (lambda m: m.effect(frame()), lambda m: m.save("x"), lambda m: m.evaluate(frame()), lambda m: m.notes_):
        with pytest.raises(poul.NotFittedError, match="not fitted"):
            ask(ridge())


def test_hints_speak_python(model: poul.Poul, rides: poul.Simulation) -> None:
    with pytest.raises(ValueError) as caught:
        poul.Poul().fit(frame())
    assert 'outcomes="COL"' in str(caught.value) and "--" not in str(caught.value)
    single = poul.Poul(outcomes="y", control="control", **{**QUICK, "members": 1}).fit(frame())
    with pytest.raises(ValueError) as caught:
        single.effect(frame(), policy="a", interval=0.9)
    assert "members=6" in str(caught.value)


def test_treatments_of_numbers_and_booleans_are_named_as_they_are() -> None:
    data = frame()
    coded = (data["policy"] == "a").astype(int)
    for treatment, control, policy, name in ((coded, 0, 1, "0"), (coded.astype(bool), False, True, "false")):
        model = ridge(control=control).fit(data.assign(policy=treatment))
        assert model.control_ == name
        assert len(model.effect(data, policy=policy)) == len(data)


def test_exceptions_can_be_pickled() -> None:
    error = poul.InputError("what", "hint")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.hint) == (poul.InputError, "what\nhint: hint", "hint")
