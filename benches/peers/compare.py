#!/usr/bin/env python3
"""Training speed of the engine beside PyTorch or JAX, and the limit of the matrix products.

    python3 benches/peers/compare.py --venv target/peers-venv --binary target/release/bench_engine [--mode eager|fused|compile|jax]

The two run in turn, `--rounds` times, and medians are compared: on a shared machine differences under 15 % are ties.
`most` is the ratio that a step of nothing but its matrix products would have.
Exit codes: 0 measured, 77 the peer could not be installed.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

import packages

HERE = pathlib.Path(__file__).resolve().parent
FASTER, OF_LIMIT = 1.3, 0.75


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="folder for the environment")
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the bench_engine program, built")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case in each round")
    parser.add_argument("--mode", choices=["eager", "fused", "compile", "jax"], default="eager")
    arguments = parser.parse_args()
    if not arguments.binary.is_file():
        parser.error(f"there is no {arguments.binary}: cargo build --release -p benches --bin bench_engine")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    peer = "jax" if arguments.mode == "jax" else "torch"
    python = packages.environment_python(arguments.venv.resolve(), [peer])
    if python is None:
        return 77
    ours, limit, theirs = {}, {}, {}
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", end="\r", file=sys.stderr)
        for case, values in cases([arguments.binary.resolve(), str(arguments.seconds), "1"]):
            ours.setdefault(case, []).append(values[0])
            limit.setdefault(case, []).append(values[1])
        measure = ["--repetitions", "1", "--seconds", str(arguments.seconds)]
        if peer == "jax":
            runs = [[python, HERE / "engine_jax.py", "--threads", threads, *measure] for threads in (1, 2)]
        else:
            runs = [[python, HERE / "engine.py", "--mode", arguments.mode, *measure]]
        for case, values in (found for run in runs for found in cases(run)):
            theirs.setdefault(case, []).append(values[0])
    print(f"{'p':>5} {'stage':>5} {'threads':>7} {'poul':>9} {peer:>9} {'ratio':>6} {'most':>6} {'limit':>9} {'share':>7}")
    n_met = 0
    for case in ours:
        rate, other, products = (statistics.median(rates[case]) for rates in (ours, theirs, limit))
        # Neighbours in time share the machine's load: ratios are taken within rounds.
        ratio = statistics.median(a / b for a, b in zip(ours[case], theirs[case]))
        share = statistics.median(a / b for a, b in zip(ours[case], limit[case]))
        most = statistics.median(a / b for a, b in zip(limit[case], theirs[case]))
        met = ratio >= FASTER and share >= OF_LIMIT
        n_met += met
        p, stage, threads = case
        print(f"{p:>5} {stage:>5} {threads:>7} {rate:>9.0f} {other:>9.0f} {ratio:>6.2f} {most:>6.2f} {products:>9.0f} {share:>7.1%}"
              f"{'' if met else '  below target'}")
    print(f"rows a second, medians of {arguments.rounds} rounds; {n_met} of {len(ours)} cases at {FASTER} × {peer}"
          f" {arguments.mode} and {OF_LIMIT:.0%} of the limit; load after: {os.getloadavg()[0]:.1f}")
    return 0


def cases(command):
    """The lines of a benchmark: (features, stage, threads) and the numbers after them."""
    output = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 4 and all(word.isdigit() for word in words[:3]):
            yield tuple(words[:3]), [float(word) for word in words[3:] if not word.endswith("%")]


if __name__ == "__main__":
    sys.exit(main())
