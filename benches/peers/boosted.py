#!/usr/bin/env python3
"""Boosted trees beside LightGBM: seconds of a fit and loss on fresh rows.

    python3 benches/peers/boosted.py --venv target/peers-venv --binary target/release/bench_boosted

100,000 rows × 100 features (Friedman 1991), 200 trees of 31 leaves, rate .1, 20 rows a leaf, penalty 1, 255 bins, 2 threads, no
early stopping; both count bins, trees and predictions of the rows that were fitted on. The two run in turn, `--rounds` times, and
the ratio is the median of rounds.
Exit codes: 0 within the bounds, 1 slower or worse than they allow, 77 LightGBM could not be installed.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import packages

ROWS, TEST_ROWS, FEATURES, TREES, THREADS = 100_000, 20_000, 100, 200, 2
MOST_TIME, MOST_LOSS = 1.5, 1.01


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, help="folder for the environment")
    parser.add_argument("--binary", type=pathlib.Path, help="the bench_boosted program, built")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        return write(arguments.write)
    if arguments.peer:
        return lightgbm(arguments.peer)
    if not arguments.venv or not arguments.binary or not arguments.binary.is_file():
        parser.error("--venv and --binary are needed: cargo build --release -p benches --bin bench_boosted")
    python = packages.environment_python(arguments.venv.resolve(), ["lightgbm", "numpy"])
    if python is None:
        return 77
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "friedman.f32"
        subprocess.run([python, __file__, "--write", data], check=True)
        return compare(arguments.binary.resolve(), python, data, arguments.rounds)


def compare(binary, python, data, rounds):
    environment = {**os.environ, "RAYON_NUM_THREADS": str(THREADS), "OMP_NUM_THREADS": str(THREADS)}
    commands = {"poul": [binary, data, str(TREES), "1"], "lightgbm": [python, __file__, "--peer", data]}
    seconds, losses = {name: [] for name in commands}, {}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", end="\r", file=sys.stderr)
        for name, command in commands.items():
            words = [str(word) for word in command]
            output = subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout
            time, loss = re.search(r"fit ([\d.]+) s, mean squared error ([\d.]+)", output).groups()
            seconds[name].append(float(time))
            losses[name] = float(loss)
    for name in commands:
        print(f"{name:>9} {statistics.median(seconds[name]):>8.2f} s, mean squared error {losses[name]:.4f}")
    time = statistics.median(ours / theirs for ours, theirs in zip(seconds["poul"], seconds["lightgbm"]))
    loss = losses["poul"] / losses["lightgbm"]
    print(f"ratios: time {time:.2f} (at most {MOST_TIME}), loss {loss:.4f} (at most {MOST_LOSS})")
    return 0 if time <= MOST_TIME and loss <= MOST_LOSS else 1


def write(path):
    import numpy

    draw = numpy.random.default_rng(3)
    x = draw.random((ROWS + TEST_ROWS, FEATURES), dtype=numpy.float32)
    y = 10 * numpy.sin(numpy.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y = (y + draw.standard_normal(len(y))).astype(numpy.float32)
    numpy.column_stack([x, y]).tofile(path)
    return 0


def lightgbm(path):
    import time

    import lightgbm
    import numpy

    table = numpy.fromfile(path, dtype=numpy.float32).reshape(-1, FEATURES + 1)
    x, y = numpy.ascontiguousarray(table[:, :FEATURES]), table[:, FEATURES].copy()
    settings = {
        "objective": "regression", "num_leaves": 31, "learning_rate": 0.1, "min_data_in_leaf": 20, "lambda_l2": 1.0,
        "max_bin": 255, "num_threads": THREADS, "verbosity": -1, "seed": 1,
    }  # fmt: skip
    start = time.perf_counter()
    trees = lightgbm.train(settings, lightgbm.Dataset(x[:ROWS], y[:ROWS]), TREES)
    trees.predict(x[:ROWS], num_threads=THREADS)
    seconds = time.perf_counter() - start
    loss = float(((trees.predict(x[ROWS:]) - y[ROWS:]) ** 2).mean())
    print(f"fit {seconds:.3f} s, mean squared error {loss:.5f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
