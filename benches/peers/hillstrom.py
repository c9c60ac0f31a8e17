#!/usr/bin/env python3
"""Effects of the women's e-mail (Hillstrom 2008) by our learners beside EconML's and causalml's, on the same split.

    python3 benches/peers/hillstrom.py --venv target/peers-venv --binary target/release/poul --data hillstrom.csv.gz

Half of the women's and the no-mail rows are learned from. On the other half, each learner ranks rows by its predicted
effect; the area between its curve of incremental outcomes and that of a random order (Qini, per row) is compared
with the peers', with a paired bootstrap interval (90 %) of the difference, beside the mean predicted effect. Exit codes:
0 no learner is behind a peer beyond its interval, 1 one is, 77 the packages could not be installed.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import packages

OUTCOMES, DRAWS, TREES = ("visit", "spend"), 500, 500
PAIRS = {
    "causal-forest": ("econml.CausalForestDML", "causalml.CausalRandomForest"),
    "s-learner": ("causalml.S", "econml.SLearner"),
    "t-learner": ("causalml.T", "econml.TLearner"),
    "x-learner": ("causalml.X", "econml.XLearner"),
    "r-learner": ("causalml.R", "econml.NonParamDML"),
    "dr-learner": ("causalml.DR", "econml.DRLearner"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="folder for the environment")
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the poul binary, built for release")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="hillstrom.csv.gz")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return compare(arguments.binary, arguments.data)
    python = packages.environment_python(arguments.venv.resolve(), ["econml", "causalml"])
    if python is None:
        return 77
    command = [python, __file__, "--inside", "--venv", "-", "--binary", arguments.binary.resolve(), "--data", arguments.data]
    return subprocess.run([str(word) for word in command], check=False).returncode


def compare(binary, data):
    import numpy as np
    import pandas as pd

    table = pd.read_csv(data)
    table = table[table.segment != "Mens E-Mail"].reset_index(drop=True)
    rng = np.random.default_rng(2008)
    is_train = rng.random(len(table)) < 0.5
    train, test = table[is_train], table[~is_train].reset_index(drop=True)
    features = pd.get_dummies(table.drop(columns=["segment", "visit", "conversion", "spend"]), dtype=float).to_numpy()
    x, later = features[is_train], features[~is_train]
    w, treated = (train.segment == "Womens E-Mail").to_numpy(int), (test.segment == "Womens E-Mail").to_numpy()
    draws = [rng.integers(0, len(test), len(test)) for _ in range(DRAWS)]
    n_behind = 0
    print(f"{len(train)} rows to learn from, {len(test)} to rank")
    print(f"{'outcome':8} {'ours':14} {'peer':28} {'Qini':>9} {'peer':>9} {'difference, 90 %':>24} {'mean':>9} {'peer':>9}")
    for outcome in OUTCOMES:
        y, happened = train[outcome].to_numpy(float), test[outcome].to_numpy(float)
        for name, peers in PAIRS.items():
            own = ours(binary, name, outcome, train, test)
            own_value = qini(np, own, happened, treated)
            for peer in peers:
                other = peer_effects(peer, x, w, y, later)
                differences = sorted(
                    qini(np, own[rows], happened[rows], treated[rows]) - qini(np, other[rows], happened[rows], treated[rows])
                    for rows in draws
                )
                low, high = differences[DRAWS // 20], differences[-DRAWS // 20 - 1]
                verdict = "  behind" if high < 0 else "  ahead" if low > 0 else ""
                n_behind += high < 0
                interval = f"{low:.5f} … {high:.5f}"
                print(f"{outcome:8} {name:14} {peer:28} {own_value:9.5f} {qini(np, other, happened, treated):9.5f}"
                      f" {interval:>24} {own.mean():9.5f} {other.mean():9.5f}{verdict}", flush=True)
    return 1 if n_behind else 0


def qini(np, effects, outcome, treated):
    """Mean over k of the incremental outcome among the top k, less a random order's, per row."""
    order = np.argsort(-effects, kind="stable")
    outcome, treated = outcome[order], treated[order]
    n_treated, n_control = np.cumsum(treated), np.cumsum(~treated)
    gain = np.cumsum(outcome * treated) - np.cumsum(outcome * ~treated) * n_treated / np.maximum(n_control, 1)
    line = gain[-1] * np.arange(1, len(gain) + 1) / len(gain)
    return (gain - line).mean() / treated.sum()


def ours(binary, learner, outcome, train, test):
    import pandas as pd

    others = [name for name in ("visit", "conversion", "spend") if name != outcome]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        train.to_csv(folder / "train.csv", index=False)
        test.to_csv(folder / "test.csv", index=False)
        settings = folder / "poul.toml"
        settings.write_text(f"[model]\ntrees = {TREES}\n" if learner == "causal-forest" else "")
        fit = ["fit", folder / "train.csv", "--treatment", "segment", "--control", "No E-Mail", "--outcome", outcome,
               "--exclude", ",".join(others), "--learner", learner, "--config", settings, "--out", folder / "model.poul"]
        effect = ["effect", folder / "model.poul", folder / "test.csv", "--policy", "Womens E-Mail", "--out",
                  folder / "effects.csv"]
        for command in (fit, effect):
            finished = subprocess.run([str(word) for word in [binary, *command, "--quiet"]], check=False,
                                      capture_output=True, text=True)
            if finished.returncode != 0:
                sys.exit(finished.stderr)
        return pd.read_csv(folder / "effects.csv")[f"effect_{outcome}"].to_numpy()


def peer_effects(name, x, w, y, later):
    import numpy as np
    from econml.dml import CausalForestDML, NonParamDML
    from econml.dr import DRLearner
    from econml.metalearners import SLearner, TLearner, XLearner
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def boosted():
        return HistGradientBoostingRegressor(max_iter=100, learning_rate=0.05, max_leaf_nodes=8, random_state=1)

    package, kind = name.split(".")
    if package == "econml":
        propensity = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
        model = {
            "CausalForestDML": lambda: CausalForestDML(
                model_y=RandomForestRegressor(125, min_samples_leaf=20, n_jobs=2), model_t=propensity,
                discrete_treatment=True, n_estimators=TREES, n_jobs=2, random_state=1),
            "SLearner": lambda: SLearner(overall_model=boosted()),
            "TLearner": lambda: TLearner(models=boosted()),
            "XLearner": lambda: XLearner(models=boosted(), propensity_model=propensity),
            "NonParamDML": lambda: NonParamDML(model_y=boosted(), model_t=propensity, model_final=boosted(),
                                               discrete_treatment=True, random_state=1),
            "DRLearner": lambda: DRLearner(model_propensity=propensity, model_regression=boosted(),
                                           model_final=boosted(), random_state=1),
        }[kind]()
        return np.ravel(model.fit(y, w, X=x).effect(later))
    from causalml.inference.meta import (
        BaseDRLearner, BaseRRegressor, BaseSRegressor, BaseTRegressor, BaseXRegressor,
    )
    from causalml.inference.tree import CausalRandomForestRegressor

    if kind == "CausalRandomForest":
        forest = CausalRandomForestRegressor(n_estimators=TREES, min_samples_leaf=50, n_jobs=2, random_state=1)
        forest.fit(X=x, treatment=w, y=y)
        return np.ravel(forest.predict(later))
    share = w.mean()
    known = {} if kind in "ST" else {"p": np.full(len(w), share)}
    known_later = {"p": np.full(len(later), share)} if kind == "X" else {}
    learner = {"S": BaseSRegressor, "T": BaseTRegressor, "X": BaseXRegressor, "R": BaseRRegressor, "DR": BaseDRLearner}[kind]
    model = learner(boosted(), control_name=0)
    model.fit(X=x, treatment=w, y=y, **known)
    return np.ravel(model.predict(later, **known_later))


if __name__ == "__main__":
    sys.exit(main())
