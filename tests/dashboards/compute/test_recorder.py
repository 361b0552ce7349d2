"""The record for people: what all ranks produce, where nobody was heard, who is silent, and what expired."""

import msgspec
import pytest
from kvtrail_dashboards.answers import DropCount, Loss, StreamLoss
from kvtrail_dashboards.compute.notices import notices_of_losses
from kvtrail_dashboards.compute.now import Mood, coverage_tile
from kvtrail_dashboards.compute.rates import rate_points, rate_tile
from kvtrail_dashboards.compute.recorder import drop_lines, expired_told, overhead_tile, recorder_tiles, stream_lines
from kvtrail_dashboards.compute.streams import silent_streams, stale_notices
from kvtrail_dashboards.page_answers import Recorder, RecorderBucket, RecorderStream

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND
KILLED, RUNNING = 2, 0


def beats(rank: int, rate: float, *seconds: int, longest_ms: float = 1_000, offset_s: int = 0) -> list[RecorderBucket]:
    """Buckets of a second in which a rank was heard; its host's clock is ahead by so much."""
    return [RecorderBucket("e", rank, (at + offset_s) * SECOND, NOW + at * SECOND, rate, longest_ms) for at in seconds]


def rates(*series: list[RecorderBucket]) -> Recorder:
    """An answer with these buckets."""
    return Recorder(NOW, 1_000, (), tuple(row for rows in series for row in rows))


def stream(epoch: int, heard_s_ago: int, state: int = RUNNING, rank: int = 0) -> RecorderStream:
    """One stream."""
    return RecorderStream("e", epoch, rank, 10, state, NOW - heard_s_ago * SECOND, 0)


def test_events_a_second_are_of_all_ranks_together() -> None:
    """Two ranks on hosts with clocks of their own are one engine: its rate is their sum, now and at most."""
    tile = rate_tile(rates(beats(0, 5_000, 1, 2, 3), beats(1, 10, 1, 2, 3, offset_s=900)))

    assert "5,010" == tile.value
    assert tile.detail.startswith("of 2 ranks together; at most 5,010;")


def test_a_line_breaks_where_its_rank_was_not_heard_of() -> None:
    """A recorder that was silent for a minute drew no straight line through it; the minute is told, and stands out."""
    series = beats(0, 100, 0, 1, 3), beats(0, 100, 60, longest_ms=57_000), beats(1, 7, *range(61))
    tile = rate_tile(rates(*series))
    points = rate_points(rates(*series))

    assert [100, 100, 100, None, 100] == [one.events_per_s for one in points if one.stream == "rank 0"]
    assert None not in [one.events_per_s for one in points if one.stream == "rank 1"]
    assert tile.detail.endswith("longest time between two heartbeats 57.0 s")
    assert Mood.FAIR is tile.mood


def test_rare_heartbeats_are_no_outage() -> None:
    """A recorder that is told to beat every ten seconds is drawn as a line."""
    rare = beats(0, 100, 10, 20, 30, longest_ms=10_000)

    assert [100, 100, 100] == [one.events_per_s for one in rate_points(rates(rare))]


def test_what_a_restart_left_behind_is_not_silent() -> None:
    """A lost host's process never ended in its own words; that the new one runs is what counts."""
    recorder = Recorder(NOW, 1_000, (stream(1, 3_600), stream(2, 0)))
    loss = Loss(balanced=True, streams=(StreamLoss("e", 1, 0, 10, 10), StreamLoss("e", 2, 0, 10, 10)))

    assert () == silent_streams(recorder)
    assert "no stream that runs is silent" == recorder_tiles(recorder, loss, "e")[4].detail
    assert ["replaced, without an end", "running"] == [line.state for line in stream_lines(recorder, loss)]


@pytest.mark.parametrize(
    ("streams", "told"),
    [
        ((stream(1, 0),), []),
        ((stream(1, 3_600), stream(2, 1)), []),
        ((stream(1, 3_600),), ["Rank 0 says that it runs, and is silent: its last sign of life came 60 min ago."]),
        ((stream(1, 600, KILLED),), ["Rank 0 ended without closing its record, 10 min ago."]),
    ],
)
def test_a_page_over_old_data_says_that_it_is_old(streams: tuple[RecorderStream, ...], told: list[str]) -> None:
    """Figures of an hour ago under the name of now would be green where nothing is known."""
    assert told == [notice.what for notice in stale_notices(Recorder(NOW, 1_000, streams))]


def test_what_retention_let_go_of_is_expired_and_no_loss() -> None:
    """It was stored, and left as its operator wished: nothing was dropped on the way, and all else is stored."""
    loss = Loss(
        balanced=True, streams=(StreamLoss("e", 1, 0, 1_000, 300, dropped=(DropCount("collector", "retention", 700),)),)
    )
    tile = coverage_tile(loss, "e")

    assert ("100 %", "nothing lost; 700 older ones expired", Mood.GOOD) == (tile.value, tile.detail, tile.mood)
    assert [] == list(notices_of_losses(loss, "e"))
    assert () == drop_lines(loss, "e")
    assert "700 events were stored once" in expired_told(loss, "e")
    assert "+ 0 dropped + 700 expired +" in recorder_tiles(Recorder(NOW, 1_000), loss, "e")[0].detail


def test_what_was_dropped_is_dropped_also_beside_what_expired() -> None:
    """Retention hides no loss."""
    drops = DropCount("collector", "retention", 700), DropCount("ring", "full", 100)
    loss = Loss(balanced=True, streams=(StreamLoss("e", 1, 0, 1_000, 200, dropped=drops),))

    assert ["100 events were dropped on the way (ring full)."] == [one.what for one in notices_of_losses(loss, "e")]
    assert Mood.FAIR is coverage_tile(loss, "e").mood
    assert "67 %" == coverage_tile(loss, "e").value


def test_what_was_lost_before_all_that_is_stored_lowers_no_share() -> None:
    """It would have expired, too: however little retention leaves, the share is of what can still be asked for."""
    drops = DropCount("collector", "retention", 700), DropCount("ring", "full", 150)
    loss = Loss(balanced=True, streams=(StreamLoss("e", 1, 0, 1_000, 150, dropped=drops, lost_before_stored=100),))

    assert "75 %" == coverage_tile(loss, "e").value


@pytest.mark.parametrize(
    ("shares", "dropped", "value", "told", "mood"),
    [
        ((0.002, 0.004), 0, "0.4 %", "of the engine's time; in all time no event met a full ring", Mood.GOOD),
        ((0.0003,), 0, "under 0.1 %", "of the engine's time; in all time no event met a full ring", Mood.GOOD),
        ((0.002, 0.02), 0, "2 %", "of the engine's time; in all time no event met a full ring", Mood.FAIR),
        ((0.002,), 9, "0.2 %", "of the engine's time; in all time 9 events met a full ring", Mood.FAIR),
        ((None,), 0, "not known", "the recorder does not tell what it takes; in all time no event met a full ring", Mood.PLAIN),
    ],
)
def test_what_recording_takes_is_told(
    shares: tuple[float | None, ...], dropped: int, value: str, told: str, mood: Mood
) -> None:
    """Who watches must not slow who works: the dearest rank counts, and what was not measured is not called cheap."""
    streams = tuple(
        RecorderStream("e", 1, rank, 10, RUNNING, NOW, 0, recorder_share=share) for rank, share in enumerate(shares)
    )
    drops = (DropCount("ring", "full", dropped), DropCount("shipper", "full", 70)) if dropped else ()
    loss = Loss(balanced=True, streams=(StreamLoss("e", 1, 0, 100, 100 - dropped, dropped=drops),))
    tile = overhead_tile(Recorder(NOW, 1_000, streams), loss, "e")

    assert (value, told, mood) == (tile.value, tile.detail, tile.mood)


def of_rank_0(epoch: int, heard_s_ago: int, share: float | None, *, has_samples: bool = True, state: int = 0) -> RecorderStream:
    """A process of rank 0, and what it told in this stretch of time."""
    return msgspec.structs.replace(stream(epoch, heard_s_ago, state), recorder_share=share, has_cost_samples=has_samples)


@pytest.mark.parametrize(
    ("streams", "value", "told"),
    [
        ((of_rank_0(2, 0, None), of_rank_0(1, 3_600, 0.004)), "0.4 %", "of the engine's time"),
        ((of_rank_0(2, 0, 0.002), of_rank_0(1, 3_600, 0.02)), "0.2 %", "of the engine's time"),
        ((of_rank_0(2, 0, None), of_rank_0(1, 3_600, None)), "not known", "no two samples in this stretch of time"),
        ((of_rank_0(2, 0, None, has_samples=False),), "not known", "the recorder does not tell what it takes"),
    ],
    ids=["before a restart", "over a restart", "without samples", "without a count"],
)
def test_what_recording_took_is_of_the_process_of_then(streams: tuple[RecorderStream, ...], value: str, told: str) -> None:
    """A link to last night tells what the process of then took, though another runs by now; and why where nobody does."""
    tile = overhead_tile(Recorder(NOW, 1_000, streams), Loss(balanced=True), "e")

    assert (value, told) == (tile.value, tile.detail.split(";")[0])


def test_of_a_rank_that_is_not_there_nothing_is_green() -> None:
    """Nothing is balanced, stored or fresh where nothing was produced."""
    tiles = recorder_tiles(Recorder(NOW, 1_000), Loss(balanced=True), "e")

    assert {Mood.PLAIN} == {tile.mood for tile in tiles}
    assert ("not known", "never") == (tiles[0].value, tiles[4].value)


@pytest.mark.parametrize(
    ("book", "told"),
    [
        (
            StreamLoss("e", 1, 0, 700, 0, dropped=(DropCount("collector", "retention", 700),)),
            "all 700 that were stored expired",
        ),
        (StreamLoss("e", 1, 0, 30, 0, in_flight=30), "30 are on the way"),
        (StreamLoss("e", 1, 0, 0, 0), "nothing was produced"),
    ],
)
def test_no_loss_of_nothing_is_not_green(book: StreamLoss, told: str) -> None:
    """Where nothing is left of which a share could be stored, that nothing of it is lost is no good news."""
    tile = coverage_tile(Loss(balanced=True, streams=(book,)), "e")

    assert ("not known", told, Mood.PLAIN) == (tile.value, tile.detail, tile.mood)
