"""Lists that pages show name everybody who matters, and say how many they leave out."""

from collections.abc import Sequence

import msgspec
from kvtrail_collector.questions.latency import Percentiles
from kvtrail_collector.questions.prefetch_flow import prefetch_flow
from kvtrail_collector.questions.recorder import recorder
from kvtrail_collector.questions.scope import Scope, choose
from kvtrail_collector.questions.tenant_accounts import Holding, TenantAccount, listed, tenant_accounts
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema import events as e
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, NamespaceId, PrefetchId, RequestId, Slot
from kvtrail_schema.reasons import EvictReason, PrefetchWasteReason

from tests.collector.frames import events_batch


def tell(store: Store, told: Sequence[Event]) -> None:
    """Store what a process told."""
    events = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, 1)]
    store.submit(events_batch(events)).result(10)


def test_a_tenant_that_fills_a_tier_without_a_request_is_listed() -> None:
    """Who asks for nothing may hold everything; and who was evicted for its quota asked before the stretch of time."""
    asks, holds, lost = NamespaceId(1), NamespaceId(2), NamespaceId(3)
    told: list[Event] = [
        e.RequestArrived(req=RequestId(1), tokens=5, ns=asks, t_ns=10),
        e.CapacitySampled(tier=Tier.NVME, capacity_bytes=1_000, used_bytes=990, ns=holds, t_ns=11),
        e.Evicted(block=BlockId(1), tier=Tier.NVME, slot=Slot(1), reason=EvictReason.QUOTA, ns=lost, t_ns=12),
    ]
    with memory_store() as store:
        tell(store, told)
        with store.read() as cursor:
            accounts = tenant_accounts(cursor, choose(cursor, Scope()), {1: "asks", 2: "holds", 3: "lost"})

    assert [("asks", 1), ("holds", 0), ("lost", 0)] == [(one.tenant, one.requests) for one in accounts]
    assert [Holding("nvme", 990, 1_000)] == accounts[1].holdings
    assert 1 == accounts[2].evicted_by_quota


def account(tenant: str, requests: int, held: int) -> TenantAccount:
    """A tenant's account."""
    holdings = [Holding("nvme", held, None)] if held else []
    return TenantAccount(tenant, requests, 0, 0, 0, Percentiles(None, None, None), 0, 0, 0, 0, holdings)


def test_of_too_many_tenants_the_largest_of_both_kinds_are_listed() -> None:
    """Those that ask most do not push out who holds most; the order stays."""
    accounts = [account("a", 9, 0), account("b", 8, 0), account("c", 7, 0), account("d", 0, 5), account("e", 0, 900)]

    assert ["a", "b", "e"] == [one.tenant for one in listed(accounts, 3)]
    assert accounts == listed(accounts, 5)


def test_a_list_of_losses_says_what_it_leaves_out() -> None:
    """Of 203 rows the 200 of most blocks are told, and that there are three more."""
    told: list[Event] = []
    for number in range(203):
        name = {"prefetch": PrefetchId(number), "block": BlockId(number), "t_ns": number}
        told.append(msgspec.convert({**name, "src": Tier.NVME, "dst": Tier.HOST, "ns": number}, type=e.PrefetchIssued))
        told.append(msgspec.convert({**name, "reason": PrefetchWasteReason.NEVER_NEEDED}, type=e.PrefetchWasted))
    with memory_store() as store:
        tell(store, told)
        with store.read() as cursor:
            flow = prefetch_flow(cursor, choose(cursor, Scope()), {}, 10, None)

    assert (203, 200, 3) == (flow.total.wasted, len(flow.losses), flow.losses_left_out)


def test_a_list_of_processes_says_what_it_leaves_out() -> None:
    """Of 201 processes the 200 last heard of are told."""
    with memory_store() as store:
        started = [e.AgentStarted(seq=1, t_ns=1)]
        for told in [store.submit(events_batch(started, epoch=epoch)) for epoch in range(201)]:
            told.result(60)
        with store.read() as cursor:
            found = recorder(cursor, choose(cursor, Scope()), 10, 0, None)

    assert (200, 1) == (len(found.streams), found.streams_left_out)
