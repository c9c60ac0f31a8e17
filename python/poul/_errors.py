"""Exceptions: the library's one error, by whose fault it is. Every one is a :class:`PoulError`."""

from __future__ import annotations

import re
from collections.abc import Iterable


class PoulError(Exception):
    """Anything that went wrong in POUL; ``hint`` says what to do about it."""

    hint: str | None

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = in_python(message)
        self.hint = None if hint is None else in_python(hint)
        super().__init__(self.message if self.hint is None else f"{self.message}\nhint: {self.hint}")

    def __reduce__(self) -> tuple[type[PoulError], tuple[str, str | None]]:
        return type(self), (self.message, self.hint)

    def __str__(self) -> str:
        return str(self.args[0])


class UsageError(PoulError, ValueError):
    """A wrong or contradictory setting."""


class ArgumentError(PoulError, TypeError):
    """An argument that does not exist, or of the wrong type."""


class InputError(PoulError, ValueError):
    """A frame, a file or a table that cannot be used as it is."""


class MissingFileError(PoulError, FileNotFoundError):
    """A file that is not there."""


class OutputError(PoulError, OSError):
    """Something that could not be written."""


class NotFittedError(PoulError, ValueError, AttributeError):
    """A model that was asked before it was fitted."""


class InternalError(PoulError, RuntimeError):
    """A bug in POUL."""


def in_python(text: str) -> str:
    """The flags of the command line in a message as arguments.

    >>> in_python("name one or more with `--outcome COL`, or see --allow-unseen")
    'name one or more with `outcomes=COL`, or see allow_unseen='
    >>> in_python("--by: there is no column `cty`"), in_python("name it as one too: --outcome cost")
    ('by: there is no column `cty`', 'name it as one too: outcomes=cost')
    """

    def argument(match: re.Match[str]) -> str:
        name = match["flag"].replace("-", "_")
        name = {"outcome": "outcomes"}.get(name, name)
        # A flag before a colon is where something is wrong, not what to write.
        return name if match.string[match.end() :].startswith(":") else f"{name}={match['value'] or ''}"

    value = r"(?:[ =](?P<value>[A-Z0-9'\"][^\s`;]*|randomized|stratified|observational|[^\s`;]+$))?"
    return re.sub(rf"(?<![^\s(])(?P<open>`?)--(?P<flag>[a-z][a-z-]+){value}", lambda m: m["open"] + argument(m), text)


def unknown_argument(name: str, known: Iterable[str], where: str) -> ArgumentError:
    """``name`` is not among the ``known`` arguments of ``where``."""
    from ._poul import nearest_name

    known = sorted(known)
    nearest = nearest_name(name, known)
    hint = f"did you mean `{nearest}`?" if nearest else f"the arguments are {', '.join(known)}"
    return ArgumentError(f"{where} has no argument `{name}`", hint)
