"""Arguments that do not exist: told with the nearest name that does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from ._errors import ArgumentError, unknown_argument
from ._settings import ROLES

P = ParamSpec("P")
R = TypeVar("R")


def arguments_of(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments.

    >>> arguments_of(arguments_of)
    ['function']
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"{function!r} is no plain function")
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [name for name in names if name != "self"]


def check_roles(roles: Mapping[str, Any], where: str | Callable[..., Any]) -> None:
    """Further keywords of a function are roles of columns."""
    if "W" in roles:
        hint = "give all features as X: those that effects do not follow are shrunk"
        raise ArgumentError("`W` is not told apart from `X` here", hint)
    name, others = (where, ["policies", "contexts"]) if isinstance(where, str) else (where.__name__, arguments_of(where))
    for role in roles:
        if role not in ROLES:
            raise unknown_argument(role, (*ROLES, *others), name)


def checked_names(function: Callable[P, R]) -> Callable[P, R]:
    """Names every unknown keyword itself, where Python would not say what was meant."""
    known = arguments_of(function)

    @wraps(function)
    def checked(*arguments: P.args, **keywords: P.kwargs) -> R:
        for name in keywords:
            if name not in known:
                raise unknown_argument(name, known, function.__name__)
        return function(*arguments, **keywords)

    return checked
