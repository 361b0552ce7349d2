"""Rows of decoders as rows of streams: engine, epoch, rank and seq, the same ones each time the same source is read.

So a file may be imported twice, or again after it has grown: what is stored already is not stored again.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
from kvtrail_schema.enums import Stage
from kvtrail_schema.events import Event, EventsDropped
from kvtrail_schema.identity import Epoch, Rank, Stream

from kvtrail_agent.importers.decoded import Lost, Origin, Part

_LARGEST_EPOCH: Final = 2**53 - 1
_MOST_LOST: Final = 2**40
_LONGEST_ENGINE: Final = 200


class Numbered(NamedTuple):
    """One event in its place in its stream."""

    stream: Stream
    event: Event
    extra: str | None


@dataclass(slots=True)
class Numbering:
    """Numbers what one source tells: `source` tells it from others.

    `engine` is the operator's name for it; "" leaves the source's own, or `default`.
    """

    source: str
    engine: str = ""
    default: str = "imported"
    seqs: defaultdict[Stream, int] = field(default_factory=lambda: defaultdict(int))
    """The highest seq handed out in each stream."""
    last_ns: dict[Stream, int] = field(default_factory=dict)

    def stream_of(self, origin: Origin) -> Stream:
        """The stream of an origin: one a life and rank of an engine."""
        engine = (self.engine or origin.engine or self.default)[:_LONGEST_ENGINE]
        named = "\0".join((self.source, engine, origin.engine, str(origin.life), origin.series)).encode(errors="replace")
        digest = hashlib.blake2b(named, digest_size=8, person=b"kvtrail.import").digest()
        return Stream(engine, Epoch(1 + int.from_bytes(digest, "little") % _LARGEST_EPOCH), Rank(origin.rank))

    def number(self, part: Part) -> Iterator[Numbered]:
        """The items of a part with their seqs; events that the source lost take seqs as well, and are declared."""
        stream = self.stream_of(part.origin)
        for item in part.items:
            if isinstance(item, Lost):
                yield Numbered(stream, self._lost(stream, item), None)
            else:
                yield Numbered(stream, self._numbered(stream, item.event), item.extra)

    def _numbered(self, stream: Stream, event: Event) -> Event:
        """An event with the next seq of its stream."""
        self.seqs[stream] += 1
        self.last_ns[stream] = event.t_ns
        return msgspec.structs.replace(event, seq=self.seqs[stream])

    def _lost(self, stream: Stream, lost: Lost) -> Event:
        """The declaration that a range of seqs was dropped before it came here."""
        count = min(max(lost.events, 1), _MOST_LOST)
        first = self.seqs[stream] + 1
        self.seqs[stream] += count
        told = EventsDropped(
            t_ns=self.last_ns.get(stream, 0),
            stage=Stage.PROCESS,
            reason=lost.reason,
            first_seq=first,
            last_seq=self.seqs[stream],
            count=count,
        )
        return self._numbered(stream, told)
