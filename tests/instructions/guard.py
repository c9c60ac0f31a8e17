#!/usr/bin/env python3
"""Counts the instructions of the hot kernels and fails when one takes over 10 % more than written down.

    python3 tests/instructions/guard.py --binary target/debug/hot_kernels [--update]

Counting is done by callgrind on one thread, so it does not depend on how busy the machine is. A kernel is run few times
and more times; the difference is what it costs. Exit codes: 0 within bounds, 1 not, 77 valgrind is not to be had, or the
machine's instructions are not those that the counts were written down for.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"
ALLOWED = 0.10
# How often each is run, first and second.
TIMES = {"train": (1, 3), "score": (1, 5), "measure": (20, 40)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the hot_kernels program, built")
    parser.add_argument("--update", action="store_true", help="write the counts down instead of judging them")
    arguments = parser.parse_args()
    if not valgrind():
        print("valgrind is not here and could not be installed")
        return 77
    features = cpu()
    counts = costs(arguments.binary)
    if arguments.update:
        EXPECTED.write_text(json.dumps({"cpu": features, "instructions": counts}, indent=2) + "\n")
        print(f"written to {EXPECTED.name}: {counts}")
        return 0
    expected = json.loads(EXPECTED.read_text())
    if expected["cpu"] != features:
        print(f"the counts are for {expected['cpu']}, this machine is {features}")
        return 77
    grown = []
    for kernel, count in counts.items():
        known = expected["instructions"][kernel]
        ratio = count / known
        print(f"{kernel:8} {count:>14,} instructions, {known:>14,} expected: {100 * (ratio - 1):+.1f} %")
        if ratio > 1 + ALLOWED:
            grown.append(kernel)
        elif ratio < 1 - ALLOWED:
            print(f"{kernel:8} takes fewer: write it down with --update, so that the gain is kept")
    if grown:
        print(f"over {100 * ALLOWED:.0f} % more than expected: {', '.join(grown)}", file=sys.stderr)
        print("make it cheaper, or say why in the commit that runs this with --update", file=sys.stderr)
    return 1 if grown else 0


def costs(binary):
    """Instructions of one run of each kernel. Each count is of one thread, so that there is one for each processor."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = {kernel: [pool.submit(count, binary, kernel, n) for n in times] for kernel, times in TIMES.items()}
    return {
        kernel: round((more.result() - few.result()) / (TIMES[kernel][1] - TIMES[kernel][0]))
        for kernel, (few, more) in counted.items()
    }


def count(binary, kernel, times):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(binary), kernel, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return int(found[1])


def cpu():
    """What decides which instructions are run: the kernels are dispatched at run time."""
    try:
        flags = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    except (OSError, TypeError):
        flags = set()
    return [platform.machine(), *sorted(flags & {"avx2", "fma"})]


def valgrind():
    if shutil.which("valgrind"):
        return True
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
    install = ["apt-get", "install", "-y", "-q", "valgrind"]
    if subprocess.run(install, **quiet).returncode != 0:
        subprocess.run(["apt-get", "update", "-q"], **quiet)
        subprocess.run(install, **quiet)
    return shutil.which("valgrind") is not None


if __name__ == "__main__":
    sys.exit(main())
