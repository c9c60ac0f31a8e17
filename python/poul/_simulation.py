"""Experiments whose true effects are known."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from . import _poul
from ._arguments import checked_names
from ._progress import Listener
from ._settings import to_json


@dataclass(frozen=True)
class Simulation:
    """What was written, and where."""

    folder: Path
    scenario: str
    seed: int
    train_rows: int
    test_rows: int
    truth_rows: int
    features: int
    outcomes: list[str]
    policy_names: list[str]
    #: Policies that no row was assigned to.
    held_out: list[str]

    @property
    def train(self) -> Path:
        """Rows to train on."""
        return self.folder / "train.parquet"

    @property
    def test(self) -> Path:
        """Rows to test on."""
        return self.folder / "test.parquet"

    @property
    def truth(self) -> Path:
        """True effects of test rows."""
        return self.folder / "truth.parquet"

    @property
    def policies(self) -> Path:
        """The policy file."""
        return self.folder / "policies.toml"


@checked_names
def simulate(
    out: str | os.PathLike[str],
    scenario: str = "ride-hailing",
    *,
    rows: int = 20_000,
    test_rows: int | None = None,
    features: int | None = None,
    policies: int | None = None,
    contexts: int | None = None,
    actions: int | None = None,
    noise: float | None = None,
    truth_rows: int | None = None,
    seed: int = 3407,
    progress: bool | None = None,
) -> Simulation:
    """Writes an experiment to a folder: `ride-hailing`, `long-tail`, `stratified`, `observational` or `delivery`.

    >>> import poul, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rides = poul.simulate(folder, rows=500, features=22)
    ...     rides.outcomes, rides.train.name
    (['gmv', 'cost'], 'train.parquet')
    """
    request = {
        "scenario": scenario,
        "rows": rows,
        "test_rows": test_rows,
        "features": features,
        "policies": policies,
        "contexts": contexts,
        "actions": actions,
        "noise": noise,
        "truth_rows": truth_rows,
        "seed": seed,
    }
    with Listener(progress) as listener:
        found = json.loads(_poul.simulate(os.fspath(out), to_json(request), listener))
    return Simulation(
        folder=Path(out),
        scenario=found["scenario"],
        seed=found["seed"],
        train_rows=found["train_rows"],
        test_rows=found["test_rows"],
        truth_rows=found["truth_rows"],
        features=found["features"],
        outcomes=found["outcomes"],
        policy_names=found["policies"],
        held_out=found["held_out"],
    )
