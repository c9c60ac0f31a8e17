"""What an evaluation found: numbers, tables, curves."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _html, _poul, _text
from ._errors import ArgumentError, UsageError
from ._frames import Kind, give

#: What the library knows of its metrics: their keys, and how tables show them.
METRICS: list[dict[str, Any]] = json.loads(_poul.metrics())


def _shown() -> dict[str, str]:
    """The keys of the main numbers and what a table calls them."""
    titles = {"n_treated": "treated", "n_control": "control"}
    for metric in METRICS:
        if metric["is_shown"] and not metric["needs_truth"]:
            titles[metric["name"]] = metric["title"]
            if metric["with_interval"]:
                titles[f"{metric['name']}_interval"] = "interval"
    return titles


_TITLES = _shown()
_AVERAGES = {"outcome": "outcome", "policy": "policy", "by": "by", "group": "group", "rows": "rows",
             "n_treated": "treated", "effect": "effect", "se": "se", "interval": "interval", "band": "band",
             "q_value": "q", "predicted": "predicted"}  # fmt: skip
_BY_PREDICTED_EFFECT = "predicted effect"
_ASSIGNED = {"outcome": "outcome", "policies": "policies", "rows": "rows", "n_policies": "different",
             "r_score": "R-score", "r_score_interval": "interval", "slope": "slope", "slope_interval": "interval",
             "rank_gain": "rank gain", "rank_gain_interval": "interval",
             "rank_gain_predicted": "if true"}  # fmt: skip


class Evaluation:
    """Metrics of every outcome and policy, average effects, who gains, and what can be checked of a model.

    The names are those of ``poul evaluate --json``.
    """

    def __init__(self, text: str, kind: Kind = "arrow") -> None:
        self._text = text
        self._document: dict[str, Any] = json.loads(text)
        self._kind: Kind = kind

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
    def assigned(self) -> list[dict[str, Any]]:
        """Every row by its own policy against what was assigned on average: what is left where policies have few rows.

        An entry for each outcome and for `all` policies, those `seen` in training and those that are `new`: `r_score`, the
        share explained of what the outcome model leaves; `slope`, 1 where sizes are right; `rank_gain`, of two rows how much
        more outcome the one ranked higher has, 0 for a random ranking.
        """
        assigned: list[dict[str, Any]] = self._document.get("assigned", [])
        return assigned

    @property
    def thin_arms(self) -> bool:
        """Whether most rows have a policy with too few rows to be compared on its own; then look at `assigned`."""
        thin: bool = self._document.get("thin_arms", False)
        return thin

    @property
    def cost_curves(self) -> list[dict[str, Any]]:
        """Cost curves, where asked for."""
        curves: list[dict[str, Any]] = self._document.get("cost_curves", [])
        return curves

    @property
    def averages(self) -> Any:
        """Average effects by the doubly robust score, as a frame of the kind that was evaluated.

        A row for each outcome and policy over all rows (`by` and `group` are missing there), by quantile of the predicted
        effect, and by each column asked for: the effect, its standard error, its interval (`lower`, `upper`), the band of
        all comparisons at once (`band_lower`, `band_upper`), p- and q-values, the mean predicted effect and whether it lies outside the band (`outside_band`). In observational
        designs also the rows averaged over (`population`), the share of rows left out for want of overlap
        (`share_without_overlap`), the policy's effective sample size after weighting (`effective_rows`), and how many times something unobserved
        would have to change the odds of getting the policy for the effect to vanish (`vanishes_at`).
        """
        return give(_poul.averages(json.dumps(self._averages())), self._kind)

    @property
    def who_gains(self) -> list[dict[str, Any]]:
        """By outcome and policy, the features along which predicted effects differ, and a small tree; of models."""
        gains: list[dict[str, Any]] = self._document.get("who_gains", [])
        return gains

    @property
    def checks(self) -> list[dict[str, str]]:
        """What was checked of a model: `name`, `verdict` (`pass`, `doubt` or `fail`) and `text`, the worst first."""
        return [] if self.validation is None else self.validation["checks"]

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """By outcome, whether the ranking and the sizes are right, judged within policies.

        `ranking` and `sizes` have a `grade` (`good`, `mixed`, `poor` or `undecided`), a `text` and what is found of each of
        the `policies`. `pooled` is what the figures of all policies together say, `difference` why the difference in means
        and the doubly robust average differ; each where there is something to say.
        """
        verdicts: dict[str, Any] = self._document.get("verdicts", {})
        found: list[dict[str, Any]] = verdicts.get("outcomes", [])
        return found

    @property
    def conclusion(self) -> str:
        """What can be claimed, in one sentence."""
        verdicts: dict[str, Any] = self._document.get("verdicts", {})
        conclusion: str = verdicts.get("conclusion", "")
        return conclusion

    @property
    def validation(self) -> dict[str, Any] | None:
        """The numbers behind the checks: balance, outcome model, overlap, placebo, sensitivity."""
        validation: dict[str, Any] | None = self._document.get("validation")
        return validation

    @property
    def policies(self) -> list[dict[str, Any]]:
        """The policies of a model beside each other: place on the map, nearest that was run, support, bound."""
        policies: list[dict[str, Any]] = self._document.get("policies", [])
        return policies

    @property
    def atoms(self) -> list[dict[str, Any]]:
        """What each action does in each context, by outcome; of models."""
        atoms: list[dict[str, Any]] = self._document.get("atoms", [])
        return atoms

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the numbers come from: version, seeds, fingerprints of the data, training history."""
        provenance: dict[str, Any] = self._document["provenance"]
        return provenance

    def metrics(self, outcome: str | None = None, policy: str | None = None) -> dict[str, Any]:
        """All numbers of one comparison; all policies together where none is named and there are several."""
        outcomes = list(dict.fromkeys(result["outcome"] for result in self.results))
        if not outcomes:
            raise UsageError("no policy has rows enough to be compared on its own", "see `assigned`")
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

    def to_json(self) -> str:
        """Everything, as the text of the metrics file."""
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the metrics file."""
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(self._text + "\n")

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page of ``poul evaluate --report``: one HTML file that opens offline."""
        _poul.write_report(self._text, os.fspath(path))

    def table(self) -> list[dict[str, Any]]:
        """The main numbers as rows, ready for ``pandas.DataFrame``."""
        rows = [{"outcome": one["outcome"], "policy": one["policy"], **_main(one)} for one in self.results]
        for one in self.pooled:
            if len(one["policies"]) > 1:
                rows.append({"outcome": one["outcome"], "policy": f"all {len(one['policies'])}, pooled", **_main(one)})
        return rows

    def __repr__(self) -> str:
        parts = []
        last = f"intervals at {100 * self.level:.0f} %; {self.rows:,} rows."
        if self.results:
            against = self.results[0]["against"]
            parts.append(f"{_text.table(*self._cells(), left=2)}\nEffects are against {against}; {last}")
        header, rows = self._assigned_cells()
        if rows:
            title = f"Every row by its own policy, against what was assigned on average; {last}"
            parts.append(f"{title}\n{_text.table(header, rows, left=2)}")
        header, rows = self._average_cells(grouped=False)
        if rows:
            parts.append(f"Average effects over all rows:\n{_text.table(header, rows, left=2)}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [_html.table(*self._cells())] if self.results else []
        header, rows = self._assigned_cells()
        if rows:
            parts.append(_html.table(header, rows, "Every row by its own policy, against what was assigned on average"))
        for grouped, title in ((False, "over all rows"), (True, "by group")):
            header, rows = self._average_cells(grouped=grouped)
            if rows:
                caption = f"Average effects {title}, with intervals and bands at {100 * self.level:.0f} %"
                parts.append(_html.table(header, rows, caption))
        if self.checks:
            rows = [[check["verdict"], check["name"], check["text"]] for check in self.checks]
            parts.append(_html.table(["verdict", "check", "finding"], rows, "Can it be trusted?"))
        rows = [
            [judged["grade"], judged["text"]] for own in self.verdicts for judged in (own["ranking"], own["sizes"])
        ]
        if rows:
            parts.append(_html.table(["verdict", "finding"], rows, f"Verdicts, within policies. {self.conclusion}"))
        for entry in self.pooled:
            parts.append(_html.gain_curve(entry["curve"], f"{entry['outcome']}: gain by share of rows"))
        return "".join(parts)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """The main numbers, for a person."""
        rows = [[_text.cell(value) for value in row.values()] for row in self.table()]
        return ["outcome", "policy", *_TITLES.values()], rows

    def _assigned_cells(self) -> tuple[list[str], list[list[str]]]:
        """Each row by its own policy, for a person; where arms are full the other tables say more."""
        rows = [[_text.cell(own.get(name)) for name in _ASSIGNED] for own in self.assigned if self.thin_arms]
        return list(_ASSIGNED.values()), rows

    def _average_cells(self, grouped: bool) -> tuple[list[str], list[list[str]]]:
        """Averages over all rows, or by columns, for a person; those by predicted effect are left to the frame."""
        names = [name for name in _AVERAGES if grouped or name not in ("by", "group", "rows")]
        wanted = [
            own
            for own in self._averages()
            if ("by" in own) == grouped and own.get("by") != _BY_PREDICTED_EFFECT
        ]
        rows = [[_text.cell(own.get(name)) for name in names] for own in wanted]
        return [_AVERAGES[name] for name in names], rows

    def _averages(self) -> list[dict[str, Any]]:
        averages: list[dict[str, Any]] = self._document.get("averages", [])
        return averages

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


def _main(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in _TITLES}


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
