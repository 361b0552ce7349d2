"""The same serves gaps between tokens: the population is gaps, by the time of the token that each begins with (LEDGER §5)."""

import numpy as np
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.attribution_shapes import Attribution, Measure
from kvtrail_collector.ledger_parts import Component
from kvtrail_collector.questions.attribution import attribute_stored, gap_span
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.testing import memory_store
from kvtrail_schema.events import (
    DecodeJoined,
    DecodeLeft,
    Event,
    RequestAdmitted,
    RequestArrived,
    RequestFinished,
    RequestFirstToken,
    StepFinished,
    StepStarted,
)
from kvtrail_schema.identity import RequestId, StepId

from tests.collector.attribution.synthetic import MS, SECOND, Plan, Run, stream_table
from tests.collector.frames import events_batch

TOKENS, RUN_S, FROM_S, TO_S = 60, 100, 60, 80


def decode(seed: int, *, prefill_tokens: int = 0, slower: float = 1.0) -> Attribution:
    """What is said of the gaps of a run whose steps hold more tokens for a while, or are slower."""
    run = decoding(seed, prefill_tokens=prefill_tokens, slower=slower)
    return attribute(stream_table(run.numbered()), measure=Measure.GAPS, seed=seed)


def decoding(seed: int, *, prefill_tokens: int = 0, slower: float = 1.0) -> Run:
    """Such a run."""
    rng = np.random.default_rng(seed)
    events: list[Event] = []
    step, now, running, arrived = 0, 0, dict[int, int](), 0
    while now < RUN_S * SECOND:
        step, start = step + 1, now + int(rng.exponential(0.2) * MS)
        is_on = FROM_S * SECOND <= start < TO_S * SECOND
        extra = prefill_tokens if is_on and rng.random() < 0.5 else 0
        tokens = 16 * (len(running) + 1) + extra
        now = start + int(tokens * rng.gamma(50, 1 / 50) * 0.4 * MS * (slower if is_on else 1.0))
        events.append(StepStarted(t_ns=start, step=StepId(step)))
        events.append(StepFinished(t_ns=now, step=StepId(step), tokens=tokens, prefill_tokens=extra))
        for req in [req for req, left in running.items() if left == 0]:
            events.append(DecodeLeft(t_ns=now, req=RequestId(req), step=StepId(step)))
            events.append(RequestFinished(t_ns=now, req=RequestId(req), tokens=TOKENS))
            del running[req]
        running = {req: left - 1 for req, left in running.items()}
        if rng.random() < 0.04 and len(running) < 4:
            arrived += 1
            req = RequestId(arrived)
            running[arrived] = TOKENS
            events.append(RequestArrived(t_ns=start, req=req, tokens=100))
            events.append(RequestAdmitted(t_ns=start, req=req))
            events.append(RequestFirstToken(t_ns=now, req=req, step=StepId(step)))
            events.append(DecodeJoined(t_ns=now, req=req, step=StepId(step + 1)))
    return Run(Plan(seed), sorted(events, key=lambda event: event.t_ns))


@pytest.mark.parametrize("seed", range(2))
def test_others_prefill_in_the_steps(seed: int) -> None:
    """Where half of the steps hold prompts of others, as fast a token as ever, that is interference."""
    answer = decode(seed, prefill_tokens=120)

    assert answer.measure is Measure.GAPS
    assert ("COMPUTE_INTERFERENCE", Component.DECODE_STEP) == (answer.verdicts[0].code, answer.verdicts[0].component)
    assert answer.window is not None
    assert abs(answer.window.start_ns - FROM_S * SECOND) < 3 * SECOND
    assert len(set(answer.exemplars)) == len(answer.exemplars)


def test_slow_steps_are_no_interference() -> None:
    """Where the same steps take longer, the steps are shown as what grew, and nobody is convicted of it."""
    answer = decode(3, slower=2.5)

    assert answer.verdicts == ()
    assert answer.components[0].component is Component.DECODE_STEP


def test_healthy_gaps() -> None:
    """Steps as ever have no spike."""
    assert decode(5).window is None


def test_of_a_window_the_events_around_it_are_read() -> None:
    """The gaps of a given window are explained from the events around it as from all."""
    window = (FROM_S * SECOND, (FROM_S + 5) * SECOND)
    run = decoding(1, prefill_tokens=120)
    with memory_store() as store:
        store.submit(events_batch(run.numbered())).result()
        with store.read() as cursor:
            known = streams(cursor)
            read = event_rows(cursor, known, gap_span(window, None)).num_rows
            some = attribute_stored(cursor, known, window, measure=Measure.GAPS)
            whole = attribute(event_rows(cursor, known), window, measure=Measure.GAPS)

    assert read < 0.9 * len(run.numbered())
    assert ["COMPUTE_INTERFERENCE"] == [verdict.code for verdict in some.verdicts]
    assert (whole.window, whole.reference, whole.components) == (some.window, some.reference, some.components)


def test_before_a_window_lies_more_than_its_warm_up() -> None:
    """What is read begins so early that the longest reference lies behind a fifth that is left out."""
    start, end = gap_span((100 * SECOND, 110 * SECOND), None)

    assert start + (end - start) // 5 <= 50 * SECOND
    assert 160 * SECOND <= end
    assert gap_span((100, 110), (20, 30))[0] < 20
