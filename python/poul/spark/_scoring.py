"""Effects and allocations of the rows of a Spark data frame, partition by partition."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._allocation import _text_of, allocation_request
from .._arguments import checked_names
from .._policies import PoliciesLike, Policy, policy_names
from .._progress import Listener
from .._scoring import effect_request
from .._settings import to_json
from ._frames import chosen, names_of, needs_spark, no_rows, result_schema
from ._shipping import shipped

if TYPE_CHECKING:
    from .._learner import Learner


@checked_names
def effect(
    model: Learner,
    data: Any,
    *,
    id: str | Sequence[str],
    policy: Policy | Sequence[Policy] | None = None,
    against: Policy | None = None,
    interval: float | None = None,
    policies: PoliciesLike | None = None,
    contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
    allow_unseen: bool = False,
    support: bool = False,
    wide: bool = False,
    min_rows: int | None = None,
    population: str | None = None,
) -> Any:
    """The effect of policies on each row of a Spark data frame, as a Spark data frame.

    The numbers are those of :meth:`poul.Learner.effect`, to the last bit, however the rows are partitioned. Rows have no order in
    Spark, so that ``id``, one or more columns, says which is which; it may be null. The other arguments are those of the method.
    What is wrong with columns or settings is told at once; rows are scored when the result is asked for::

        effects = poul.spark.effect(model, users, id="user", policy="T2", interval=0.9)
        effects.write.parquet("s3://…/effects")
    """
    native, ids = model._fitted(), names_of(id)
    needs_spark(data)
    set_, added = model._policies_beside(native, policies, contexts)
    request = to_json(
        effect_request(
            policy=policy_names(policy) or added,
            against=against,
            interval=interval,
            allow_unseen=allow_unseen,
            support=support,
            wide=wide,
            min_rows=min_rows,
            population=population,
            id=ids,
            threads=1,
        )
    )
    rows = chosen(data, [*ids, *_read_by(model)], everything=population is not None)
    with Listener(model.progress) as listener:
        found = native.effect(no_rows(rows), request, listener, set_)
    own = None if policies is None else set_.to_json()
    return _mapped("effects", model, rows, ids, found, request=request, policies=own)


@checked_names
def allocate(
    model: Learner,
    data: Any,
    *,
    id: str | Sequence[str],
    prices: Mapping[str, Any] | str | os.PathLike[str],
    policies: PoliciesLike | None = None,
    contexts: Mapping[str, float] | str | os.PathLike[str] | None = None,
    allow_unseen: bool = False,
    population: str | None = None,
) -> Any:
    """The policy for each row of a Spark data frame by prices that were found before, as a Spark data frame.

    Prices come from :meth:`poul.Learner.allocate` on a sample of the users (``.prices``), with budgets that fit the sample, or from
    ``poul allocate --prices``; they decide each user alone, so that no worker needs to know of the others. The rows are those of
    ``model.allocate(users, prices=prices, id=…)``::

        prices = model.allocate(sample, maximize="gmv", budget={"cost": 1e4}).prices
        given = poul.spark.allocate(model, users, id="user", prices=prices)
    """
    native, ids = model._fitted(), names_of(id)
    needs_spark(data)
    set_, _ = model._policies_beside(native, policies, contexts)
    settings = allocation_request(id=ids, allow_unseen=allow_unseen, population=population, worth=False, seed=model.seed)
    request = to_json({"request": settings, "curve": False, "memory": None, "threads": 1})
    text = _text_of(prices) or "{}"
    known = json.loads(text)
    names_columns = population is not None or bool(known.get("eligible")) or bool(known.get("group"))
    rows = chosen(data, [*ids, *_read_by(model)], everything=names_columns)
    with Listener(model.progress) as listener:
        _, _, found = native.allocate(no_rows(rows), request, listener, set_, None, text)
    own = None if policies is None else set_.to_json()
    return _mapped("allocations", model, rows, ids, found, request=request, policies=own, prices=text)


def _mapped(task: str, model: Learner, rows: Any, ids: list[str], found: Any, **job: Any) -> Any:
    """The data frame through a task of the workers; ``found`` is what it makes of no rows."""
    import pyarrow as pa

    arrow, spark = result_schema(pa.schema(pa.table(found).schema), rows, ids)
    return rows.mapInArrow(shipped(task, model, schema=arrow.serialize().to_pybytes(), **job), spark)


def _read_by(model: Learner) -> list[str]:
    """The columns that the model reads."""
    exposure = model.manifest_.get("exposure") or {}
    return [*model.feature_names_in_, *(column for _, column in exposure.get("columns", []))]
