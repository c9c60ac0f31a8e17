"""What workers do: score the batches of a partition, or sum them up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .. import _poul
from .._poul import Frame, Model, PolicySet

#: Models of this process by digest: Spark gives one worker many tasks, one after the other.
_UNPACKED: dict[str, Model] = {}
#: Workers that score with several models in turn keep this many.
_MOST_KEPT = 4
#: Rows that are taken together: what is done once for each batch is then small beside what is done for each row.
_ROWS = 1 << 16


class _Nobody:
    """Nobody watches a worker; what is to be told was told on the driver."""

    def start(self, stage: str, unit: str, total: int | None) -> None: ...
    def advance(self, n: int) -> None: ...
    def remark(self, text: str) -> None: ...
    def finish(self) -> None: ...
    def warn(self, text: str) -> None: ...


def effects(
    batches: Iterable[Any], content: bytes, digest: str, *, request: str, policies: str | None, schema: bytes
) -> Iterator[Any]:
    """The effects of rows."""
    model, set_ = _model(content, digest), _policies(policies)
    for frame in _frames(batches):
        yield from _given(model.effect(frame, request, _Nobody(), set_), schema)


def allocations(
    batches: Iterable[Any],
    content: bytes,
    digest: str,
    *,
    request: str,
    policies: str | None,
    prices: str,
    schema: bytes,
) -> Iterator[Any]:
    """The policies of users by prices."""
    model, set_ = _model(content, digest), _policies(policies)
    for frame in _frames(batches):
        _, _, found = model.allocate(frame, request, _Nobody(), set_, None, prices)
        if found is not None:
            yield from _given(found, schema)


def outline(
    batches: Iterable[Any], content: bytes, digest: str, *, request: str, policies: str | None
) -> Iterator[Any]:
    """The outline of a partition, in a row of its own."""
    parts = _poul.Parts(_model(content, digest), request, _policies(policies))
    yield _row(parts.outline(_frames(batches), _Nobody()))


def sums(
    batches: Iterable[Any], content: bytes, digest: str, *, request: str, policies: str | None, outline: bytes
) -> Iterator[Any]:
    """The sums of a partition, in a row of its own."""
    parts = _poul.Parts(_model(content, digest), request, _policies(policies))
    yield _row(parts.sums(_frames(batches), outline, _Nobody()))


def checks(
    batches: Iterable[Any], content: bytes, digest: str, *, request: str, policies: str, table: bytes
) -> Iterator[Any]:
    """The sums of the check of a partition, in a row of its own."""
    import pyarrow as pa

    empty = Frame.from_arrow(pa.ipc.read_schema(pa.py_buffer(table)).empty_table()).part()
    parts = _poul.CheckedParts(empty, request, _Nobody(), PolicySet.from_json(policies))
    yield _row(parts.sums(_frames(batches), _Nobody()))


def merged(batches: Iterable[Any], content: bytes, digest: str, *, how: str) -> Iterator[Any]:
    """What several partitions gave, as one row."""
    rows = (row.as_py() for batch in batches for row in batch.column(0))
    found = getattr(_poul, how)(rows)
    if found is not None:
        yield _row(found)


def _model(content: bytes, digest: str) -> Model:
    found = _UNPACKED.get(digest)
    if found is None:
        found = Model.from_bytes(content)
        while len(_UNPACKED) >= _MOST_KEPT:
            del _UNPACKED[next(iter(_UNPACKED))]
        _UNPACKED[digest] = found
    return found


def _policies(text: str | None) -> PolicySet | None:
    return None if text is None else PolicySet.from_json(text)


def _frames(batches: Iterable[Any]) -> Iterator[Frame]:
    """Batches as tables of some size; none of no rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        if batch.num_rows > 0:
            waiting.append(batch)
        if sum(own.num_rows for own in waiting) >= _ROWS:
            yield Frame.from_arrow(pa.Table.from_batches(waiting)).part()
            waiting = []
    if waiting:
        yield Frame.from_arrow(pa.Table.from_batches(waiting)).part()


def _given(found: Frame, schema: bytes) -> Iterator[Any]:
    import pyarrow as pa

    wanted = pa.ipc.read_schema(pa.py_buffer(schema))
    yield from pa.table(found).cast(wanted).to_batches(max_chunksize=_ROWS)


def _row(content: bytes) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([content], pa.binary())], names=["part"])
