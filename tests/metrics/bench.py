#!/usr/bin/env python3
"""Times causalml's `auuc_score`, scikit-uplift's `qini_auc_score` and `poul` on the same rows, in alternation, on one core each.

    python3 tests/metrics/bench.py --venv target/metrics-venv [--rows 5000000] [--rounds 3]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import packages

ROOT = packages.HERE.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "target" / "metrics-venv")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target" / "release" / "bench_metrics")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return bench(arguments)
    try:
        python = packages.environment_python(arguments.venv.resolve())
    except packages.CannotInstall as error:
        print(f"could not install causalml:\n{error}")
        return 77
    if not arguments.binary.exists():
        subprocess.run(["cargo", "build", "--release", "-p", "benches", "--bin", "bench_metrics"], cwd=ROOT, check=True)
    command = [str(python), __file__, "--inside", "--rows", str(arguments.rows), "--rounds", str(arguments.rounds),
               "--binary", str(arguments.binary.resolve())]
    return subprocess.run(command, check=False).returncode


def bench(arguments):
    import numpy as np
    import pandas as pd

    import sklift.metrics as sklift

    causalml = packages.causalml_metrics()
    rng = np.random.default_rng(3407)
    score = rng.normal(0.02, 0.05, arguments.rows)
    treated = rng.integers(0, 2, arguments.rows)
    outcome = (rng.random(arguments.rows) < 0.1 + score * treated).astype(float)
    frame = pd.DataFrame({"model": score, "y": outcome, "w": treated})
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        score.astype("<f8").tofile(folder / "score.f64")
        outcome.astype("<f8").tofile(folder / "outcome.f64")
        treated.astype("u1").tofile(folder / "treated.u8")
        theirs, ours, draws, their_qini, our_qini = [], [], [], [], []
        for _ in range(arguments.rounds):
            started = time.perf_counter()
            value = causalml.auuc_score(frame)["model"]
            theirs.append(time.perf_counter() - started)
            command = [arguments.binary, str(arguments.rows), str(folder)]
            report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            ours.append(report["auuc_seconds"])
            draws.append(report["bootstrap_200_seconds"])
            started = time.perf_counter()
            qini = sklift.qini_auc_score(outcome, score, treated)
            their_qini.append(time.perf_counter() - started)
            our_qini.append(report["qini_auc_sklift_seconds"])
            assert abs(qini - report["qini_auc_sklift"]) < 1e-8
            assert abs(value * (arguments.rows + 1) / arguments.rows - report["auuc"]) < 1e-8
    timed = (theirs, ours, draws, their_qini, our_qini)
    their_time, our_time, draw_time, their_qini_time, our_qini_time = (sorted(times)[len(times) // 2] for times in timed)
    print(f"causalml auuc_score      {their_time:8.3f} s")
    print(f"poul auuc                {our_time:8.3f} s   {their_time / our_time:6.1f} times faster")
    print(f"sklift qini_auc_score    {their_qini_time:8.3f} s")
    print(f"poul qini_auc_sklift     {our_qini_time:8.3f} s   {their_qini_time / our_qini_time:6.1f} times faster")
    print(f"poul 200 bootstrap draws {draw_time:8.3f} s   as long as {draw_time / their_time:.1f} evaluations by causalml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
