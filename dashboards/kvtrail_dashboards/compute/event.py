"""One event as people read it: a sentence, its fields with units, and the names of those it hangs together with."""

from dataclasses import dataclass

from kvtrail_dashboards.answers import ChainLink, EventRef
from kvtrail_dashboards.compute.events import name_of_event
from kvtrail_dashboards.compute.figures import evidence_lines
from kvtrail_dashboards.compute.wall import moment
from kvtrail_dashboards.page_answers import Linked, OneEvent


@dataclass(frozen=True, slots=True)
class EventLink:
    """Another event: what it is, and how a link names it."""

    label: str
    name: str


@dataclass(frozen=True, slots=True)
class EventView:
    """What is shown of one event. `request` is `epoch:rank:number`: its number alone may be that of several."""

    kind: str
    when: str
    name: str
    request: str | None
    block: str | None
    fields: tuple[tuple[str, str], ...]
    cause: EventLink | None
    effects: tuple[EventLink, ...]


def event_view(event: OneEvent) -> EventView:
    """One event laid out."""
    request, block = event.fields.get("req"), event.fields.get("block")
    return EventView(
        kind=event.kind.replace("_", " "),
        when=f"{moment(event.wall_ns):%Y-%m-%d %H:%M:%S.%f} UTC",
        name=name_of_event(event.event),
        request=None if request is None else f"{event.event.epoch}:{event.event.rank}:{request}",
        block=None if block is None else str(block),
        fields=evidence_lines({name: str(value) if isinstance(value, bool) else value for name, value in event.fields.items()}),
        cause=None if event.cause is None else _link(event.cause),
        effects=tuple(_link(effect) for effect in event.effects),
    )


def link_of_chain(link: ChainLink) -> EventLink:
    """A step of a chain; one whose event is not stored has no name to follow."""
    return EventLink(link.text, name_of_event(link.event) if isinstance(link.event, EventRef) else "")


def _link(linked: Linked) -> EventLink:
    """A link to another event."""
    ref = linked.event
    return EventLink(f"{linked.kind.replace('_', ' ')} (seq {ref.seq:,})", name_of_event(ref))
