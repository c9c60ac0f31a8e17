"""What an evaluation found: numbers, tables, curves."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _html, _poul, _text
from ._errors import ArgumentError, UsageError
from ._frames import take
from ._policies import Policy, policy_name, policy_names
from ._progress import Listener
from ._settings import roles_of, to_json

_SHOWN = ("n_treated", "n_control", "ate", "ate_interval", "ate_predicted", "auuc", "auuc_interval", "qini", "mape",
          "calibration_slope")  # fmt: skip
_TITLES = {"n_treated": "treated", "n_control": "control", "ate": "effect", "ate_interval": "interval",
           "ate_predicted": "predicted", "auuc": "AUUC", "auuc_interval": "interval", "qini": "Qini", "mape": "MAPE",
           "calibration_slope": "slope"}  # fmt: skip


class Evaluation:
    """Metrics of every outcome and policy. ``results`` and ``pooled`` are those of ``poul evaluate --json``."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = dict(document)

    @property
    def rows(self) -> int:
        """Rows measured."""
        rows: int = self._document["rows"]
        return rows

    @property
    def level(self) -> float:
        """The level of intervals."""
        level: float = self._document["level"]
        return level

    @property
    def results(self) -> list[dict[str, Any]]:
        """One entry for each outcome and policy."""
        results: list[dict[str, Any]] = self._document["results"]
        return results

    @property
    def pooled(self) -> list[dict[str, Any]]:
        """One entry for each outcome: all policies together."""
        pooled: list[dict[str, Any]] = self._document["pooled"]
        return pooled

    @property
    def cost_curves(self) -> list[dict[str, Any]]:
        """Cost curves, where asked for."""
        curves: list[dict[str, Any]] = self._document.get("cost_curves", [])
        return curves

    def metrics(self, outcome: str | None = None, policy: str | None = None) -> dict[str, Any]:
        """All numbers of one comparison; all policies together where none is named and there are several."""
        outcomes = list(dict.fromkeys(result["outcome"] for result in self.results))
        if outcome is None:
            if len(outcomes) > 1:
                raise UsageError("which outcome?", f"the outcomes are {', '.join(outcomes)}")
            outcome = outcomes[0]
        of_outcome = [result for result in self.results if result["outcome"] == outcome]
        if policy is None:
            pooled = [entry for entry in self.pooled if entry["outcome"] == outcome]
            found = of_outcome if len(of_outcome) == 1 else pooled
        else:
            found = [result for result in of_outcome if result["policy"] == policy]
        if not found:
            known = [(result["outcome"], result["policy"]) for result in self.results]
            raise UsageError(f"nothing is known of outcome {outcome!r} and policy {policy!r}", f"there are {known}")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as in the metrics file."""
        return self._document

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the metrics file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._document, file, indent=2)
            file.write("\n")

    def table(self) -> list[dict[str, Any]]:
        """The main numbers as rows, ready for ``pandas.DataFrame``."""
        rows = [{"outcome": one["outcome"], "policy": one["policy"], **_main(one)} for one in self.results]
        for one in self.pooled:
            if len(one["policies"]) > 1:
                rows.append({"outcome": one["outcome"], "policy": f"all {len(one['policies'])}", **_main(one)})
        return rows

    def __repr__(self) -> str:
        against = self.results[0]["against"] if self.results else "nothing"
        rows = [[_text.cell(value) for value in row.values()] for row in self.table()]
        header = ["outcome", "policy", *(_TITLES[name] for name in _SHOWN)]
        last = f"Effects are against {against}; intervals at {100 * self.level:.0f} %; {self.rows:,} rows."
        return f"{_text.table(header, rows, left=2)}\n{last}"

    def _repr_html_(self) -> str:
        header = ["outcome", "policy", *(_TITLES[name] for name in _SHOWN)]
        rows = [[_text.cell(value) for value in row.values()] for row in self.table()]
        curves = "".join(
            _html.gain_curve(entry["curve"], f"{entry['outcome']}: gain by share of rows") for entry in self.pooled
        )
        return _html.table(header, rows) + curves

    def plot(self, outcome: str | None = None, policy: str | None = None, *, kind: str = "gain", ax: Any = None) -> Any:
        """Draws a curve with matplotlib and gives its axes back.

        ``kind``: `gain`, the gain by share of rows with its band; or `calibration`, observed by predicted effects.
        """
        if kind not in ("gain", "calibration"):
            raise UsageError(f"there is no plot of kind {kind!r}", "the kinds are `gain` and `calibration`")
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ArgumentError("plots need matplotlib", "pip install matplotlib") from None
        if ax is None:
            outcomes = list(dict.fromkeys(one["outcome"] for one in self.results)) if outcome is None else [outcome]
            _, axes = plt.subplots(1, len(outcomes), squeeze=False, figsize=(5 * len(outcomes), 4))
            for axis, name in zip(axes[0], outcomes):
                _draw(axis, self.metrics(name, policy), kind)
            return axes[0] if len(outcomes) > 1 else axes[0, 0]
        _draw(ax, self.metrics(outcome, policy), kind)
        return ax


def evaluate(
    data: Any,
    effects: Any,
    *,
    outcomes: str | Sequence[str],
    treatment: str | None = None,
    control: Policy | None = None,
    policy: Policy | Sequence[Policy] | None = None,
    against: Policy | None = None,
    truth: Any = None,
    cost_curve: tuple[str, str] | None = None,
    draws: int = 200,
    level: float = 0.9,
    bins: int = 10,
    seed: int = 3407,
    threads: int | None = None,
    progress: bool | None = None,
    **roles: Any,
) -> Evaluation:
    """Measures effects that any tool predicted: a column, or a mapping from policies to columns.

    ``effects`` and ``truth`` are a column for all policies, ``{policy: column}`` or ``{(outcome, policy): column}``.
    """
    own = roles_of({"outcomes": outcomes, "treatment": treatment, "control": control, **roles})
    request = evaluation_request(
        own, policy, against, effects, truth, cost_curve, False, draws, level, bins, seed, None, threads
    )
    frame, _ = take(data)
    with Listener(progress) as listener:
        return Evaluation(json.loads(_poul.evaluate_columns(frame, to_json(request), listener)))


def evaluation_request(
    roles: Mapping[str, Any],
    policy: Policy | Sequence[Policy] | None,
    against: Policy | None,
    effects: Any,
    truth: Any,
    cost_curve: tuple[str, str] | None,
    allow_unseen: bool,
    draws: int,
    level: float,
    bins: int,
    seed: int,
    memory: str | None,
    threads: int | None,
) -> dict[str, Any]:
    """An evaluation as the native part reads it."""
    return {
        "roles": dict(roles),
        "policy": policy_names(policy),
        "against": None if against is None else policy_name(against),
        "effects": _specs(effects, "effects"),
        "truth": _specs(truth, "truth"),
        "cost_curve": None if cost_curve is None else list(cost_curve),
        "allow_unseen": allow_unseen,
        "draws": draws,
        "level": level,
        "bins": bins,
        "seed": seed,
        "memory": memory,
        "threads": threads,
    }


def _specs(columns: Any, argument: str) -> list[dict[str, Any]]:
    if columns is None:
        return []
    if isinstance(columns, str):
        return [{"outcome": None, "policy": None, "column": columns}]
    if not isinstance(columns, Mapping):
        raise ArgumentError(f"`{argument}` must be a column, or a mapping from policies to columns")
    specs = []
    for key, column in columns.items():
        outcome, policy = (None, key) if isinstance(key, str) else key
        specs.append({"outcome": outcome, "policy": policy, "column": column})
    return specs


def _main(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in _SHOWN}


def _draw(ax: Any, metrics: Mapping[str, Any], kind: str) -> None:
    name = metrics.get("policy") or f"{len(metrics['policies'])} policies"
    title = f"{metrics['outcome']}: {name} against {metrics['against']}"
    if kind == "gain":
        curve = metrics["curve"]
        share = [point["share"] for point in curve]
        bands = [point["gain_interval"] for point in curve]
        ax.plot(share, [point["gain"] for point in curve], label="by predicted effect")
        if all(bands):
            ax.fill_between(share, [low for low, _ in bands], [high for _, high in bands], alpha=0.2, linewidth=0)
        ax.plot([0, 1], [0, curve[-1]["gain"]], linestyle="--", color="gray", label="at random")
        ax.set(xlabel="share of rows", ylabel=f"gain in {metrics['outcome']}", title=title)
    else:
        bins = [one for one in metrics["calibration"] if one["observed"] is not None]
        predicted, observed = [one["predicted"] for one in bins], [one["observed"] for one in bins]
        ax.plot(predicted, observed, marker="o", linestyle="", label="bins of rows")
        ends = [min(predicted), max(predicted)]
        ax.plot(ends, ends, linestyle="--", color="gray", label="as predicted")
        ax.set(xlabel="predicted effect", ylabel="observed effect", title=title)
    ax.legend()
