"""The examples in docstrings, and the Python in the pages of the book, are run."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import shutil
from pathlib import Path

import matplotlib
import pytest

import poul

from conftest import ROOT

matplotlib.use("agg")

MODULES = sorted(path.stem for path in Path(poul.__file__).parent.glob("*.py"))
PAGES = sorted(path.name for path in (ROOT / "book").glob("python*.md"))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = poul if name == "__init__" else importlib.import_module(f"poul.{name}")
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_the_book(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request) -> None:
    """Blocks marked ``python`` run one after the other; a ``text`` block below one is what it prints.

    ``POUL_BOOK=update`` writes what they print into the page.
    """
    page = ROOT / "book" / name
    text = page.read_text(encoding="utf-8")
    for file in sorted(set(re.findall(r"[\w-]+\.csv\.gz", text))):
        shutil.copy(request.getfixturevalue("shared_data") / file, tmp_path / file)
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": name}

    def run(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match["code"], f"{name}: {match['code'].splitlines()[0]}", "exec"), space)
        shown = f"\n```text\n{printed.getvalue().rstrip()}\n```\n" if printed.getvalue() else ""
        return f"```python\n{match['code']}```\n{shown}"

    blocks = r"^```python\n(?P<code>.*?)^```\n(?P<shown>\n```text\n.*?^```\n)?"
    found, n_blocks = re.subn(blocks, run, text, flags=re.MULTILINE | re.DOTALL)
    assert n_blocks > 0
    if os.environ.get("POUL_BOOK") == "update":
        page.write_text(found, encoding="utf-8")
    else:
        for found_line, line in zip(found.splitlines(), text.splitlines()):
            assert is_close(found_line, line) or found_line == line, "run with POUL_BOOK=update after a deliberate change"
        assert len(found.splitlines()) == len(text.splitlines()), "run with POUL_BOOK=update"


#: A number with a fraction, or a percentage.
FIGURE = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+(?:e-?\d+)?|(?= %))")


def is_close(found: str, expected: str) -> bool:
    """Whether two lines have the same words and whole numbers, and figures within 2 % or the same to two digits."""

    def figures(line: str) -> list[float]:
        return [float(text.replace(",", "").replace("−", "-")) for text in FIGURE.findall(line)]

    def are_close(a: float, b: float) -> bool:
        return abs(a - b) <= 0.02 * max(abs(a), abs(b)) or f"{a:.1e}" == f"{b:.1e}"

    # How far columns are apart depends on the width of figures.
    words = [FIGURE.sub(" # ", line).split() for line in (found, expected)]
    return words[0] == words[1] and all(map(are_close, figures(found), figures(expected)))


def test_wrong_figures_are_not_close() -> None:
    line = "gmv   T2   1,204   0.4312   -0.1234   40 % kept"
    assert is_close("gmv T2 1,204 0.4330 -0.1241 40 % kept", line)
    for wrong in ("gmv T2 1,204 0.4712 -0.1234 40 % kept", "gmv T2 1,205 0.4312 -0.1234 40 % kept",
                  "gmv T2 1,204 0.4312 0.1234 40 % kept", "gmv T3 1,204 0.4312 -0.1234 40 % kept",
                  "gmv T2 1,204 0.4312 -0.1234 50 % kept", "gmv T2 1,204 0.4312 -0.1234 40 % lost"):  # fmt: skip
        assert not is_close(wrong, line), wrong
