"""A host that started anew beside what it was before: its clock began anew, and nothing of before is told as of now."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import httpx
import msgspec
import pytest
from kvtrail_collector.testing import running_collector
from kvtrail_schema import events as e
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, OpId, PrefetchId, RequestId
from kvtrail_schema.reasons import AgentReason, InvalidateReason

from tests.collector.frames import header
from tests.collector.pages.story import MS, SECOND

Json = dict[str, Any]
DAY: Final = 86_400 * SECOND
BOOTED_NS: Final = (1_000 * DAY, 1_003 * DAY)
"""When the host started, and when it started again, as times of day."""
SPACE: Final = NamespaceId(11)


def life(first_ns: int, *, requests: int, lasted_ms: int, held: int, rank_name: str) -> list[Event]:
    """What a process did: requests, a prefetch, a load, samples, heartbeats, an action in force, a deletion."""
    told: list[Event] = [e.NamespaceDeclared(ns=SPACE, text='{"tenant": "aa"}', t_ns=first_ns)]
    for number in range(requests):
        at_ns = first_ns + number * SECOND
        told += [
            e.RequestArrived(req=RequestId(number), tokens=10, ns=SPACE, text=f"{rank_name}-{number}", t_ns=at_ns),
            e.RequestFirstToken(req=RequestId(number), t_ns=at_ns + lasted_ms * MS),
            e.PrefetchIssued(prefetch=PrefetchId(number), block=BlockId(number), src=Tier.NVME, dst=Tier.HOST, t_ns=at_ns),
            e.SwapInQueued(op=OpId(number), src=Tier.NVME, dst=Tier.GPU, block=BlockId(1), t_ns=at_ns),
            e.SwapInLoaded(op=OpId(number), src=Tier.NVME, dst=Tier.GPU, block=BlockId(1), bytes=8, t_ns=at_ns + MS),
            e.AgentHeartbeat(reason=AgentReason.RECORDER, produced=number + 1, t_ns=at_ns),
        ]
    end_ns = first_ns + requests * SECOND
    return [
        *told,
        e.CapacitySampled(tier=Tier.NVME, capacity_bytes=1_000, used_bytes=held, t_ns=end_ns),
        e.CapacitySampled(tier=Tier.NVME, capacity_bytes=500, used_bytes=held, ns=SPACE, t_ns=end_ns),
        e.InvalidationRequested(id=EventId(1), reason=InvalidateReason.DOCUMENT_DELETED, text=rank_name, t_ns=end_ns),
    ]


def sent(client: httpx.Client, told: Sequence[Event], *, epoch: int, booted_ns: int) -> None:
    """Tell a collector what happened on a host that started at a time of day."""
    events = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, 1)]
    last_ns = events[-1].t_ns
    clocks = Clocks(monotonic_ns=last_ns, wall_ns=booted_ns + last_ns, error_ns=1)
    head = header([event.seq for event in events], engine="host", epoch=epoch)
    body = encode_batch(msgspec.structs.replace(head, clocks=clocks), table_of(events))
    client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a collector that hears the process of now first: what the one of before had kept on disk comes later.

    Before, the host ran for two days: 20 requests of 9 s from its 60th second on. Now it runs for a little over a minute: 3
    requests of 5 ms.
    """
    before = life(60 * SECOND, requests=20, lasted_ms=9_000, held=300, rank_name="before")
    before += [e.AgentHeartbeat(reason=AgentReason.RECORDER, produced=21, t_ns=at_ns) for at_ns in (2 * DAY - SECOND, 2 * DAY)]
    now = life(62 * SECOND, requests=3, lasted_ms=5, held=100, rank_name="now")
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=60, trust_env=False) as speaking:
        sent(speaking, now, epoch=2, booted_ns=BOOTED_NS[1])
        sent(speaking, before, epoch=1, booted_ns=BOOTED_NS[0])
        yield speaking


def asked(client: httpx.Client, path: str, **params: str | int) -> Json:
    """An answer about the engine."""
    found: Json = client.get(path, params={"engine": "host", **params}).raise_for_status().json()
    return found


NOW: Final = {"start_ns": 0, "end_ns": 100 * SECOND}


@pytest.mark.parametrize("bounds", [NOW, {}], ids=["window", "all"])
def test_pages_tell_of_the_clock_that_runs(client: httpx.Client, bounds: dict[str, int]) -> None:
    """Latency, lists, moves, levels, flow and accounts are those of the process that runs, not of both laid over each other."""
    latency, moves = asked(client, "/v1/latency", **bounds), asked(client, "/v1/tiers", **bounds)
    (account,) = asked(client, "/v1/tenants", **bounds)["tenants"]

    assert 3 == latency["total"]["requests"]
    assert {"now-0", "now-1", "now-2"} == {row["text"] for row in asked(client, "/v1/requests", **bounds)["requests"]}
    assert 3 == sum(row["requests"] for row in asked(client, "/v1/series", **bounds)["series"])
    assert [3] == [move["ops"] for move in moves["moves"]]
    assert [100] == [one["level"]["used_bytes"] for one in moves["levels"]["now"]]
    assert 3 == asked(client, "/v1/prefetch/flow", **bounds)["total"]["issued"]
    assert (3, 100) == (account["requests"], account["holdings"][0]["used_bytes"])


def test_a_stretch_that_the_clock_of_now_does_not_reach_is_of_the_one_before(client: httpx.Client) -> None:
    """A link of the second day of before the restart shows what was then."""
    found = asked(client, "/v1/recorder", start_ns=DAY, end_ns=3 * DAY)

    assert [2 * DAY] == [row["start_ns"] for row in found["series"]]
    assert [2 * DAY + BOOTED_NS[0]] == [row["wall_ns"] for row in found["series"]]


def test_what_is_told_in_times_of_day_leaves_nothing_out(client: httpx.Client) -> None:
    """Processes and the evidence of deletions are of all times, where none is named."""
    processes = asked(client, "/v1/recorder", **NOW)["streams"]

    assert {1, 2} == {row["epoch"] for row in processes}
    assert ["now", "before"] == [row["selector"] for row in asked(client, "/v1/tenants")["deletions"]]
    assert ["now"] == [row["selector"] for row in asked(client, "/v1/tenants", **NOW)["deletions"]]
