#!/usr/bin/env python3
"""Holds the metrics of `poul` against causalml, scikit-uplift and plain NumPy, to 1e-8.

    python3 tests/metrics/compare.py --venv target/metrics-venv [--binary target/release/metrics_json]

The binary is built (`cargo build --release -p benches --bin metrics_json`) where none is given. Exit codes: 0 agreed,
1 disagreed, 77 the packages could not be installed.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import packages

TOLERANCE = 1e-8
ROOT = packages.HERE.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "target" / "metrics-venv",
                        help="folder for the environment (default: target/metrics-venv)")
    parser.add_argument("--binary", type=pathlib.Path, help="the metrics_json program, built")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return compare(arguments.binary)
    try:
        python = packages.environment_python(arguments.venv.resolve())
    except packages.CannotInstall as error:
        print(f"could not install the packages to compare with:\n{error}")
        return 77
    binary = arguments.binary or build()
    command = [str(python), str(pathlib.Path(__file__).resolve()), "--inside", "--binary", str(binary.resolve())]
    return subprocess.run(command, check=False).returncode


def build():
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "benches", "--bin", "metrics_json"],
                   cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "metrics_json"


def compare(binary):
    import numpy as np
    import pandas as pd
    import sklift.metrics as sklift

    causalml = packages.causalml_metrics()
    n_compared, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for name, score, outcome, treated, weight in worlds(np):
            path = pathlib.Path(folder) / "rows.csv"
            columns = {"score": score, "outcome": outcome, "treated": treated}
            if weight is not None:
                columns["weight"] = weight
            pd.DataFrame(columns).to_csv(path, index=False)
            found = json.loads(subprocess.run([binary, path], check=True, capture_output=True, text=True).stdout)
            expected = plain_metrics(np, score, outcome, treated, weight)
            if weight is None:
                expected |= causalml_metrics(np, pd, causalml, score, outcome, treated)
                if set(np.unique(outcome)) == {0, 1}:
                    expected |= sklift_metrics(np, sklift, score, outcome, treated)
            for metric, value in expected.items():
                n_compared += 1
                if not agree(found[metric], value):
                    wrong.append(f"{name}: {metric} is {found[metric]}, expected {value}")
    print("\n".join(wrong) or f"{n_compared} values agree to {TOLERANCE}")
    return 1 if wrong else 0


def agree(found, expected):
    if expected is None or not math.isfinite(expected):
        return found is None
    return found is not None and abs(found - expected) <= TOLERANCE * max(1.0, abs(expected))


def worlds(np):
    """Rows with and without ties, 0/1 and continuous outcomes, few and many, even and uneven arms."""
    rng = np.random.default_rng(3407)
    for n_rows in (12, 57, 1000, 20000):
        for share in (0.5, 0.2):
            for tied in (False, True):
                for binary in (True, False):
                    effect = rng.normal(0.1, 0.2, n_rows)
                    treated = (rng.random(n_rows) < share).astype(int)
                    treated[:4] = [0, 1, 0, 1]
                    level = 0.4 + effect * treated
                    outcome = (rng.random(n_rows) < level).astype(int) if binary else rng.gamma(2.0, 50.0 * np.clip(level, .1, 2))
                    if binary:
                        outcome[:4] = [0, 1, 1, 0]
                    score = effect + rng.normal(0, 0.1, n_rows)
                    if tied:
                        score = np.round(score, 1)
                    name = f"{n_rows} rows, treated {share}, {'tied, ' if tied else ''}{'0/1' if binary else 'continuous'}"
                    yield name, score, outcome, treated, None
                    yield f"{name}, weighted", score, outcome, treated, rng.integers(0, 4, n_rows) + (np.arange(n_rows) < 4)
    # Negative average effect; an arm that is empty far down the ranking; all scores equal.
    treated = np.arange(400) % 2
    noise = rng.normal(0, 1, 400)
    yield "negative effect", noise, noise * treated - treated, treated, None
    yield "late control", np.linspace(1, 0, 400), noise + 3 * treated, (np.arange(400) < 150).astype(int), None
    yield "late treated", np.linspace(1, 0, 400), noise + 3 * treated, (np.arange(400) >= 150).astype(int), None
    yield "constant score", np.ones(400), noise + 3 * treated, treated, None


def causalml_metrics(np, pd, causalml, score, outcome, treated):
    # causalml sorts with an unstable quicksort: distinct ranks stand for "ties in input order".
    rank = np.empty(len(score))
    rank[np.argsort(-score, kind="stable")] = -np.arange(len(score))
    frame = pd.DataFrame({"model": rank, "y": outcome.astype(float), "w": treated})
    return {
        "auuc_causalml": causalml.auuc_score(frame)["model"],
        "auuc_causalml_unnormalised": causalml.auuc_score(frame, normalize=False)["model"],
        "qini_causalml": causalml.qini_score(frame)["model"],
        "qini_causalml_unnormalised": causalml.qini_score(frame, normalize=False)["model"],
    }


def sklift_metrics(np, sklift, score, outcome, treated):
    values = {
        "uplift_auc_sklift": sklift.uplift_auc_score(outcome, score, treated),
        "qini_auc_sklift": sklift.qini_auc_score(outcome, score, treated),
    }
    try:
        values["qini_auc_sklift_positive"] = sklift.qini_auc_score(outcome, score, treated, negative_effect=False)
    except ValueError:
        values["qini_auc_sklift_positive"] = None
    if len(np.unique(score)) == len(score):
        # With ties scikit-uplift takes tied rows in reversed input order; ours shares them in proportion.
        for metric, strategy, share in (("uplift_at_10", "overall", 0.1), ("uplift_at_30", "overall", 0.3),
                                        ("uplift_at_30_by_group", "by_group", 0.3)):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the mean of an empty arm
                values[metric] = sklift.uplift_at_k(outcome, score, treated, strategy, share)
    return values


def plain_metrics(np, score, outcome, treated, weight):
    """The paper's AUUC and others by definition, one step at a time; whole weights by repeating rows."""
    if weight is not None:
        score, outcome, treated = (np.repeat(column, weight) for column in (score, outcome, treated))
    order = np.argsort(-score, kind="stable")
    score, outcome, treated = score[order], outcome[order].astype(float), treated[order].astype(float)
    n = len(score)
    n_t, n_c = treated.cumsum(), (1 - treated).cumsum()
    y_t, y_c = (outcome * treated).cumsum(), (outcome * (1 - treated)).cumsum()
    cuts = np.append(np.flatnonzero(np.diff(score)), n - 1)
    k = np.append(0, cuts + 1)
    with np.errstate(all="ignore"):
        lift = np.append(0, (y_t / n_t - y_c / n_c)[cuts])
        q = np.append(0, (y_t - y_c * n_t / n_c)[cuts])
    known = np.isfinite(lift)
    gain = k * np.interp(k, k[known], lift[known])
    curve = np.interp(np.arange(1, n + 1), k, gain)
    known = np.isfinite(q)
    q_curve = np.interp(np.arange(n + 1), k[known], q[known])
    values = {
        "auuc": curve.mean() / abs(gain[-1]),
        "random_auuc": math.copysign(0.5, gain[-1]),
        "qini": (q_curve.mean() - q_curve[-1] / 2) / abs(q_curve[-1]),
        "ate": lift[-1],
    }
    values |= plain_rate(np, score, outcome, treated)
    slopes = [np.polyfit(score[treated == arm], outcome[treated == arm], 1)[0]
              if np.ptp(score[treated == arm]) > 0 else math.nan for arm in (0, 1)]
    values["calibration_slope"] = slopes[1] - slopes[0]
    if n % 10 == 0 and all(cut in k for cut in range(0, n, n // 10)):
        tops = np.arange(0, n, n // 10)
        parts = [slice(top, top + n // 10) for top in tops]
        arms = [(outcome[part][treated[part] == 1], outcome[part][treated[part] == 0]) for part in parts]
        if all(len(t) and len(c) for t, c in arms):
            observed = np.array([t.mean() - c.mean() for t, c in arms])
            predicted = np.array([score[part].mean() for part in parts])
            values["mape"] = np.mean(np.abs(predicted - observed) / np.abs(observed))
            values["wmape"] = np.abs(predicted - observed).sum() / np.abs(observed).sum()
    return values


def plain_rate(np, score, outcome, treated):
    """grf's definition on doubly robust scores with arm means and arm shares."""
    n = len(score)
    share, m1, m0 = treated.mean(), outcome[treated == 1].mean(), outcome[treated == 0].mean()
    robust = m1 - m0 + treated * (outcome - m1) / share - (1 - treated) * (outcome - m0) / (1 - share)
    _, group = np.unique(-score, return_inverse=True)
    averaged = (np.bincount(group, robust) / np.bincount(group))[group]
    toc = averaged.cumsum() / np.arange(1, n + 1) - robust.mean()
    return {"rate_autoc": toc.mean(), "rate_qini": (np.arange(1, n + 1) / n * toc).mean()}


if __name__ == "__main__":
    sys.exit(main())
