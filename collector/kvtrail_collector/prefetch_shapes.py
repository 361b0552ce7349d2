"""The account of prefetching, in the shape that the API publishes; loads no database."""

import msgspec


class PrefetchRow(msgspec.Struct, frozen=True, kw_only=True):
    """Blocks that were fetched ahead from one tier for one tenant, and what became of them.

    issued = used + wasted + cancelled + pending. `wasted_by` counts reasons. `hidden_ns` is the service time of prefetches that
    were used, as far as nobody stood still for it; `waited_ns` is what requests did stand still for them; `caused_ns` is the
    service time that wasted and cancelled ones took from the tier.
    """

    engine: str
    tier: str | None
    tenant: str | None
    issued: int
    completed: int
    ready: int
    used: int
    wasted: int
    cancelled: int
    pending: int
    deadlines_missed: int
    wasted_by: dict[str, int]
    bytes: int
    used_bytes: int
    hidden_ns: int
    waited_ns: int
    caused_ns: int


class PrefetchAccount(msgspec.Struct, frozen=True):
    """What prefetching gave and took. `skipped_by` counts blocks that were not issued, by reason."""

    rows: tuple[PrefetchRow, ...]
    skipped_by: dict[str, int]
    device: str | None = None
    schema: int = 1
