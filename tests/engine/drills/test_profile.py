"""The runs of drills: what the load is, where the fault lies, and that what a fault needs is there."""

from pathlib import Path

import pytest
from kvtrail_engine.drills.late_prefetch import LatePrefetch
from kvtrail_engine.drills.profile import (
    DOCUMENT_SHARE,
    DOCUMENT_TENANT,
    LONG_DOCUMENTS,
    RATE_PER_S,
    Documents,
    Scenario,
    drill_requests,
    drilled,
)
from kvtrail_engine.drills.registry import DRILLS, Strength
from kvtrail_engine.drills.remote_timeout import RemoteTimeout
from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.hints import Hints, session_of
from kvtrail_engine.proof import settle
from kvtrail_engine.redis_process import RedisProcess, find_redis_server
from kvtrail_engine.run import run_load
from kvtrail_engine.settings import PrefetchSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import PrefetchUsed

from tests.agent.waiting import wait_for
from tests.engine.engines import ask, tiny
from tests.real import require_real

MS = 1_000_000
SPAN_S = (20.0, 40.0)
SYSTEM_TOKENS = 64


def computed(arrivals: list[Arrival], start_s: float, end_s: float) -> float:
    """What those that come in a stretch compute a second: documents whole, of a turn what is new since the one before it."""
    known: dict[str, int] = {}
    tokens = 0
    for each in arrivals:
        spec = each.spec
        had = 0 if spec.tenant == DOCUMENT_TENANT else known.get(session_of(spec.name), SYSTEM_TOKENS)
        tokens += (len(spec.prompt) - had) * (start_s * 1e9 <= each.at_ns < end_s * 1e9)
        if spec.tenant != DOCUMENT_TENANT:
            known[session_of(spec.name)] = len(spec.prompt)
    return tokens / (end_s - start_s)


def within(arrivals: list[Arrival], start_s: float, end_s: float) -> list[Arrival]:
    """Those that come in a stretch."""
    return [each for each in arrivals if start_s * 1e9 <= each.at_ns < end_s * 1e9]


def share_of_documents(arrivals: list[Arrival]) -> float:
    """How many of them are documents."""
    return sum(each.spec.tenant == DOCUMENT_TENANT for each in arrivals) / len(arrivals)


@pytest.mark.parametrize(("documents", "share"), [(Documents(), 0.6), (LONG_DOCUMENTS, 0.25)])
def test_a_shift_of_the_mix_brings_documents_and_no_more_work(documents: Documents, share: float) -> None:
    """Within the stretch as many are documents as was said, and about as much is computed a second as before it."""
    arrivals = drill_requests(1, 60.0, SPAN_S, share, documents)
    before, inside = within(arrivals, 0, 20), within(arrivals, *SPAN_S)

    assert documents.share == pytest.approx(share_of_documents(before), abs=0.005)
    assert share_of_documents(inside) == pytest.approx(share, abs=0.01)
    assert computed(arrivals, *SPAN_S) == pytest.approx(computed(arrivals, 5, 20), rel=0.2)


def test_a_shift_of_the_mix_is_made_of_long_documents() -> None:
    """Rare before it and longer than what chats send, so that more of them move the tail."""
    with drilled(Scenario("mix-shift", 1, Strength.HARD), Path()) as run:
        lengths = [len(each.spec.prompt) for each in run.arrivals if each.spec.tenant == DOCUMENT_TENANT]

    shortest, longest = LONG_DOCUMENTS.tokens
    assert shortest <= min(lengths)
    assert len(lengths) / len(run.arrivals) < 0.15
    for first in range(0, len(lengths) - 20, 20):
        assert (shortest + longest) / 2 == pytest.approx(sum(lengths[first : first + 20]) / 20, rel=0.05)


def test_a_shift_of_the_mix_makes_nobody_wait_behind_a_document() -> None:
    """A document takes a part of a step, and a chat fits beside it: what is slow is slow by itself."""
    with drilled(Scenario("mix-shift", 1), Path()) as run:
        step = run.settings.step

    assert step.most_of_a_prompt() <= step.budget_tokens / 4


def test_without_a_shift_the_load_is_the_same_throughout() -> None:
    """The same share of documents, and the rate that is said."""
    arrivals = drill_requests(1, 60.0, SPAN_S, DOCUMENT_SHARE)

    assert share_of_documents(within(arrivals, *SPAN_S)) == pytest.approx(DOCUMENT_SHARE, abs=0.03)
    assert len(arrivals) / 60 == pytest.approx(RATE_PER_S, rel=0.1)


@pytest.mark.parametrize("fault", sorted(set(DRILLS) - {"remote-timeout"}))
def test_a_fault_lies_in_the_middle_of_its_run(tmp_path: Path, fault: str) -> None:
    """There is healthy time before it, and after it unless the load has lasting traces; the same scenario is the same run."""
    scenario = Scenario(fault, 3, Strength.HARD, 20.0)
    with drilled(scenario, tmp_path) as run, drilled(scenario, tmp_path) as again:
        assert run.drill is not None
        assert again.drill is not None
        assert 9e9 < run.drill.start_ns < run.drill.end_ns < (20e9 if fault == "mix-shift" else 17e9)
        assert run.drill.start_ns == again.drill.start_ns
        assert [each.at_ns for each in run.arrivals] == [each.at_ns for each in again.arrivals]
        assert (run.hints is not None) == (fault == "late-prefetch")


def test_hints_bring_blocks_before_they_are_asked_for(data_dir: Path, recorded: CollectingEmitter) -> None:
    """A load that announces its turns finds what lay on nvme fetched already."""
    settings = tiny(data_dir, gpu=TierSettings(slots=80), prefetch=PrefetchSettings(window=16, gpu_reserve_slots=0))
    with Engine(settings, [recorded.as_emitter()]) as engine:
        for number in range(8):
            engine.submit(ask(number)).result(10)
        settle(engine)
        engine.ask(engine.maintenance.demote_all)
        settle(engine)
        engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
        run_load(engine, [Arrival((100 + 40 * n) * MS, ask(n)) for n in range(8)], hints=Hints(lead_ns=80 * MS))

    assert len({event.block for event in recorded.of(PrefetchUsed)}) > 16


def test_turns_of_one_conversation_are_one_session() -> None:
    """A later hint takes the place of an earlier one of the same conversation."""
    assert session_of("chat-12-3") == session_of("chat-12-4") == "chat-12"
    assert session_of("alone") == "alone"


def test_late_prefetch_shortens_the_lead_and_gives_it_back(data_dir: Path) -> None:
    """While it lasts, hints come as late as it says."""
    hints = Hints(lead_ns=500 * MS)
    drill = LatePrefetch(hints, 2 * MS)
    with Engine(tiny(data_dir)) as engine:
        drill.begin(engine)
        during = hints.lead_ns
        drill.end(engine)

    assert (2 * MS, 500 * MS) == (during, hints.lead_ns)


def test_remote_timeout_stops_its_server_and_lets_it_go_on(data_dir: Path, tmp_path: Path) -> None:
    """In each stretch the server stands still first, then answers; after the end it runs whatever the moment."""
    require_real("redis-server", found=find_redis_server() is not None, how="install Debian's redis-server")
    with RedisProcess(tmp_path / "redis") as server, Engine(tiny(data_dir)) as engine:
        drill = RemoteTimeout(server, pause_s=0.4, every_s=1.0)
        drill.begin(engine)
        wait_for(lambda: _state(server.process.pid) == "T", "the server to stand still")
        drill.tick(engine, 0.5)
        goes_on = _state(server.process.pid)
        drill.tick(engine, 1.1)
        drill.end(engine)
        after = _state(server.process.pid)

    assert goes_on != "T"
    assert after != "T"


def _state(pid: int) -> str:
    """The state of a process as the system tells it; T: it stands."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
