"""What goes to the workers: the content of the model and the question, and a function that needs nothing but this package.

Spark hands the function with all it holds to each executor once for each stage, and the executor to its Python workers. A worker
unpacks a model once, however many tasks it does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .._poul import __version__

if TYPE_CHECKING:
    from .._learner import Learner

#: What a worker does with the batches of a partition: `poul.spark._worker` has a function of that name.
Work = Callable[[Iterator[Any]], Iterator[Any]]


def shipped(task: str, model: Learner | None, **job: Any) -> Work:
    """The function of that name in ``_worker``, with the model and the rest of its job."""
    content = b"" if model is None else model._fitted().to_bytes()
    return _work(task, __version__, content, hashlib.sha256(content).hexdigest(), job)


def _work(task: str, version: str, content: bytes, digest: str, job: dict[str, Any]) -> Work:
    # It is pickled by value, so that a worker without the package, or with another, says so itself.
    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        try:
            from poul._poul import __version__ as own
        except ImportError as error:
            raise ImportError(
                f"a worker has no poul ({error}): install poul=={version} for {sys.executable}, "
                "on every node, or ship an environment that has it"
            ) from error
        if own != version:
            raise ImportError(
                f"the driver has poul {version}, a worker {own} ({sys.executable}): install the same version everywhere"
            )
        from poul.spark import _worker

        yield from getattr(_worker, task)(batches, content, digest, **job)

    return work
