"""What an engine does without when it is asked to, and that it returns to it: told by events, and with the same answers."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from kvtrail_engine.degrade_controls import EngineControls
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineFailedError
from kvtrail_engine.request import Outcome
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.degrade import parse_action
from kvtrail_schema.enums import Tier
from kvtrail_schema.errors import OrderInvalid
from kvtrail_schema.events import AdmissionLimited, PrefillChunk, PrefixMiss, SwapInQueued, SwapOutQueued
from kvtrail_schema.reasons import AdmissionReason, MissReason, PrefillReason

from tests.engine.engines import BLOCK, ask, tiny

TOKENS = 5 * BLOCK


def fill(engine: Engine, numbers: range) -> None:
    """Ask for prompts one after another, each to its end: with more than fit, the first have left the gpu."""
    for number in numbers:
        assert engine.submit(ask(number)).result(30).outcome is Outcome.FINISHED


def test_recompute_loads_nothing_and_answers_the_same(tmp_path: Path) -> None:
    """What lies on host is computed again by choice, with the same tokens; released, it is loaded again."""
    told = CollectingEmitter()
    with Engine(tiny(tmp_path), [told.as_emitter()]) as engine:
        controls = EngineControls(engine)
        first = engine.submit(ask(0)).result(30)
        fill(engine, range(1, 10))
        controls.apply(parse_action("recompute"))
        before = len(told.of(SwapInQueued))
        again = engine.submit(ask(0)).result(30)

        assert first.output == again.output
        assert before == len(told.of(SwapInQueued))
        assert PrefillReason.CHOSEN in {chunk.reason for chunk in told.of(PrefillChunk) if chunk.req == again.req}

        controls.release(parse_action("recompute"))
        fill(engine, range(10, 20))
        assert sum(engine.submit(ask(0)).result(30).restored.values()) > 0


def test_a_disabled_tier_is_neither_read_nor_written(tmp_path: Path) -> None:
    """What lies there is a miss that names its index, nothing more is moved there, and released it is used again."""
    told = CollectingEmitter()
    with Engine(tiny(tmp_path), [told.as_emitter()]) as engine:
        fill(engine, range(24))
        controls = EngineControls(engine)
        controls.apply(parse_action("disable_tier(nvme)"))
        seen = told.events[-1].seq
        again = engine.submit(ask(0)).result(30)
        fill(engine, range(30, 40))
        ops: list[SwapInQueued | SwapOutQueued] = [*told.of(SwapInQueued), *told.of(SwapOutQueued)]

        assert [] == [op for op in ops if op.seq > seen and Tier.NVME in {op.src, op.dst}]
        assert {MissReason.DISK_INDEX} == {miss.reason for miss in told.of(PrefixMiss) if miss.req == again.req}

        controls.release(parse_action("disable_tier(nvme)"))
        assert () == controls.in_force()
        assert engine.submit(ask(1)).result(30).restored[Tier.NVME] > 0


def test_gpu_only_touches_no_tier_below(tmp_path: Path) -> None:
    """Neither reads nor writes are queued, and requests are answered."""
    told = CollectingEmitter()
    with Engine(tiny(tmp_path), [told.as_emitter()]) as engine:
        fill(engine, range(10))
        EngineControls(engine).apply(parse_action("gpu_only"))
        seen = told.events[-1].seq
        fill(engine, range(10))

        assert [] == [op for op in [*told.of(SwapInQueued), *told.of(SwapOutQueued)] if op.seq > seen]


def test_long_prompts_are_refused_and_short_ones_served(tmp_path: Path) -> None:
    """The smallest limit in force holds, each change is told, and without one all are served."""
    told = CollectingEmitter()
    with Engine(tiny(tmp_path), [told.as_emitter()]) as engine:
        controls = EngineControls(engine)
        controls.apply(parse_action(f"limit_long_context({2 * TOKENS})"))
        controls.apply(parse_action(f"limit_long_context({TOKENS - 1})"))
        assert Outcome.REJECTED is engine.submit(ask(1)).result(30).outcome
        controls.release(parse_action(f"limit_long_context({TOKENS - 1})"))
        assert Outcome.FINISHED is engine.submit(ask(1)).result(30).outcome
        controls.release(parse_action(f"limit_long_context({2 * TOKENS})"))

    degraded, cleared = AdmissionReason.DEGRADED, AdmissionReason.CLEARED
    changes = [(each.reason, each.tokens) for each in told.of(AdmissionLimited)]
    assert [(degraded, 2 * TOKENS), (degraded, TOKENS - 1), (degraded, 2 * TOKENS), (cleared, 40 * BLOCK)] == changes


def test_what_it_cannot_do_is_refused(tmp_path: Path) -> None:
    """A tier that it does not have; and anything, once it was closed."""
    with Engine(tiny(tmp_path)) as engine:
        controls = EngineControls(engine)
        with pytest.raises(OrderInvalid, match="no tier remote"):
            controls.apply(parse_action("disable_tier(remote)"))

    for change in (controls.apply, controls.release, lambda _: controls.in_force()):
        with pytest.raises(OrderInvalid, match="closed"):
            change(parse_action("recompute"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_has_ended_by_a_defect_can_do_nothing(tmp_path: Path) -> None:
    """An order is refused with the defect, at once: nobody waits for a thread that is no more."""

    def defect() -> None:
        """Ends the engine's thread."""
        message = "on purpose"
        raise RuntimeError(message)

    with Engine(tiny(tmp_path)) as engine:
        controls, waiting = EngineControls(engine), engine.submit(ask(1, output_tokens=100))
        engine.call_on_thread(defect)
        with pytest.raises(EngineFailedError, match="on purpose"):
            waiting.result(30)
        with pytest.raises(OrderInvalid, match="on purpose"):
            controls.apply(parse_action("recompute"))


def test_a_question_that_came_too_late_is_not_answered(tmp_path: Path) -> None:
    """Who was told that the engine did not come to it can rely on that: it does not come to it later on either."""
    busy, asked = threading.Event(), list[str]()
    with Engine(tiny(tmp_path)) as engine:
        engine.call_on_thread(lambda: assert_in_time(busy))
        with pytest.raises(TimeoutError):
            engine.ask(lambda: asked.append("too late"), 0.05)
        busy.set()
        engine.ask(lambda: asked.append("in time"))

    assert ["in time"] == asked


def test_a_question_that_has_begun_is_waited_for(tmp_path: Path) -> None:
    """What it does happens, so whoever asked hears of it."""
    begun = threading.Event()

    def slow() -> str:
        """Begins at once, and lasts longer than the patience."""
        begun.set()
        threading.Event().wait(0.3)
        return "done"

    with Engine(tiny(tmp_path)) as engine:
        assert "done" == engine.ask(slow, 0.2)
    assert begun.is_set()


def assert_in_time(event: threading.Event) -> None:
    """Wait for it, for a while."""
    assert event.wait(10), "it did not happen"
