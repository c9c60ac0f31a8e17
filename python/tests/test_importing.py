"""Importing is quick, and brings nothing that is not needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

#: None of these is needed before there is something to do with it.
OTHERS = ("duckdb", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn", "tqdm")


CLOCKS = """
import time
clock, work = time.perf_counter(), time.process_time()
import poul
print(time.perf_counter() - clock, time.process_time() - work)
"""


def test_importing_is_quick(tmp_path: Path) -> None:
    runs = [
        subprocess.run([sys.executable, "-c", CLOCKS], check=True, capture_output=True, text=True, cwd=tmp_path)
        for _ in range(5)
    ]
    clock, work = (min(times) for times in zip(*(map(float, run.stdout.split()) for run in runs)))
    print(f"import poul: {1000 * clock:.0f} ms by the clock, {1000 * work:.0f} ms of work")
    # Work of this process alone, which shares its processors with others.
    assert work < 0.2


def test_importing_brings_no_other_package(tmp_path: Path) -> None:
    code = f"import sys, poul; print([name for name in {OTHERS} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == "[]\n"
