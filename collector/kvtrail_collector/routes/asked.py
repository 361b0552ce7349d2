"""The parameters that routes of pages share: which engine, rank, tenant, model and stretch of time is asked about."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from kvtrail_collector.answers import span_of
from kvtrail_collector.questions.scope import EARLIEST_NS, LATEST_NS, Scope

_Rank = Annotated[int | None, Query(ge=0, lt=2**16)]
Moment = Annotated[int | None, Query(ge=EARLIEST_NS, le=LATEST_NS)]
Points = Annotated[int, Query(ge=10, le=1_000)]


def asked_scope(
    *,
    engine: str | None = None,
    rank: _Rank = None,
    tenant: str | None = None,
    model: str | None = None,
    start_ns: Moment = None,
    end_ns: Moment = None,
) -> Scope:
    """What a question is about; each bound may stand alone.

    Raises:
        QuestionInvalid: it ends before it begins.
    """
    if start_ns is not None and end_ns is not None:
        span_of("window", start_ns, end_ns)
    return Scope(engine, rank, tenant, model, start_ns, end_ns)


AskedScope = Annotated[Scope, Depends(asked_scope)]
