"""Each question of a page, narrowed by rank, tenant and model: it tells of all that was asked for, and of nothing else."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import httpx
import msgspec
import pytest
from kvtrail_collector.testing import running_collector
from kvtrail_schema import events as e
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, OpId, PrefetchId, RequestId
from kvtrail_schema.reasons import AgentReason, PrefetchWasteReason

from tests.collector.frames import header
from tests.collector.pages.story import MS, SECOND

Json = dict[str, Any]
SPACES: Final = {NamespaceId(1): ("aa", "m1"), NamespaceId(2): ("aa", "m2"), NamespaceId(3): ("bb", "m1")}
COUNTS: Final = {
    (0, "aa", "m1"): 1,
    (0, "aa", "m2"): 2,
    (0, "bb", "m1"): 4,
    (1, "aa", "m1"): 8,
    (1, "aa", "m2"): 16,
    (1, "bb", "m1"): 32,
}
"""How many requests, loads and prefetches there are: every sum of some of them says which ones."""
HELD: Final = {0: 100, 1: 10}
FILTERS: Final = [
    {name: value for name, value in (("rank", rank), ("tenant", tenant), ("model", model)) if value is not None}
    for rank, tenant, model in product((None, 0, 1), (None, "aa", "bb"), (None, "m1", "m2"))
]


def told(rank: int) -> Iterator[Event]:
    """What one rank did: each request loads one block and has one fetched ahead in vain."""
    for ns, (tenant, model) in SPACES.items():
        yield e.NamespaceDeclared(ns=ns, text=json.dumps({"tenant": tenant, "model": model}), t_ns=0)
    number = 0
    for ns, (tenant, model) in SPACES.items():
        for _ in range(COUNTS[rank, tenant, model]):
            number += 1
            yield from request(number, ns)
    for beat in (1, 2):
        yield e.AgentHeartbeat(reason=AgentReason.RECORDER, produced=beat * 100 * (rank + 1), t_ns=(100 + beat) * SECOND)
    yield e.CapacitySampled(tier=Tier.NVME, capacity_bytes=1_000, used_bytes=HELD[rank], t_ns=102 * SECOND)
    yield e.DegradeRequested(text=f"gpu_only of {rank}", id=EventId(1), t_ns=102 * SECOND)


def request(number: int, ns: NamespaceId) -> Iterator[Event]:
    """One request with its load and its prefetch."""
    who, block, at_ns = RequestId(number), BlockId(number), number * SECOND
    yield e.RequestArrived(req=who, tokens=10, ns=ns, t_ns=at_ns)
    yield e.SwapInQueued(op=OpId(number), src=Tier.NVME, dst=Tier.GPU, block=block, req=who, t_ns=at_ns)
    yield e.SwapInLoaded(op=OpId(number), src=Tier.NVME, dst=Tier.GPU, block=block, req=who, bytes=1, tokens=1, t_ns=at_ns + MS)
    yield e.RequestFirstToken(req=who, t_ns=at_ns + 2 * MS)
    ahead = PrefetchId(number)
    yield e.PrefetchIssued(prefetch=ahead, block=block, src=Tier.NVME, dst=Tier.HOST, req=who, bytes=1, t_ns=at_ns)
    yield e.PrefetchWasted(prefetch=ahead, block=block, reason=PrefetchWasteReason.NEVER_NEEDED, t_ns=at_ns + MS)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a collector that heard of both ranks."""
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=60, trust_env=False) as speaking:
        for rank in (0, 1):
            events = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told(rank), 1)]
            body = encode_batch(header([event.seq for event in events], engine="e1", rank=rank), table_of(events))
            speaking.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()
        yield speaking


def asked(client: httpx.Client, path: str, narrowed: Json) -> Json:
    """An answer."""
    found: Json = client.get(path, params={"engine": "e1", **narrowed}).raise_for_status().json()
    return found


def count_of(narrowed: Json) -> int:
    """How many requests a filter leaves."""
    wanted = (narrowed.get("rank"), narrowed.get("tenant"), narrowed.get("model"))
    return sum(
        count for key, count in COUNTS.items() if all(want in {None, own} for want, own in zip(wanted, key, strict=True))
    )


@pytest.mark.parametrize("narrowed", FILTERS, ids=str)
def test_requests_costs_and_prefetches_are_those_of_the_filter(client: httpx.Client, narrowed: Json) -> None:
    """By rank, by tenant and by model alone, and by all of them together."""
    flow, count = asked(client, "/v1/prefetch/flow", narrowed), count_of(narrowed)
    latency = asked(client, "/v1/latency", narrowed)

    assert count == latency["total"]["requests"] == sum(one["figures"]["requests"] for one in latency["series"])
    assert count == asked(client, "/v1/tiers", narrowed)["restore"]["tokens"]
    assert count == flow["total"]["wasted"] == sum(one["blocks"] for one in flow["losses"])


@pytest.mark.parametrize("narrowed", FILTERS, ids=str)
def test_what_tenants_share_is_narrowed_by_rank_alone(client: httpx.Client, narrowed: Json) -> None:
    """Levels and moves of tiers, accounts, rates and actions are those of the rank, whoever and whatever else is named."""
    ranks = [narrowed["rank"]] if "rank" in narrowed else [0, 1]
    tiers, accounts = asked(client, "/v1/tiers", narrowed), asked(client, "/v1/tenants", narrowed)["tenants"]
    of_rank = {tenant: sum(COUNTS[key] for key in COUNTS if key[0] in ranks and key[1] == tenant) for tenant in ("aa", "bb")}
    streams = asked(client, "/v1/recorder", narrowed)

    assert [sum(HELD[rank] for rank in ranks)] == [one["level"]["used_bytes"] for one in tiers["levels"]["now"]]
    assert [sum(of_rank.values())] == [one["ops"] for one in tiers["moves"]]
    assert of_rank == {one["tenant"]: one["requests"] for one in accounts}
    assert ranks == sorted(one["rank"] for one in streams["streams"]) == sorted(one["rank"] for one in streams["series"])
    assert {f"gpu_only of {rank}" for rank in ranks} == {
        one["action"] for one in asked(client, "/v1/pressure", narrowed)["degrade"]
    }
