#!/usr/bin/env python3
"""Training speed of the engine beside PyTorch eager and the limit of the matrix products.

    python3 benches/peers/compare.py --venv target/torch-venv --binary target/release/examples/bench_engine

The two run in turn, `--rounds` times, and medians are compared: on a shared machine differences under 15 % are ties.
Exit codes: 0 measured, 77 PyTorch could not be installed.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
# The wheel for CPUs where its index can be reached; otherwise the default one, which brings gigabytes of CUDA.
INDEXES = [["--index-url", "https://download.pytorch.org/whl/cpu", "--retries", "1", "--timeout", "10"], []]
FASTER, OF_LIMIT = 1.3, 0.75


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="folder for the environment")
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the bench_engine example, built")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case in each round")
    parser.add_argument("--mode", choices=["eager", "fused", "compile"], default="eager")
    arguments = parser.parse_args()
    python = environment_python(arguments.venv.resolve())
    if python is None:
        return 77
    ours, limit, torch = {}, {}, {}
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", end="\r", file=sys.stderr)
        for case, values in cases([arguments.binary.resolve(), str(arguments.seconds), "1"]):
            ours.setdefault(case, []).append(values[0])
            limit.setdefault(case, []).append(values[1])
        engine = [python, HERE / "engine.py", "--mode", arguments.mode, "--repetitions", "1"]
        for case, values in cases([*engine, "--seconds", str(arguments.seconds)]):
            torch.setdefault(case, []).append(values[0])
    print(f"{'p':>5} {'stage':>5} {'threads':>7} {'poul':>9} {'torch':>9} {'ratio':>6} {'limit':>9} {'share':>7}")
    n_met = 0
    for case in ours:
        rate, peer, most = (statistics.median(rates[case]) for rates in (ours, torch, limit))
        # Neighbours in time share the machine's load: ratios are taken within rounds.
        ratio = statistics.median(a / b for a, b in zip(ours[case], torch[case]))
        share = statistics.median(a / b for a, b in zip(ours[case], limit[case]))
        met = ratio >= FASTER and share >= OF_LIMIT
        n_met += met
        p, stage, threads = case
        print(f"{p:>5} {stage:>5} {threads:>7} {rate:>9.0f} {peer:>9.0f} {ratio:>6.2f} {most:>9.0f} {share:>7.1%}"
              f"{'' if met else '  below target'}")
    print(f"rows a second, medians of {arguments.rounds} rounds; {n_met} of {len(ours)} cases at {FASTER} × torch"
          f" {arguments.mode} and {OF_LIMIT:.0%} of the limit; load after: {os.getloadavg()[0]:.1f}")
    return 0


def cases(command):
    """The lines of a benchmark: (features, stage, threads) and the numbers after them."""
    output = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 4 and all(word.isdigit() for word in words[:3]):
            yield tuple(words[:3]), [float(word) for word in words[3:] if not word.endswith("%")]


def environment_python(folder):
    """The Python of an environment that has PyTorch; None where it cannot be installed."""
    python = folder / "bin" / "python"
    has_torch = [python, "-c", "import torch"]
    if not python.exists():
        venv.create(folder, with_pip=True)
    found = subprocess.run(has_torch, check=False, capture_output=True, text=True)
    for index in INDEXES:
        if found.returncode != 0:
            install = [python, "-m", "pip", "install", "--quiet", "torch", "numpy", "setuptools", *index]
            subprocess.run(install, check=False, capture_output=True)
            found = subprocess.run(has_torch, check=False, capture_output=True, text=True)
    if found.returncode != 0:
        print(f"PyTorch cannot be used:\n{found.stderr.strip()}")
        return None
    return python


if __name__ == "__main__":
    sys.exit(main())
