"""What workers do with their share of the rows, without Spark: parts are scored and summed up as the whole is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import poul
from poul import _poul
from poul._assessment import evaluation_request
from poul._progress import Listener
from poul._scoring import effect_request
from poul._settings import roles_of, to_json

pyarrow = pytest.importorskip("pyarrow")

from poul.spark import _shipping, _worker  # noqa: E402


@pytest.fixture(scope="module")
def table(rides: poul.Simulation) -> Any:
    """Rows with an id."""
    import pyarrow.parquet

    found = pyarrow.parquet.read_table(rides.test)
    return found.append_column("user", pyarrow.array(range(found.num_rows), pyarrow.int64()))


def batches(table: Any, *ends: int) -> Iterator[Any]:
    """The table cut at these rows."""
    for start, end in zip((0, *ends), (*ends, table.num_rows)):
        yield from table.slice(start, end - start).combine_chunks().to_batches() or [
            pyarrow.RecordBatch.from_pylist([], schema=table.schema)
        ]


def test_parts_are_scored_as_the_whole(model: poul.Poul, table: Any) -> None:
    asked: dict[str, Any] = {"policy": ["T1"], "id": ["user"], "interval": 0.9, "population": "user >= 300"}
    here = pyarrow.table(model.effect(table, **asked))
    request = to_json(effect_request(against=None, threads=1, **asked))
    work = _shipping.shipped("effects", model, request=request, policies=None, schema=here.schema.serialize().to_pybytes())
    # The filter leaves nothing of the first part, and the second has no row.
    there = [found for part in batches(table, 200, 200, 900) for found in work(iter([part]))]
    assert pyarrow.Table.from_batches(there, here.schema).to_pydict() == here.to_pydict()


@pytest.mark.parametrize("ends", [(), (1, 1, 700)])
def test_parts_are_summed_up_as_the_whole(model: poul.Poul, table: Any, ends: tuple[int, ...]) -> None:
    native = model._fitted()
    asked: dict[str, Any] = {"policy": None, "against": None, "draws": 0, "checks": False}
    with Listener(False) as listener:
        roles, columns = _poul.Parts.columns(
            native, _poul.Frame.from_arrow(table).part(), to_json(evaluation_request(roles_of({}), **asked)), listener
        )
    request = to_json(evaluation_request(json.loads(roles), threads=1, **asked))
    rows = table.select(columns)
    content = native.to_bytes()

    def summed(task: str, how: str, **job: Any) -> bytes:
        work = getattr(_worker, task)
        rest = {"request": request, "policies": None, **job}
        parts = [next(iter(work([part], content, "m", **rest))) for part in batches(rows, *ends)]
        (merged,) = _worker.merged(parts, b"", "", how=how)
        found: bytes = merged.column(0)[0].as_py()
        return found

    outline = summed("outline", "merged_outlines")
    found = json.loads(_poul.Parts(native, request).evaluation(outline, summed("sums", "merged_sums", outline=outline)))
    expected = model.evaluate(table, draws=0, checks=False).results
    assert len(found["results"]) == len(expected)
    for own, other in zip(found["results"], expected):
        for name in ("ate", "ate_se", "ate_predicted", "calibration_slope_se", "r_score", "auuc", "qini", "rate_autoc"):
            assert own[name] == pytest.approx(other[name], rel=1e-9, abs=1e-12), name


def test_sums_of_another_version_or_question_are_refused(model: poul.Poul, table: Any) -> None:
    with pytest.raises(poul.InputError, match="no outline of this version"):
        _poul.merged_outlines([b"poul 0.0.1 outline\n"])
    assert _poul.merged_sums([]) is None


def test_workers_of_another_version_are_refused(model: poul.Poul, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shipping, "__version__", "9.9.9")
    work = _shipping.shipped("effects", model, request="{}", policies=None, schema=b"")
    with pytest.raises(ImportError, match="the same version everywhere"):
        next(work(iter([])))


def test_a_worker_unpacks_a_model_once(model: poul.Poul) -> None:
    content = model._fitted().to_bytes()
    assert _worker._model(content, "once") is _worker._model(content, "once")
    for number in range(10):
        _worker._model(content, f"other {number}")
    assert len(_worker._UNPACKED) <= _worker._MOST_KEPT


@pytest.mark.parametrize("ends", [(), (1, 1, 700)])
def test_parts_are_checked_as_the_whole(rides: poul.Simulation, table: Any, ends: tuple[int, ...]) -> None:
    names = sorted(set(table["policy"].to_pylist()))
    asked: dict[str, Any] = {"outcomes": rides.outcomes, "exclude": "user"}
    shares = {name: 1.0 for name in names}
    set_ = poul.Policies.read(rides.policies)._set
    fit = {"roles": roles_of(asked), "learner": None, "contexts": None, "seed": 3407, "threads": 1}
    request = to_json({"fit": fit, "shares": shares, "permutations": 0})
    schema = table.schema.serialize().to_pybytes()
    rest = {"request": request, "policies": set_.to_json(), "table": schema}
    parts = [next(iter(_worker.checks([part], b"", "", **rest))) for part in batches(table, *ends)]
    (merged,) = _worker.merged(parts, b"", "", how="merged_checks")
    with Listener(False) as listener:
        checked = _poul.CheckedParts(_poul.Frame.from_arrow(table.slice(0, 0)).part(), request, listener, set_)
    found = json.loads(checked.profile(merged.column(0)[0].as_py()))
    here = poul.check(table, policies=rides.policies, shares=shares, permutations=0, **asked).to_dict()
    assert found["rows"] == here["rows"] and found["atoms"] == here["atoms"]
    assert found["sample_ratio"] == here["sample_ratio"]
    for own, other in zip(found["arms"], here["arms"]):
        assert own["outcome_means"] == pytest.approx(other["outcome_means"], rel=1e-12)
        assert (own["policy"], own["rows"], own["units"]) == (other["policy"], other["rows"], other["units"])
    for own, other in zip(found["outcomes"], here["outcomes"]):
        assert own.pop("outcome") == other.pop("outcome")
        assert own == pytest.approx(other, rel=1e-9)
    frame = table.to_pandas()
    for own in found["features"]:
        assert own["missing"] == frame[own["column"]].isna().mean()
        if own["mean"] is not None:
            values = frame[own["column"]].astype("float64")
            assert own["mean"] == pytest.approx(values.mean(), rel=1e-9)
            assert own["sd"] == pytest.approx(values.std(ddof=0), rel=1e-9)
