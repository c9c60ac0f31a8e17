#!/usr/bin/env python3
"""How the cost of `poul fit` grows with rows, features, policies, atoms and threads; and the paper's whole problem.

    python3 benches/scale.py --binary target/release/poul [--only rows policies] [--folder DIR]
    python3 benches/scale.py --binary target/release/poul --only paper --limit target/release/bench_engine

One thing varies at a time around 500,000 rows of `long-tail` with 100 features, 50 policies, 12 contexts, 5 actions and
2 threads. Every fit has the default network with two members and two epochs for each stage, in one fold, without early
stopping: the work per row is the same everywhere. Printed are the seconds of the whole command, rows a second in both
stages of training, and the peak of memory.

`paper` is 3,820,637 rows of `ride-hailing` with 723 features and both outcomes, fitted by `--preset paper` with one epoch on
all rows and one on the core population within 3 GiB; it needs some 25 GB of disk. With `--limit` the rows a second that
matrix products alone allow are measured right after it, and training is given as a share of them.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SETTINGS = """
[model]
members = 2
[training]
epochs = 2
patience = 0
folds = 1
validation_share = 0.0
calibrate = false
outcome_training = "as-effects"
"""
PAPER = """
[[training.phases]]
epochs = 1
[[training.phases]]
population = "core == 1"
epochs = 1
"""
BASE = {"rows": 500_000, "features": 100, "policies": 50, "contexts": 12, "threads": 2}
VARIED = {
    "rows": [1_000_000, 2_000_000, 4_000_000],
    "features": [50, 100, 200, 400],
    "policies": [10, 100, 1_000, 10_000],
    "contexts": [6, 24, 96],
    "threads": [1, 2],
}
ACTIONS = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the poul binary, built for release")
    parser.add_argument("--only", nargs="+", choices=[*VARIED, "paper"], default=list(VARIED))
    parser.add_argument("--folder", type=pathlib.Path, help="where to work, kept afterwards [default: a temporary one]")
    parser.add_argument("--limit", type=pathlib.Path, help="the bench_engine program, for the limit of `paper`")
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    if not binary.exists():
        sys.exit(f"there is no {binary}: build it by `cargo build --release --workspace --bin poul`")
    with tempfile.TemporaryDirectory(prefix="poul-scale-") as temporary:
        folder = arguments.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.only:
            if name == "paper":
                paper(binary, folder, arguments.limit)
            else:
                vary(binary, folder, name)
    return 0


def vary(binary, folder, name):
    """Fits with every value of one thing."""
    print(f"{name:>10} {'whole s':>8} {'stage 1 rows/s':>15} {'stage 2 rows/s':>15} {'peak MB':>8}", flush=True)
    (folder / "poul.toml").write_text(SETTINGS)
    world, values = folder / "world", VARIED[name]
    for value in values:
        case = {**BASE, name: value}
        if name != "threads" or value == values[0]:
            run([binary, "simulate", "--scenario", "long-tail", "--out", world, "--rows", case["rows"], "--test-rows", 1000,
                 "--features", case["features"], "--policies", case["policies"], "--contexts", case["contexts"],
                 "--actions", ACTIONS])
        text, seconds, peak = run([
            binary, "fit", world / "train.parquet", "--policies", world / "policies.toml", "--control", "control",
            "--outcome", "y", "--config", folder / "poul.toml", "--threads", case["threads"], "--memory", "12GiB",
            "--out", folder / "model.poul"])
        first, second = stage_rates(text)
        shown = value * ACTIONS if name == "contexts" else value
        print(f"{shown:>10,} {seconds:>8.1f} {first:>15,.0f} {second:>15,.0f} {peak:>8,.0f}", flush=True)


def paper(binary, folder, limit):
    """The paper's problem in bounded memory."""
    world = folder / "paper"
    if not (world / "train.parquet").exists():
        run([binary, "simulate", "--out", world, "--rows", 3_820_637, "--features", 723, "--test-rows", 20_000])
    (folder / "paper.toml").write_text(PAPER)
    text, seconds, peak = run([
        binary, "fit", world / "train.parquet", "--policies", world / "policies.toml", "--control", "control",
        "--outcome", "gmv", "--outcome", "cost", "--time", "month", "--config", folder / "paper.toml", "--preset", "paper",
        "--memory", "3GiB", "--out", folder / "paper.poul"])
    for line in text.splitlines():
        if " rows in " in line:
            print(f"  {line}")
    print(f"paper: {seconds:.0f} s, peak {peak / 1024:.2f} GiB", flush=True)
    if limit is not None:
        shown = subprocess.run([binary, "show", folder / "paper.poul"], check=True, capture_output=True, text=True).stdout
        n_encoded = re.search(r"([\d,]+) encoded columns", shown).group(1).replace(",", "")
        for stage, (rate, most) in enumerate(zip(stage_rates(text), limits(limit, n_encoded)), 1):
            print(f"  stage {stage}: {rate:,.0f} rows/s, {rate / most:.0%} of the limit ({most:,.0f})")


def limits(program, n_features):
    """Rows a second that matrix products allow in both stages, for two outcomes on two threads."""
    text = subprocess.run([program, "limit", n_features, "2"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()[1:]]
    return [float(row[-1]) for row in rows if row[3] == "2"]


def stage_rates(text):
    """Rows a second of the outcome model and of the effects, all phases together."""
    rates = []
    for stage in ("Outcome model", "Learning effects"):
        found = re.findall(rf"^{stage}[^:]*: ([\d,]+) rows in ([\d.]+) s", text, re.MULTILINE)
        rates.append(sum(int(rows.replace(",", "")) for rows, _ in found) / sum(float(s) for _, s in found))
    return rates


def run(command):
    """What a command says on stderr, its seconds and its peak of memory in MB."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        stderr.seek(0)
        text = stderr.read()
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{text}")
    return text, seconds, usage.ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
