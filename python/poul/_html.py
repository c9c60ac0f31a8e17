"""What notebooks show: tables, and curves as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from . import _text


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(title)}</th>" for title in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def items(texts: Sequence[str]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def model(label: str, manifest: Mapping[str, Any] | None) -> str:
    """A model: what was asked for, and once it is fitted the main numbers of the fit."""
    title = f"<p><code>{escape(label)}</code></p>"
    if manifest is None:
        return title + "<p>not fitted</p>"
    run = [rows for rows in manifest["policy_rows"] if rows > 0]
    facts = [
        ["learner", manifest["learner"]],
        ["rows", _text.cell(sum(run))],
        ["policies with rows", _text.cell(len(run))],
        ["control", manifest["control"] or "–"],
        ["features", _text.cell(len(manifest["encoder"]["features"]))],
        ["seed", str(manifest["seed"])],
    ]
    outcomes = [[one["name"], _text.cell(one["mean"]), _text.cell(one["sd"])] for one in manifest["outcomes"]]
    notes = "".join(f"<li>{escape(note)}</li>" for note in manifest["notes"])
    return (
        title
        + table(["fit", ""], facts)
        + table(["outcome", "mean", "sd"], outcomes)
        + (f"<ul>{notes}</ul>" if notes else "")
    )


def gain_curve(curve: Sequence[Mapping[str, Any]], title: str) -> str:
    """A gain curve with its band, against a ranking at random."""
    width, height, margin = 360, 220, 12
    bands = [point["gain_interval"] or [point["gain"]] * 2 for point in curve]
    low = min(0.0, *(band[0] for band in bands))
    high = max(0.0, *(band[1] for band in bands))
    spread = (high - low) or 1.0

    def place(share: float, gain: float) -> str:
        x = margin + share * (width - 2 * margin)
        y = height - margin - (gain - low) / spread * (height - 2 * margin)
        return f"{x:.1f},{y:.1f}"

    line = " ".join(place(point["share"], point["gain"]) for point in curve)
    upper = [place(point["share"], band[1]) for point, band in zip(curve, bands)]
    lower = [place(point["share"], band[0]) for point, band in zip(curve, bands)]
    at_random = f"{place(0, 0)} {place(1, curve[-1]['gain'])}"
    return (
        f"<figure style='display:inline-block;margin:8px'><svg width='{width}' height='{height}' role='img' "
        f"aria-label='{escape(title, quote=True)}'>"
        f"<polygon points='{' '.join(upper + lower[::-1])}' fill='#1f77b4' fill-opacity='0.2'/>"
        f"<polyline points='{at_random}' fill='none' stroke='gray' stroke-dasharray='4'/>"
        f"<polyline points='{line}' fill='none' stroke='#1f77b4' stroke-width='2'/></svg>"
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )
