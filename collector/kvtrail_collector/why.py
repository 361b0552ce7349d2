"""Why one request was slow: its parts, its slowest gaps, what it waited behind, and the chain of causes."""

from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
from kvtrail_schema.identity import OpId, RequestId, Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution import device_of
from kvtrail_collector.blame_accounts import Blame
from kvtrail_collector.blame_charges import Blamed
from kvtrail_collector.facts import Direction, RequestFacts
from kvtrail_collector.facts_build import Recording, recording_of_table
from kvtrail_collector.facts_rows import NO_INT, Interval
from kvtrail_collector.ledger import ledger_of
from kvtrail_collector.ledger_gaps import Gap, slowest_gaps, stream_index
from kvtrail_collector.ledger_parts import TIER_NAMES, Part
from kvtrail_collector.why_chain import Link, chain_of

_WAITED_ON: Final = 10
_ESTIMATING: Final = (Kind.RESTORE_CHOSEN, Kind.RECOMPUTE_CHOSEN, Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED)


class WaitedOn(msgspec.Struct, frozen=True):
    """The request stood in a queue for `ns` while this op was in service; `op` is None where none was.

    `owner` is the op's tenant, or the kind of work where it has none.
    """

    op: OpId | None
    tier: str
    owner: str
    ns: int


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Where one request's time went; `parts` add up to `ttft_ns`, which is its time so far where it is censored."""

    request: str
    ttft_ns: int
    censored: bool
    parts: tuple[Part, ...]
    hidden: tuple[Part, ...]
    gaps: tuple[Gap, ...]
    waited_on: tuple[WaitedOn, ...]
    chain: tuple[Link, ...]
    recompute_estimate_ns: int | None
    schema: int = 1
    device: str | None = None


def why(table: pa.Table, request: RequestId | str, *, holes: dict[Stream, list[Interval]] | None = None) -> Why | None:
    """Explain one request, named by its number or by the engine's own id; None where its arrival is not in the table.

    Pure. The table is as for `attribute`; it needs the rows of other requests too, for steps, blame and causes.
    """
    return why_recording(recording_of_table(table, holes), request)


def why_recording(recording: Recording, request: RequestId | str) -> Why | None:
    """As `why`, for a recording that is there already."""
    facts = find_request(recording, request)
    if facts is None:
        return None
    ledger = ledger_of(facts)
    return Why(
        request=facts.label,
        ttft_ns=ledger.ns,
        censored=facts.censored,
        parts=ledger.parts,
        hidden=ledger.hidden,
        gaps=slowest_gaps(recording, facts),
        waited_on=_waited_on(recording, facts),
        chain=chain_of(recording, facts),
        recompute_estimate_ns=_recompute_estimate_ns(recording, facts),
        device=device_of(recording),
    )


def find_request(recording: Recording, request: RequestId | str) -> RequestFacts | None:
    """The latest request of this name: the engine's own id first, then the number."""
    places = recording.columns.requests.row
    if isinstance(request, str):
        named = np.flatnonzero(recording.rows.text[places] == request)
        if len(named):
            return recording.requests[int(named[-1])]
        if not request.isdecimal():
            return None
    return recording.find(RequestId(int(request)))


def _waited_on(recording: Recording, facts: RequestFacts) -> tuple[WaitedOn, ...]:
    """Whom the loads that it waited for stood in queues behind, longest first: its own, and those of others that it named.

    Its write-backs held it up nowhere.
    """
    loads = [op for op in (*facts.ops, *facts.shared_ops) if op.direction is Direction.LOAD]
    if not loads:
        return ()
    blame = Blame(recording)
    return tuple(_shown(blame, item) for item in blame.blamed(loads)[:_WAITED_ON])


def _shown(blame: Blame, item: Blamed) -> WaitedOn:
    """A charge as people read it."""
    tier = TIER_NAMES[item.key.tier]
    if item.op is None:
        return WaitedOn(None, tier, "idle", item.ns)
    tenant = blame.tenant_of(item.op.stream, item.op.ns, item.op.req)
    return WaitedOn(item.op.op, tier, tenant or blame.kind_of(item.op).value, item.ns)


def _recompute_estimate_ns(recording: Recording, facts: RequestFacts) -> int | None:
    """The engine's own latest estimate of what computing instead would have cost."""
    rows = recording.rows
    estimates = rows.ints["recompute_estimate_ns"]
    own = (rows.stream == stream_index(recording, facts)) & (rows.ids["req"] == np.uint64(facts.request))
    known = np.flatnonzero(own & (estimates != NO_INT) & np.isin(rows.kind, np.array(_ESTIMATING)))
    return int(estimates[known[-1]]) if len(known) else None
