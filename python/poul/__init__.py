"""Uplift estimation for combinatorial treatments.

A *policy* says, for each *context*, how *actions* are chosen. POUL learns what atoms (context, action) do, so effects
carry over to policies that were rare or never run.

>>> import poul
>>> model = poul.Poul(outcomes=["gmv", "cost"], control="control", seed=3407)
>>> model
Poul(control='control', outcomes=['gmv', 'cost'])

Then ``model.fit(df, policies="policies.toml")`` on a pandas, polars or pyarrow frame, a DuckDB relation or a Parquet
path; ``model.effect(df, policy="T2")`` gives the same kind of frame back. NumPy arrays go by the vocabulary of EconML:
``model.fit(Y, T, X=X)``, ``model.effect(X, T0=0, T1=1)``.
"""

from __future__ import annotations

from ._allocation import Allocation
from ._assessment import evaluate
from ._comparison import Comparison, compare
from ._design import Designed
from ._errors import (
    ArgumentError,
    InputError,
    InternalError,
    MissingFileError,
    NotFittedError,
    OutputError,
    PoulError,
    UsageError,
)
from ._evaluation import Evaluation
from ._frames import Table
from ._learner import Learner, Poul, load
from ._policies import Policies
from ._poul import __version__
from ._profile import Profile, check
from ._settings import learners
from ._simulation import Simulation, simulate
from ._tuning import Tuning, tune

__all__ = [
    "Allocation",
    "ArgumentError",
    "Comparison",
    "Designed",
    "Evaluation",
    "InputError",
    "InternalError",
    "Learner",
    "MissingFileError",
    "NotFittedError",
    "OutputError",
    "Policies",
    "Poul",
    "PoulError",
    "Profile",
    "Simulation",
    "Table",
    "Tuning",
    "UsageError",
    "__version__",
    "check",
    "compare",
    "evaluate",
    "learners",
    "load",
    "simulate",
    "tune",
]
