"""Exceptions: the library's one error, by whose fault it is. Every one is a :class:`PoulError`."""

from __future__ import annotations

from collections.abc import Iterable


class PoulError(Exception):
    """Anything that went wrong in POUL; ``hint`` says what to do about it."""

    hint: str | None

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
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


def unknown_argument(name: str, known: Iterable[str], where: str) -> ArgumentError:
    """``name`` is not among the ``known`` arguments of ``where``."""
    from ._poul import nearest_name

    known = sorted(known)
    nearest = nearest_name(name, known)
    hint = f"did you mean `{nearest}`?" if nearest else f"the arguments are {', '.join(known)}"
    return ArgumentError(f"{where} has no argument `{name}`", hint)
