"""Mooncake's request traces as events of ours: arrivals, lengths of prompts, and how much of each came before.

A trace has no engine, so nothing of it has a duration, a tier or a copy. `kvtrail engine run` replays it.
"""

from typing import Final

from kvtrail_schema.events import CounterSampled, RequestArrived
from kvtrail_schema.identity import RequestId

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad, Decoded, Lost, Origin, Part, protocol_error
from kvtrail_agent.importers.fields import U32, Fields, list_of, needed, number, object_of
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import redacted, shown

_MS_NS: Final = 1_000_000
_LONGEST_MS: Final = 1e12
_KNOWN: Final = frozenset({"timestamp", "input_length", "output_length", "hash_ids"})


class MooncakeTrace:
    """Decodes the rows of one trace; used by one thread. Memory: some 30 bytes for each different id of a block."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: set[int] = set()
        self._count = 0

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One row. `sequence` is not used."""
        decoded, part = Decoded(), Part(Origin(life=self._source.number))
        try:
            fields = object_of(value, "a row")
            self._row(part, fields)
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        decoded.seen["request"] += 1
        decoded.parts.append(part)
        strange = {name: one for name, one in fields.items() if name not in _KNOWN}
        decoded.unknown.update(f"field {name}" for name in strange)
        if strange:
            t_ns = part.items[0].event.t_ns if not isinstance(part.items[0], Lost) else 0
            part.add(protocol_error(t_ns, "unknown fields of a request"), redacted(self._source.key, strange))
        return decoded

    def finish(self) -> Decoded:
        """Nothing is held back."""
        return Decoded()

    def _row(self, part: Part, fields: Fields) -> None:
        """One request.

        Raises:
            ForeignInvalid: a field of it is not what it must be.
        """
        at_ms = number(fields.get("timestamp"))
        if at_ms is None or not 0 <= at_ms <= _LONGEST_MS:
            raise ForeignInvalid(f"timestamp is {shown(fields.get('timestamp'))} where milliseconds are due")
        prompt, output = needed(fields, "input_length", U32), needed(fields, "output_length", U32)
        ids = [one for one in list_of(fields, "hash_ids") if isinstance(one, int)] if "hash_ids" in fields else []
        known = next((place for place, one in enumerate(ids) if one not in self._seen), len(ids))
        self._seen.update(ids)
        self._count += 1
        t_ns, name = round(at_ms * _MS_NS), f"row-{self._count}"
        part.add(RequestArrived(t_ns=t_ns, req=RequestId(self._count), tokens=prompt, text=name))
        part.add(CounterSampled(t_ns=t_ns, text=f"trace.output_tokens.{name}", value=float(output)))
        part.add(CounterSampled(t_ns=t_ns, text=f"trace.blocks.{name}", value=float(len(ids))))
        part.add(CounterSampled(t_ns=t_ns, text=f"trace.blocks_seen_before.{name}", value=float(known)))
