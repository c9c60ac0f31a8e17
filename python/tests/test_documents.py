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
        assert found == text, "run with POUL_BOOK=update after a deliberate change"
