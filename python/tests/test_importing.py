"""Importing is quick, and brings nothing that is not needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

#: None of these is needed before there is something to do with it.
OTHERS = ("duckdb", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn", "tqdm")


def imported(tmp_path: Path) -> tuple[float, float]:
    """Milliseconds of `import poul` with all that it brings, and of the package's own modules."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import poul"], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    lines = re.findall(r"import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)", run.stderr)
    (whole,) = [int(cumulative) for _, cumulative, name in lines if name == "poul"]
    own = sum(int(alone) for alone, _, name in lines if name.partition(".")[0] == "poul")
    return whole / 1000, own / 1000


def test_importing_is_quick(tmp_path: Path) -> None:
    found = [imported(tmp_path) for _ in range(3)]
    whole, own = min(whole for whole, _ in found), min(own for _, own in found)
    print(f"import poul: {whole:.0f} ms, of which the package itself {own:.0f} ms")
    # By the clock, on a machine that may be busy; idle it is a fraction of this.
    assert whole < 200, found


def test_importing_brings_no_other_package(tmp_path: Path) -> None:
    code = f"import sys, poul; print([name for name in {OTHERS} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == "[]\n"
