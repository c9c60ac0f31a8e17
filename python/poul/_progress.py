"""What long work says: bars by tqdm where somebody looks, records by :mod:`logging` always."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


logger = logging.getLogger("poul")


class Listener:
    """Hears the native part.

    ``progress``: True for bars, False for none, None for bars on terminals and in notebooks. ``checkpoint``: where the
    work leaves what it has done, which whoever stops it is told.
    """

    def __init__(self, progress: bool | None = None, checkpoint: Mapping[str, Any] | None = None) -> None:
        self._bars = _somebody_looks() if progress is None else progress
        self._bar: Any = None
        self._stage = ""
        self._remark = ""
        self._start = 0.0
        self._checkpoint = checkpoint

    def start(self, stage: str, unit: str, total: int | None) -> None:
        """A stage begins."""
        self._close()
        self._stage, self._remark, self._start = stage, "", time.perf_counter()
        logger.debug("%s: begins, %s %s", stage, "?" if total is None else total, unit)
        if self._bars:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._bars = False
            else:
                self._bar = tqdm(total=total, desc=stage, unit=f" {unit}", unit_scale=True, leave=False)

    def advance(self, n: int) -> None:
        """So many more units are done."""
        if self._bar is not None:
            self._bar.update(n)

    def remark(self, text: str) -> None:
        """Where the stage stands."""
        self._remark = text
        if self._bar is not None:
            self._bar.set_postfix_str(text)

    def finish(self) -> None:
        """The stage is over."""
        self._close()
        seconds = time.perf_counter() - self._start
        logger.info("%s: %.1f s%s", self._stage, seconds, f", {self._remark}" if self._remark else "")

    def warn(self, text: str) -> None:
        """Something to know although it is no error."""
        logger.warning("%s", text)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._close()
        if isinstance(error, KeyboardInterrupt) and self._checkpoint is not None:
            folder = self._checkpoint["folder"]
            if (Path(folder) / "work.json").exists():
                error.add_note(f"what is done is kept in {folder}: the same call with resume=True goes on from there")


def _somebody_looks() -> bool:
    if "ipykernel" in sys.modules:
        return True
    stderr = sys.stderr
    return stderr is not None and stderr.isatty()
