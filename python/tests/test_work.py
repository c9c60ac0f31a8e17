"""Long work: Ctrl-C stops it, other threads run beside it, bars and records tell of it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import poul

LONG = """
import sys, numpy as np, poul
rng = np.random.default_rng(0)
X = rng.normal(size=(50_000, 20))
print("start", flush=True)
try:
    poul.Poul(epochs=1000, patience=0).fit(rng.normal(size=50_000), rng.integers(0, 2, 50_000), X=X)
except KeyboardInterrupt as error:
    print("stopped", isinstance(error, Exception), flush=True)
"""


def test_ctrl_c_stops_training(tmp_path) -> None:
    work = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert work.stdout is not None and work.stdout.readline() == "start\n"
    time.sleep(1.5)
    os.kill(work.pid, signal.SIGINT)
    start = time.perf_counter()
    out, _ = work.communicate(timeout=60)
    assert out == "stopped False\n" and work.returncode == 0
    assert time.perf_counter() - start < 20


def data(n: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=n), rng.integers(0, 2, n), rng.normal(size=(n, 5))


def test_other_threads_run_meanwhile() -> None:
    Y, T, X = data()
    ticks, over = [0], threading.Event()

    def tick() -> None:
        while not over.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before, start = ticks[0], time.perf_counter()
    poul.Poul(members=2, epochs=4, folds=2, patience=0).fit(Y, T, X=X)
    seconds, during = time.perf_counter() - start, ticks[0] - before
    over.set()
    thread.join()
    assert during > 20 * seconds, (during, seconds)


def test_a_fit_from_another_thread() -> None:
    Y, T, X = data(400)
    found: list[poul.Learner] = []
    threads = [threading.Thread(target=lambda: found.append(poul.Learner("ridge").fit(Y, T, X=X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({learner._fitted().to_bytes() for learner in found}) == 1


def test_stages_are_logged_and_warnings_too(caplog: pytest.LogCaptureFixture) -> None:
    Y, T, X = data(400)
    with caplog.at_level(logging.INFO, logger="poul"):
        poul.Poul(members=1, epochs=1, folds=2).fit(Y, T, X=X)
    assert any(record.levelno == logging.INFO for record in caplog.records)
    assert {record.name for record in caplog.records} == {"poul"}


def test_bars_are_drawn_where_they_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    Y, T, X = data(400)
    poul.Poul(members=1, epochs=1, folds=2, progress=True).fit(Y, T, X=X)
    assert "rows" in capsys.readouterr().err
    poul.Poul(members=1, epochs=1, folds=2).fit(Y, T, X=X)
    assert capsys.readouterr().err == ""


def test_an_exception_in_a_callback_stops_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    from poul import _progress

    def boom(self: object, stage: str, unit: str, total: int | None) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(_progress.Listener, "start", boom)
    Y, T, X = data(400)
    with pytest.raises(RuntimeError, match="boom"):
        poul.Learner("ridge").fit(Y, T, X=X)


def test_training_goes_on_from_a_saved_model(tmp_path) -> None:
    Y, T, X = data(800)
    first = poul.Poul(members=1, epochs=2, folds=2).fit(Y, T, X=X)
    first.save(tmp_path / "first.poul")
    next_ = poul.Poul(members=1, epochs=1, folds=2).fit(Y, T, X=X, warm_start=tmp_path / "first.poul")
    again = poul.Poul(members=1, epochs=1, folds=2).fit(Y, T, X=X, warm_start=first)
    assert next_._fitted().to_bytes() == again._fitted().to_bytes() != first._fitted().to_bytes()
    assert len(next_.manifest_["data"]) == 2
