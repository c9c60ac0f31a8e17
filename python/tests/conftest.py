"""What the tests share: a small simulated experiment, the command line, the public data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import poul

ROOT = Path(__file__).resolve().parents[2]

#: Settings that train in a moment; the tests are about the package, not about how good the effects are.
QUICK = {"members": 2, "epochs": 2, "folds": 2, "hidden": [16], "outcome_hidden": [16]}


@pytest.fixture(scope="session")
def rides(tmp_path_factory: pytest.TempPathFactory) -> poul.Simulation:
    """An experiment on disk."""
    return poul.simulate(tmp_path_factory.mktemp("rides"), rows=1500, test_rows=1200, features=24, policies=4)


@pytest.fixture(scope="session")
def model(rides: poul.Simulation) -> poul.Poul:
    """A model of it."""
    learner = poul.Poul(outcomes=rides.outcomes, control="control", **QUICK)
    return learner.fit(rides.train, policies=rides.policies)


@pytest.fixture(scope="session")
def command_line() -> str:
    """The `poul` command, built."""
    binary = Path(os.environ.get("POUL_BIN", ROOT / "target/debug/poul"))
    if not binary.exists():
        pytest.skip(f"SKIPPED: {binary} is not built")
    return str(binary)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The public experiments, where they are."""
    folder = ROOT.parent / "shared/data"
    if not folder.exists():
        pytest.skip("SKIPPED: ../shared/data is not there")
    return folder
