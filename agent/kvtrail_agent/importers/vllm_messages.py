"""Messages of vLLM's or SGLang's event socket in a file: one a line, with its topic and its number.

A line is `{"topic", "seq", "payload_b64"}`, `{"frames_hex": [topic, seq, payload]}`, or has the payload decoded: `{"payload":
[ts, events, rank]}`, `{"ts", "events", "data_parallel_rank"}`. Numbers count the messages of one publisher from 0, for as
long as it lives.
"""

import base64
import binascii
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad, Decoded, Lost, Origin
from kvtrail_agent.importers.fields import Fields, list_of, object_of, text_of, whole
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.lives import Arrival, Life
from kvtrail_agent.importers.vllm_events import VllmEvents
from kvtrail_agent.importers.vllm_wire import Dialect, WireBatch, read_objects, read_payload

_FRAMES: Final = 3


class Envelope(NamedTuple):
    """One message as it was published: its payload in MessagePack, or decoded: time, events, rank."""

    topic: str
    number: int | None
    payload: bytes | list[object]


class Message(NamedTuple):
    """One message: where it was published, its number there (None: the line has none), and its batch."""

    topic: str
    number: int | None
    batch: WireBatch


@dataclass(slots=True)
class _Publisher:
    """What one publisher has sent: its decoder, the numbers of its ranks, and when their present lives began."""

    events: VllmEvents
    lives: defaultdict[int, Life] = field(default_factory=lambda: defaultdict(Life))
    began_ns: dict[int, int] = field(default_factory=dict)


class VllmMessages:
    """Decodes messages of any number of publishers, told apart by their topics and ranks; used by one thread."""

    def __init__(self, source: Source, dialect: Dialect) -> None:
        self._source = source
        self._dialect = dialect
        self._publishers: dict[str, _Publisher] = {}

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One line. What is missing before it, by its number, is declared; one that came before is left out, and counted."""
        try:
            message = read_message(value, self._dialect)
        except ForeignInvalid as error:
            return Decoded(bad=[Bad("", str(error))])
        publisher = self._publishers.setdefault(message.topic, _Publisher(VllmEvents(self._source.key, self._dialect)))
        return self._judged(publisher, message)

    def finish(self) -> Decoded:
        """Nothing is held back."""
        return Decoded()

    def _judged(self, publisher: _Publisher, message: Message) -> Decoded:
        """A message in the order of its publisher."""
        rank, t_ns = message.batch.rank, message.batch.ts_ns or 0
        found = publisher.lives[rank].take(message.number, t_ns) if message.number is not None else None
        if found is not None and found.arrival is Arrival.AGAIN:
            again = Decoded()
            again.remarks["messages that came twice"] += 1
            return again
        if found is not None and found.arrival is Arrival.RESTARTED:
            publisher.events.restart(rank)
            publisher.began_ns.pop(rank, None)
        life = publisher.began_ns.setdefault(rank, t_ns or self._source.number)
        decoded = publisher.events.decode_batch(message.batch, Origin(engine_of(message.topic), life, rank))
        if found is not None:
            _tell(decoded, found.arrival, found.missing, message.number)
        return decoded


def engine_of(topic: str) -> str:
    """The name of an engine that a topic has: of `kv@pod@model` the pod, else all of it."""
    parts = topic.split("@")
    return parts[1] if len(parts) > 2 and parts[0] == "kv" else topic  # noqa: PLR2004 - kv, pod, model


def read_message(value: object, dialect: Dialect) -> Message:
    """A line as a message.

    Raises:
        ForeignInvalid: it has none of the known forms, or its payload is no batch.
    """
    envelope = read_envelope(value)
    if isinstance(envelope.payload, bytes):
        return Message(envelope.topic, envelope.number, read_payload(envelope.payload, dialect))
    ts, events, *rest = envelope.payload
    batch = read_objects(ts, events if isinstance(events, list) else [events], rest[0] if rest else None, dialect)
    return Message(envelope.topic, envelope.number, batch)


def read_envelope(value: object) -> Envelope:
    """A line as what was published, its payload not looked into. Raises as `read_message`."""
    fields = object_of(value, "the line")
    if "frames_hex" in fields:
        return _of_frames(fields)
    topic, number = text_of(fields, "topic") or "", whole(fields, "seq", 2**64 - 1)
    if "payload_b64" in fields:
        return Envelope(topic, number, _bytes_of(text_of(fields, "payload_b64") or ""))
    if "events" in fields:
        return Envelope(topic, number, [fields.get("ts"), list_of(fields, "events"), fields.get("data_parallel_rank")])
    payload = list_of(fields, "payload")
    if len(payload) < 2 or not isinstance(payload[1], list):  # noqa: PLR2004 - time and events
        raise ForeignInvalid("payload has no list of events at its second place")
    return Envelope(topic, number, payload)


def _of_frames(fields: Fields) -> Envelope:
    """A message whose three frames stand there as they were."""
    frames = list_of(fields, "frames_hex")
    try:
        topic, number, payload = (bytes.fromhex(str(frame)) for frame in frames[-_FRAMES:])
    except ValueError as error:
        raise ForeignInvalid(f"frames_hex: three frames in hexadecimal digits are due: {error}") from error
    return Envelope(topic.decode(errors="replace"), int.from_bytes(number[-8:], "big"), payload)


def _bytes_of(text: str) -> bytes:
    """Base64 as bytes."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ForeignInvalid(f"payload_b64 is no base64: {error}") from error


def _tell(decoded: Decoded, arrival: Arrival, missing: int, number: int | None) -> None:
    """What the number of a message says."""
    if arrival is Arrival.AFTER_GAP:
        decoded.parts[0].items.insert(0, Lost(missing))
        decoded.remarks["messages that never came"] += missing
    elif arrival is Arrival.RESTARTED:
        decoded.remarks["restarts of an engine"] += 1
    elif arrival is Arrival.FIRST and number:
        decoded.remarks["publishers whose first messages are not here"] += 1
