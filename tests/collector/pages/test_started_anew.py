"""An engine that started anew beside what it was before, and another engine: nothing of one is told as the other's."""

import json
from collections.abc import Iterator, Sequence
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
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, OpId, RequestId, Slot
from kvtrail_schema.reasons import EvictReason

from tests.collector.frames import header
from tests.collector.pages.story import MS, SECOND

Json = dict[str, Any]
WHO: Final = RequestId(5)
ID: Final = EventId(7)
SPACE: Final = NamespaceId(11)


def request(arrived_ns: int, lasted_ms: int) -> list[Event]:
    """Request 5, answered."""
    done_ns = arrived_ns + lasted_ms * MS
    return [
        e.RequestArrived(req=WHO, tokens=10, ns=SPACE, t_ns=arrived_ns),
        e.RequestFirstToken(req=WHO, t_ns=done_ns),
        e.RequestFinished(req=WHO, tokens=1, t_ns=done_ns + MS),
    ]


def sampled(depth: int, held: int, t_ns: int) -> list[Event]:
    """What nvme holds, in all and of one tenant."""
    return [
        e.CapacitySampled(tier=Tier.NVME, capacity_bytes=1_000, used_bytes=held, depth=depth, t_ns=t_ns),
        e.CapacitySampled(tier=Tier.NVME, capacity_bytes=500, used_bytes=held, ns=SPACE, t_ns=t_ns),
    ]


def before() -> list[Event]:
    """A process on a GPU with a long queue, that evicted a block and answered its fifth request after nine seconds."""
    return [
        e.ManifestDeclared(text=json.dumps({"device": "cuda"}), t_ns=0),
        e.NamespaceDeclared(ns=SPACE, text=json.dumps({"tenant": "aa"}), t_ns=0),
        *request(SECOND, 9_000),
        e.Evicted(block=BlockId(1), tier=Tier.GPU, slot=Slot(1), reason=EvictReason.CAPACITY, id=ID, t_ns=11 * SECOND),
        *sampled(40, 300, 12 * SECOND),
    ]


def after() -> list[Event]:
    """The process after it: its fifth request took five milliseconds, nothing waits, the cause of a load is not stored."""
    load = e.SwapInQueued(op=OpId(1), src=Tier.NVME, dst=Tier.GPU, block=BlockId(1), cause=ID, t_ns=22 * SECOND)
    return [
        e.ManifestDeclared(text=json.dumps({"device": "cuda"}), t_ns=20 * SECOND),
        e.NamespaceDeclared(ns=SPACE, text=json.dumps({"tenant": "aa"}), t_ns=20 * SECOND),
        *request(21 * SECOND, 5),
        load,
        *sampled(0, 100, 23 * SECOND),
    ]


def sent(client: httpx.Client, told: Sequence[Event], *, engine: str, epoch: int) -> None:
    """Tell a collector what happened, in order."""
    events = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, 1)]
    body = encode_batch(header([event.seq for event in events], engine=engine, epoch=epoch), table_of(events))
    client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a collector that heard of two processes of one engine, and of another engine last."""
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=60, trust_env=False) as speaking:
        sent(speaking, before(), engine="anew", epoch=1)
        sent(speaking, after(), engine="anew", epoch=2)
        sent(speaking, [e.ManifestDeclared(text=json.dumps({"device": "cpu-emulated"}), t_ns=0)], engine="other", epoch=3)
        yield speaking


def asked(client: httpx.Client, path: str, **params: str | int) -> Json:
    """An answer about the engine."""
    found: Json = client.get(path, params={"engine": "anew", **params}).raise_for_status().json()
    return found


def test_each_listed_request_can_be_asked_for(client: httpx.Client) -> None:
    """Its number alone is that of two; with epoch and rank it names one."""
    rows = asked(client, "/v1/requests")["requests"]
    names = [f"{row['epoch']}:{row['rank']}:{row['request']}" for row in rows]

    assert [9_000 * MS, 5 * MS] == [asked(client, f"/v1/requests/{name}")["ttft_ns"] for name in names]


def test_of_two_with_one_number_the_one_of_the_window_is_meant(client: httpx.Client) -> None:
    """Without a window it is the one last heard of."""
    early = asked(client, "/v1/requests/5", start_ns=0, end_ns=10 * SECOND)

    assert 9_000 * MS == early["ttft_ns"]
    assert 5 * MS == asked(client, "/v1/requests/5")["ttft_ns"]


def test_a_number_of_any_length_is_no_fault_of_the_collector(client: httpx.Client) -> None:
    """It names no request, which is said."""
    assert 404 == client.get(f"/v1/requests/{'9' * 5_000}").status_code


def test_an_ended_process_holds_nothing(client: httpx.Client) -> None:
    """Levels and holdings are those of the process that runs; of the time before it, those of the one that ran then."""
    now, then = asked(client, "/v1/tiers"), asked(client, "/v1/tiers", end_ns=15 * SECOND)
    (account,) = (one for one in asked(client, "/v1/tenants")["tenants"] if one["tenant"] == "aa")

    wanted = [(1_000, 100, 0), (1_000, 300, 40)]
    levels = [found["levels"]["now"][0]["level"] for found in (now, then)]
    assert wanted == [(level["capacity_bytes"], level["used_bytes"], level["depth"]) for level in levels]
    assert [{"tier": "nvme", "used_bytes": 100, "quota_bytes": 500}] == account["holdings"]


def test_who_was_heard_of_last_is_not_who_runs() -> None:
    """The ended process had kept its events while it could not send: it comes second, and what it held nobody holds."""
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=60, trust_env=False) as client:
        sent(client, after(), engine="anew", epoch=2)
        sent(client, before(), engine="anew", epoch=1)
        levels, accounts = asked(client, "/v1/tiers")["levels"]["now"], asked(client, "/v1/tenants")["tenants"]

    assert [100] == [one["level"]["used_bytes"] for one in levels]
    assert [100] == [one["used_bytes"] for account in accounts for one in account["holdings"]]


def test_a_cause_is_of_the_same_process(client: httpx.Client) -> None:
    """The eviction before the restart had the same id, and caused nothing after it."""
    found = asked(client, "/v1/event", epoch=2, rank=0, seq=6)

    assert ("swap_in_queued", None) == (found["kind"], found["cause"])


def test_each_engine_has_its_own_device(client: httpx.Client) -> None:
    """Whoever was heard of last."""
    rows = client.get("/v1/engines").json()["engines"]

    assert {"anew": "cuda", "other": "cpu-emulated"} == {row["engine"]: row["device"] for row in rows}
    assert "cuda" == asked(client, "/v1/tiers")["device"]
