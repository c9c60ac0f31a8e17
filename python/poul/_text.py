"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def cell(value: Any) -> str:
    """A value for a person: four digits, intervals with an ellipsis, a dash for what is not there.

    >>> [cell(value) for value in (None, 21345, 0.012345, [0.1, 0.2], "T2")]
    ['–', '21,345', '0.01235', '0.1 … 0.2', 'T2']
    """
    if value is None:
        return "–"
    if isinstance(value, (list, tuple)):
        return " … ".join(cell(one) for one in value)
    if isinstance(value, bool) or isinstance(value, str):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns under their titles; the first ``left`` of them flush left."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [text.ljust(width) if i < left else text.rjust(width) for i, (text, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
