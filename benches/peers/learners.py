#!/usr/bin/env python3
"""Learners on the same rows and threads as EconML's and causalml's: fit with nuisances, prediction, memory, error.

    python3 benches/peers/learners.py --venv target/peers-venv --binary target/release/poul [--rounds 3]

x ~ N(0, 1)²⁰, P(w = 1) = .2 + .6·σ(x₃), τ = σ(3x₁) + max(x₂, 0), y = x₃ + sin x₄ + τw + N(0, 1); 20,000 rows to
learn from, 20,000 to predict; forests of 500 trees, two threads. The error is RMSE of the effect over the standard deviation of
the true effect. Ours runs as a command, reading CSV and writing its model included, theirs on arrays in memory. Learners take
turns; medians and ranges are printed; forests of the peers, which take minutes and vary little, run once. Exit code 77: could
not be installed.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import packages

TREES, N_ROWS, N_FEATURES, THREADS = 500, 20_000, 20, 2
#: Of each learner, what its users would pick instead.
PEERS = {
    "causal-forest": ["econml.CausalForestDML", "causalml.CausalRandomForestRegressor"],
    "ridge": ["econml.LinearDML"],
    "r-learner": ["causalml.BaseRRegressor"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="folder for the environment")
    parser.add_argument("--binary", type=pathlib.Path, help="the poul binary, built for release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return peer(arguments.inside, arguments.folder)
    python = packages.environment_python(arguments.venv.resolve(), ["econml", "causalml"])
    if python is None:
        return 77
    print(f"{'':>38} {'fit s':>8} {'(range)':>15} {'predict s':>10} {'peak MB':>8} {'nPEHE':>7} {'our fit is':>14}")
    with tempfile.TemporaryDirectory() as folder:
        run(python, __file__, "--venv", "-", "--inside", "rows", "--folder", folder)
        for learner in arguments.only:
            found = {}
            for number in range(arguments.rounds):
                found.setdefault(f"poul {learner}", []).append(ours(arguments.binary.resolve(), python, folder, learner))
                for name in PEERS[learner]:
                    if number == 0 or "Forest" not in name:
                        line = run(python, __file__, "--venv", "-", "--inside", name, "--folder", folder)
                        found.setdefault(name, []).append([float(word) for word in line.split()])
            show(found, f"poul {learner}")
    return 0


def show(found, own):
    """A line for each learner."""
    own_fit = statistics.median(row[0] for row in found[own])
    for name, rows in found.items():
        fits = [row[0] for row in rows]
        fit, predict, peak, error = (statistics.median(column) for column in zip(*rows))
        ratio = "" if name == own else f"{fit / own_fit:.1f} × faster"
        spread = f"({min(fits):.2f}–{max(fits):.2f})"
        print(f"{name:>38} {fit:>8.2f} {spread:>15} {predict:>10.2f} {peak:>8.0f} {error:>7.3f} {ratio:>14}", flush=True)


def ours(binary, python, folder, learner):
    """Seconds to fit and to predict, peak memory, error."""
    roles = ["--treatment-columns", "w", "--outcome", "y", "--exclude", "tau", "--design", "observational"]
    settings = pathlib.Path(folder) / "poul.toml"
    settings.write_text(f"[model]\ntrees = {TREES}\n" if learner == "causal-forest" else "")
    model, effects = f"{folder}/model.poul", f"{folder}/effects.csv"
    common = ["--threads", THREADS, "--quiet"]
    start = time.perf_counter()
    peak = peak_of(binary, "fit", f"{folder}/train.csv", *roles, "--control", "w=0", "--learner", learner, "--config",
                   settings, "--out", model, *common)
    fitted = time.perf_counter()
    run(binary, "effect", model, f"{folder}/test.csv", "--policy", "w=1", "--out", effects, *common)
    done = time.perf_counter()
    error = run(python, __file__, "--venv", "-", "--inside", "error", "--folder", folder)
    return fitted - start, done - fitted, peak, float(error)


def peak_of(*command):
    """Runs a command; its peak of memory in MB."""
    command = [str(word) for word in command]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(" ".join(command))
    return usage.ru_maxrss / 1024


def run(*command):
    command = [str(word) for word in command]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    if finished.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{finished.stderr}")
    return finished.stdout


def peer(name, folder):
    """Inside the environment."""
    import numpy as np
    import pandas as pd

    if name == "rows":
        rng = np.random.default_rng(3)
        x = rng.normal(size=(2 * N_ROWS, N_FEATURES))
        w = (rng.random(2 * N_ROWS) < 0.2 + 0.6 / (1 + np.exp(-x[:, 2]))).astype(int)
        tau = 1 / (1 + np.exp(-3 * x[:, 0])) + np.maximum(x[:, 1], 0)
        y = x[:, 2] + np.sin(x[:, 3]) + tau * w + rng.normal(size=2 * N_ROWS)
        table = pd.DataFrame(x, columns=[f"x{i}" for i in range(N_FEATURES)]).assign(w=w, y=y, tau=tau)
        table[:N_ROWS].to_csv(folder / "train.csv", index=False)
        table[N_ROWS:].to_csv(folder / "test.csv", index=False)
        return 0
    train, test = pd.read_csv(folder / "train.csv"), pd.read_csv(folder / "test.csv")
    columns = [f"x{i}" for i in range(N_FEATURES)]
    x, w, y, later = train[columns].to_numpy(), train.w.to_numpy(), train.y.to_numpy(), test[columns].to_numpy()
    start = time.perf_counter()
    if name == "error":
        print(error_of(pd.read_csv(folder / "effects.csv")["effect_y"], test.tau))
        return 0
    model, fit, predict = estimator(name)
    fit(model, x, w, y)
    fitted = time.perf_counter()
    effects = predict(model, later)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(fitted - start, done - fitted, peak, error_of(np.ravel(effects), test.tau))
    return 0


def estimator(name):
    """An estimator of the peers', how it is fitted, how it predicts."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    package, kind = name.split(".")
    if package == "econml":
        from econml import dml

        model = dml.LinearDML(
            model_y=HistGradientBoostingRegressor(), model_t=HistGradientBoostingClassifier(), discrete_treatment=True, cv=3,
            random_state=1,
        ) if kind == "LinearDML" else dml.CausalForestDML(
            model_y=RandomForestRegressor(TREES // 4, min_samples_leaf=5, n_jobs=THREADS),
            model_t=RandomForestClassifier(TREES // 4, min_samples_leaf=5, n_jobs=THREADS),
            discrete_treatment=True, n_estimators=TREES, n_jobs=THREADS, random_state=1,
        )
        return model, lambda model, x, w, y: model.fit(y, w, X=x), lambda model, x: model.effect(x)
    if kind == "BaseRRegressor":
        from causalml.inference.meta import BaseRRegressor

        model = BaseRRegressor(learner=HistGradientBoostingRegressor(), n_fold=3, random_state=1)
        return model, lambda model, x, w, y: model.fit(X=x, treatment=w, y=y), lambda model, x: model.predict(X=x)
    from causalml.inference.tree import CausalRandomForestRegressor

    model = CausalRandomForestRegressor(n_estimators=TREES, min_samples_leaf=5, n_jobs=THREADS, random_state=1)
    return model, lambda model, x, w, y: model.fit(X=x, treatment=w, y=y), lambda model, x: model.predict(x)


def error_of(effects, truth):
    import numpy as np

    return float(np.sqrt(np.mean((np.asarray(effects) - truth) ** 2)) / np.std(truth))


if __name__ == "__main__":
    sys.exit(main())
