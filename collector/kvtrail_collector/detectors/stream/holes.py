"""The unexplained holes of each stream, by whether they lie inside what is stored or beyond its end."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.loss_shapes import StreamLoss

_LAST: Final = "SELECT stream_id, last_seq FROM window_streams"


class StreamHoles(NamedTuple):
    """One stream with its books, and its holes as inclusive ranges of seq."""

    stream_id: int
    loss: StreamLoss
    inside: tuple[tuple[int, int], ...]
    beyond: tuple[tuple[int, int], ...]


def holes_of(scene: Scene) -> list[StreamHoles]:
    """All streams of a scene that have books. A hole beyond the last stored event is the tail."""
    last = {int(str(row["stream_id"])): int(str(row["last_seq"])) for row in scene.ask(_LAST)}
    books = {(loss.engine, loss.epoch, loss.rank): loss for loss in scene.loss.streams}
    found = []
    for stream_id, key in scene.streams.items():
        loss = books.get(key)
        if loss is not None and stream_id in last:
            inside = tuple(gap for gap in loss.gaps if gap[0] < last[stream_id])
            beyond = tuple(gap for gap in loss.gaps if gap[0] > last[stream_id])
            found.append(StreamHoles(stream_id, loss, inside, beyond))
    return found
