"""The questions of pages, over HTTP, on a story of which every figure is known."""

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from kvtrail_schema import events as e
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, OpId, RequestId

from tests.collector.pages.story import BIG, MS, SECOND, story, story_told

Json = dict[str, Any]


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a collector that holds the story."""
    with story_told() as speaking:
        yield speaking


def asked(client: httpx.Client, path: str, **params: str | int) -> Json:
    """An answer."""
    answer = client.get(path, params={"engine": "e1", **params})
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def test_engines_come_with_what_can_be_chosen(client: httpx.Client) -> None:
    """Ranks, tenants, models, and the times between which there is anything."""
    found = asked(client, "/v1/engines")

    assert [(one["engine"], one["ranks"], one["first_ns"]) for one in found["engines"]] == [("e1", [0], SECOND)]
    assert [one["id"] for one in found["tenants"]] == ["aa", "bb"]
    assert [one["id"] for one in found["models"]] == ["m1", "m2"]


def test_latency_is_of_the_requests_that_the_scope_names(client: httpx.Client) -> None:
    """All, one tenant's, one stretch of time's; and the share of them within the objective."""
    everything = asked(client, "/v1/latency", ttft_ms=20)
    search = asked(client, "/v1/latency", tenant="aa")
    late = asked(client, "/v1/latency", start_ns=2 * SECOND)

    assert (everything["total"]["requests"], everything["total"]["censored"]) == (3, 1)
    assert everything["total"]["within"] == pytest.approx(1 / 3)
    assert search["total"]["ttft"]["p99_ms"] == 50
    assert search["total"]["tpot"]["p50_ms"] == 10
    assert [bucket["start_ns"] for bucket in late["series"]] == [2 * SECOND, 3 * SECOND]


def test_a_long_time_has_no_more_buckets_than_asked_for(client: httpx.Client) -> None:
    """However long the stretch, the answer is bounded."""
    assert len(asked(client, "/v1/latency", points=10)["series"]) <= 10
    assert client.get("/v1/latency", params={"points": 5}).status_code == 422


def test_tiers_say_how_full_they_are_and_what_restoring_cost(client: httpx.Client) -> None:
    """The newest sample, the transfers, and both ways to have KV, a token."""
    found = asked(client, "/v1/tiers")

    assert found["levels"]["now"][0]["level"]["used_bytes"] == 400
    assert [row["level"]["depth"] for row in found["levels"]["series"]] == [5, 6]
    move = next(one for one in found["moves"] if one["dst"] == "gpu")
    assert (move["src"], move["dst"], move["ops"], move["bytes"]) == ("nvme", "gpu", 1, 1_024)
    assert (move["total_ms"]["p50"], move["queue_p99_ms"], move["io_p99_ms"]) == (40, 10, 30)
    assert (found["restore"]["tokens"], found["restore"]["us_per_token"]["p50"]) == (32, 40_000 / 32)
    assert (found["recompute"]["ms"]["p50"], found["recompute"]["us_per_token"]["p50"]) == (4, 400)


def restored_twice() -> Iterator[Event]:
    """Request 9 loads two blocks side by side, one of them a little longer, and after a minute another one: 20 and 20 ms."""
    who, began_ns = RequestId(9), 10 * SECOND
    loads = ((0, 15 * MS), (5 * MS, 20 * MS), (60 * SECOND, 60 * SECOND + 20 * MS))
    yield e.RequestArrived(req=who, tokens=10, t_ns=began_ns)
    for number, (queued_ns, loaded_ns) in enumerate(loads):
        way = {"op": OpId(90 + number), "src": Tier.NVME, "dst": Tier.GPU, "block": BlockId(90 + number), "req": who}
        yield msgspec.convert({**way, "t_ns": began_ns + queued_ns}, type=e.SwapInQueued)
        yield msgspec.convert({**way, "bytes": 1, "tokens": 16, "t_ns": began_ns + loaded_ns}, type=e.SwapInLoaded)


def test_between_two_restores_nothing_is_restored() -> None:
    """A request that is restored, computes for a minute and is restored again has waited for its loads alone, and each once."""
    more = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(restored_twice(), len(story()) + 1)]
    with story_told(more=more) as client:
        restore = asked(client, "/v1/tiers", start_ns=10 * SECOND)["restore"]

    assert (40, 48) == (restore["ms"]["p50"], restore["tokens"])


def test_tenants_have_their_requests_holdings_and_borders(client: httpx.Client) -> None:
    """Who was refused by a quota, who met a block of others, and who holds how much of what it may."""
    accounts = {one["tenant"]: one for one in asked(client, "/v1/tenants")["tenants"]}

    assert (accounts["aa"]["requests"], accounts["bb"]["requests"]) == (1, 2)
    assert accounts["aa"]["holdings"] == [{"tier": "nvme", "used_bytes": 200, "quota_bytes": 500}]
    assert (accounts["bb"]["refused_by_quota"], accounts["bb"]["foreign_misses"]) == (1, 1)
    assert (accounts["aa"]["refused_by_quota"], accounts["aa"]["foreign_misses"]) == (0, 0)


def test_a_deletion_has_its_evidence(client: httpx.Client) -> None:
    """What was forbidden, by which event, what that took from each tier, and how long it lasted."""
    deletion = asked(client, "/v1/tenants")["deletions"][0]

    assert (deletion["reason"], deletion["lasted_ns"]) == ("document_deleted", 5 * MS)
    assert deletion["gone"] == [{"tier": "gpu", "copies": 1}, {"tier": "nvme", "copies": 2}]


def test_prefetches_end_in_one_thing_each(client: httpx.Client) -> None:
    """Issued is used, wasted, cancelled, or open; waste has its reason and its tenant."""
    found = asked(client, "/v1/prefetch/flow")
    total = found["total"]

    assert (total["issued"], total["used"], total["wasted"], total["cancelled"]) == (3, 1, 1, 0)
    assert (total["deadline_missed"], total["wasted_bytes"]) == (1, 100)
    assert found["times"] == {"hidden_ns": 4 * MS, "waited_ns": MS, "caused_ns": 3 * MS}
    assert [(one["reason"], one["tier"], one["tenant"]) for one in found["losses"]] == [("too_late", "nvme", "aa")]
    assert asked(client, "/v1/prefetch/flow", tenant="bb")["total"]["issued"] == 0


def test_the_recorder_tells_its_rate_from_its_heartbeats(client: httpx.Client) -> None:
    """What was produced between two heartbeats, by their time."""
    found = asked(client, "/v1/recorder")

    assert [row["events_per_s"] for row in found["series"]] == [100]
    assert found["streams"][0]["engine"] == "e1"


def test_the_recorder_tells_what_it_takes_of_the_engines_time(client: httpx.Client) -> None:
    """Five milliseconds in a second, as its engine sampled it; where there is no second sample, nothing is claimed, but that
    it does sample.
    """
    whole, end = asked(client, "/v1/recorder"), asked(client, "/v1/recorder", start_ns=6 * SECOND)

    assert whole["streams"][0]["recorder_share"] == pytest.approx(0.005)
    assert end["streams"][0]["recorder_share"] is None
    assert end["streams"][0]["has_cost_samples"]


def test_a_recorder_without_samples_is_told_from_a_stretch_without_any() -> None:
    """The writer in Python never samples what it takes, at no time."""
    with story_told(without=(e.CounterSampled,)) as client:
        stream = asked(client, "/v1/recorder")["streams"][0]

    assert (None, False) == (stream["recorder_share"], stream["has_cost_samples"])


def test_tenants_say_whether_any_block_was_looked_for(client: httpx.Client) -> None:
    """In the second of the only lookup, and not after it: no miss says nothing of borders then."""
    whole, end = asked(client, "/v1/tenants"), asked(client, "/v1/tenants", start_ns=4 * SECOND)

    assert (True, False) == (whole["has_lookups"], end["has_lookups"])


def test_an_event_has_its_cause_and_what_it_caused(client: httpx.Client) -> None:
    """A chain can be walked both ways, event by event; large ids are text."""
    told = story()
    request = next(event.seq for event in told if type(event).__name__ == "InvalidationRequested")
    loaded = next(event.seq for event in told if type(event).__name__ == "SwapInLoaded")
    epoch = client.get("/v1/loss").json()["streams"][0]["epoch"]
    found = asked(client, "/v1/event", epoch=epoch, rank=0, seq=request)
    effect = asked(client, "/v1/event", epoch=epoch, rank=0, seq=found["effects"][0]["event"]["seq"])

    assert [one["kind"] for one in found["effects"]] == ["invalidated"] * 3
    assert effect["cause"]["event"]["seq"] == request
    assert asked(client, "/v1/event", epoch=epoch, rank=0, seq=loaded)["fields"]["block"] == f"{BIG:016x}"
    assert client.get("/v1/event", params={"engine": "e1", "epoch": epoch, "rank": 0, "seq": 9_999}).status_code == 404


@pytest.mark.parametrize("path", ["latency", "tiers", "tenants", "prefetch/flow", "recorder", "pressure"])
def test_what_is_not_there_is_an_empty_answer(client: httpx.Client, path: str) -> None:
    """A page over nothing is a page; a stretch that ends before it begins is the asker's fault."""
    assert client.get(f"/v1/{path}", params={"engine": "nobody"}).status_code == 200
    assert client.get(f"/v1/{path}", params={"start_ns": 9, "end_ns": 3}).status_code == 422
