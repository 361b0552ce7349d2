"""The union of events is exactly the contract: fields, required ones, names, types."""

import types
import typing

import msgspec
import pytest
from hypothesis import given
from kvtrail_schema import events as module
from kvtrail_schema.columns import COLUMNS, Width
from kvtrail_schema.events import Event, RequestArrived, StepStarted, SwapInLoaded, TransferEnd
from kvtrail_schema.identity import RequestId, StepId
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind

from tests.strategies import events

TRANSFER = "op src dst"
PREFETCH = "prefetch block"
COPY = "block tier slot"

REQUIRED = {
    "request_arrived": "req tokens",
    "request_waiting": "req reason",
    "request_admitted": "req",
    "request_preempted": "req",
    "request_resumed": "req",
    "request_first_token": "req",
    "request_finished": "req tokens",
    "request_cancelled": "req reason",
    "request_rejected": "req reason",
    "step_started": "step",
    "step_finished": "step tokens",
    "prefill_chunk": "req step tokens reason",
    "decode_joined": "req step",
    "decode_left": "req step",
    "tokens_emitted": "req step tokens",
    "copy_waited": "req wait_ns",
    "lookup_finished": "req duration_ns tokens",
    "prefix_hit": "req block tier",
    "prefix_miss": "req block reason",
    "block_created": COPY,
    "attention_read": f"req {COPY}",
    "block_pinned": f"{COPY} refs",
    "block_unpinned": f"{COPY} refs",
    "evicted": f"{COPY} reason",
    "tier_cleared": "tier reason",
    "invalidation_requested": "id reason",
    "invalidated": f"{COPY} reason cause",
    "swap_out_queued": TRANSFER,
    "swap_out_started": TRANSFER,
    "swap_out_written": TRANSFER,
    "swap_out_failed": f"{TRANSFER} reason",
    "swap_out_skipped": f"{TRANSFER} reason",
    "swap_in_queued": TRANSFER,
    "swap_in_started": TRANSFER,
    "swap_in_loaded": TRANSFER,
    "swap_in_failed": f"{TRANSFER} reason",
    "prefetch_issued": f"{PREFETCH} src dst",
    "prefetch_completed": PREFETCH,
    "prefetch_ready": PREFETCH,
    "prefetch_used": f"{PREFETCH} req",
    "prefetch_wasted": f"{PREFETCH} reason",
    "prefetch_deadline_missed": PREFETCH,
    "prefetch_skipped": f"{PREFETCH} reason",
    "prefetch_cancelled": f"{PREFETCH} reason",
    "recompute_chosen": "req tokens",
    "restore_chosen": "req tokens",
    "capacity_sampled": "tier",
    "gpu_sampled": "device",
    "backpressure_on": "tier reason",
    "backpressure_off": "tier reason",
    "admission_limited": "tokens reason",
    "lease_granted": "block",
    "transfer_acked": "block",
    "orphan_found": "tier bytes reason",
    "orphan_removed": "tier bytes reason",
    "error": "reason",
    "tier_declared": "tier capacity_bytes",
    "namespace_declared": "ns text",
    "manifest_declared": "text",
    "counter_sampled": "text value",
    "degrade_requested": "text",
    "degrade_applied": "text",
    "degrade_cleared": "text",
    "fault_injected": "text",
    "fault_cleared": "text",
    "agent_started": "",
    "agent_heartbeat": "reason produced",
    "agent_stopped": "reason produced",
    "events_dropped": "stage reason first_seq last_seq count",
    "clock_stepped": "value",
}
"""The fields that the contract prints in bold."""

PARTS = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
ENDS = {Kind.SWAP_OUT_WRITTEN, Kind.SWAP_OUT_FAILED, Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED}


def test_required_fields_are_those_that_the_contract_prints_in_bold() -> None:
    """Whoever writes an event by the contract's table writes all that a reader may rely on, and nothing else is forced."""
    expected = {name: set(fields.split()) for name, fields in REQUIRED.items()}

    assert expected == {kind.name.lower(): set(REQUIRED_OF[kind]) for kind in Kind}


def test_every_class_of_event_has_a_kind() -> None:
    """No event can be typed and yet not be written: each concrete class has its number, and each number its class."""
    concrete = {
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Event) and cls not in {Event, TransferEnd}
    }

    assert concrete == set(EVENT_OF.values())


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_tag_is_the_name_of_the_kind(kind: Kind) -> None:
    """The tag that msgspec writes is the name that people read everywhere else."""
    tag = EVENT_OF[kind].__struct_config__.tag

    assert kind.name.lower() == tag


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_only_ends_of_transfers_carry_parts(kind: Kind) -> None:
    """Durations of an op stand once, on its closing row; no other kind has a place for them."""
    expected = set(PARTS) if kind in ENDS else set()

    assert expected == set(FIELDS_OF[kind]) & set(PARTS)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_a_kind_about_a_block_may_name_its_namespace(kind: Kind) -> None:
    """Where one engine serves several namespaces, every row with a block can say which one it is in."""
    fields = set(FIELDS_OF[kind])

    assert "block" not in fields or "ns" in fields


def test_a_field_has_one_type_on_every_kind() -> None:
    """Reading a column needs no look at the kind: `tokens` is a number of tokens wherever it stands."""
    found: dict[str, set[object]] = {}
    for cls in EVENT_OF.values():
        for field in msgspec.structs.fields(cls):
            found.setdefault(field.name, set()).add(_bare(field.type))
    several = {name: kinds for name, kinds in found.items() if len(kinds) > 1}

    # Reasons are subsets of one enum: one column, many closed lists.
    expected = ["reason"]

    assert expected == sorted(several)


def _bare(annotation: object) -> object:
    """An annotation without its `| None`."""
    options = [option for option in typing.get_args(annotation) if option is not types.NoneType]
    return options[0] if options else annotation


def test_units_stand_in_names() -> None:
    """A field that counts time or bytes says so at its end, so that nobody guesses."""
    times = {name for name in COLUMNS if "time" in name or "duration" in name or "wait" in name or "estimate" in name}

    assert {name for name in times if name.endswith("_ns")} == times


@given(event=events())
def test_events_are_values(event: Event) -> None:
    """Two events that say the same are equal and hash alike, so that sets and caches of events work."""
    again = msgspec.structs.replace(event)

    assert event == again
    assert hash(event) == hash(again)


def test_events_cannot_be_changed() -> None:
    """What happened stays as it was said."""
    event = StepStarted(step=StepId(1))

    with pytest.raises(AttributeError):
        event.step = StepId(2)  # type: ignore[misc]  # the very thing that must fail


def test_an_event_that_was_not_emitted_has_no_place() -> None:
    """`seq` counts from 1, so 0 says plainly that a recorder has not seen the event."""
    event = RequestArrived(req=RequestId(1), tokens=2)

    assert event.seq == 0
    assert event.t_ns == 0


def test_arguments_have_names() -> None:
    """Thirteen numbers in a row would be mixed up sooner or later."""
    with pytest.raises(TypeError):
        SwapInLoaded(1, 2, 3)  # type: ignore[call-arg]  # the very thing that must fail


def test_text_columns_are_declarations_only() -> None:
    """No kind that happens per block or per token has room for free text, where a prompt could leak into."""
    texts = {kind.name.lower() for kind in Kind if any(COLUMNS[f].width is Width.TEXT for f in FIELDS_OF[kind])}
    expected = {
        "request_arrived", "invalidation_requested", "error", "tier_declared", "namespace_declared", "manifest_declared",
        "counter_sampled", "degrade_requested", "degrade_applied", "degrade_cleared", "fault_injected", "fault_cleared",
        "agent_started",
    }  # fmt: skip

    assert expected == texts
