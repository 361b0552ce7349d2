"""The engine and the load of a drill: 48 seconds, in which a fault strikes often enough to be told from chance.

As in the demo most of a step's time is its floor, slept away, so that two cores carry it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from kvtrail_engine.drills.mix_shift import MixShift
from kvtrail_engine.drills.registry import Means, Strength, make_drill
from kvtrail_engine.drills.timer import ScheduledDrill
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.chat import ChatSettings, chat_arrivals
from kvtrail_engine.loadgen.hints import Hints, session_of
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.redis_process import RedisProcess
from kvtrail_engine.request import RequestSpec, Retention
from kvtrail_engine.settings import (
    EngineSettings,
    EstimateSettings,
    FloorSettings,
    PrefetchSettings,
    RemoteSettings,
    RestorePolicy,
    StepSettings,
    TierSettings,
)

DURATION_S: Final = 48.0
RATE_PER_S: Final = 60.0
DOCUMENT_SHARE: Final = 0.08
DOCUMENT_TOKENS: Final = (128, 448)
DOCUMENT_TENANT: Final = "documents"
CHAT_COMPUTED_TOKENS: Final = 60
HINT_LEAD_NS: Final = 1_200_000_000
MS: Final = 1_000_000
_GOLDEN: Final = (5**0.5 - 1) / 2
_MIX_LATER: Final = 0.15
_NVME: Final = TierSettings(
    slots=8192, workers=12, floor=FloorSettings(read_latency_ns=18 * MS, write_latency_ns=6 * MS, bytes_per_s=40_000_000)
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is to be run: the same scenario is the same run, but for the machine."""

    fault: str
    seed: int
    strength: Strength = Strength.MEDIUM
    duration_s: float = DURATION_S


@dataclass(frozen=True, slots=True)
class Documents:
    """The prompts that nobody sends twice: their usual share of the requests, and from how many tokens to how many."""

    share: float = DOCUMENT_SHARE
    tokens: tuple[int, int] = DOCUMENT_TOKENS
    is_even: bool = False
    """Whether any few in a row are of as many lengths as all of them, so that chance makes no stretch longer than another."""

    def computed_tokens(self, share: float) -> float:
        """What a request computes on average, where so many are documents. The turn that one takes the place of is computed
        with the next one.
        """
        return share * sum(self.tokens) / 2 + CHAT_COMPUTED_TOKENS

    def length(self, number: int, random: np.random.Generator) -> int:
        """How many tokens the document of this number has. Even ones go round by the golden section."""
        shortest, longest = self.tokens
        if not self.is_even:
            return int(random.integers(shortest, longest))
        return shortest + int(number * _GOLDEN % 1 * (longest - shortest))


LONG_DOCUMENTS: Final = Documents(share=0.05, tokens=(640, 1536), is_even=True)
"""Those of `mix-shift`: rare and long, so that more of them move the tail, which shorter and common ones make already."""


@dataclass(frozen=True, slots=True)
class Drilled:
    """One run to come: engine, load, the fault at its moments (None: no fault), and hints where the load gives any."""

    settings: EngineSettings
    arrivals: list[Arrival]
    drill: ScheduledDrill | None
    hints: Hints | None


@contextmanager
def drilled(scenario: Scenario, directory: Path) -> Iterator[Drilled]:
    """Engine and load for a fault; a remote's server lives in the context.

    Raises:
        SettingsError: there is no such fault.
        StorageError: the fault needs a redis-server, and none can be started.
    """
    settings = drill_settings(scenario.seed, directory / "tiers")
    if scenario.fault == "remote-timeout":
        with RedisProcess(directory / "remote") as server:
            yield _drilled(scenario, _with_remote(settings, server), Means(server=server))
        return
    hints = Hints(HINT_LEAD_NS) if scenario.fault == "late-prefetch" else None
    if hints is not None:
        settings = _with_prefetch(settings)
    if scenario.fault == "host-pressure":
        settings = _with_roomy_host(settings)
    if scenario.fault == MixShift.name:
        settings = _with_small_chunks(settings)
    yield _drilled(scenario, settings, Means(hints=hints))


def drill_settings(seed: int, data_dir: Path) -> EngineSettings:
    """An engine whose gpu and host hold a few seconds each, and whose nvme holds the whole run."""
    return EngineSettings(
        data_dir=data_dir,
        seed=seed,
        gpu=TierSettings(slots=1024),
        gpu_low_slots=640,
        host=TierSettings(
            slots=768, workers=2, floor=FloorSettings(read_latency_ns=4 * MS, write_latency_ns=1 * MS, bytes_per_s=400_000_000)
        ),
        nvme=_NVME,
        step=StepSettings(
            budget_tokens=256, max_sequences=64, floor_ns=1 * MS, floor_prefill_token_ns=60_000, floor_decode_token_ns=100_000
        ),
        nvme_files=NvmeSettings(outlives_engine=False, direct=DirectIo.OFF),
        estimates=EstimateSettings(is_by_size=False),
        restore_policy=RestorePolicy.RESTORE,
        host_low_slots=64,
        guest_slots=640,
    )


def _with_remote(settings: EngineSettings, server: RedisProcess) -> EngineSettings:
    """The remote in the place of nvme."""
    remote = RemoteSettings(
        url=server.url,
        tier=replace(_NVME, workers=4, slots=4096),
        password_file=server.password_file,
        timeout_ns=150 * MS,
        failures_to_open=24,
        cooldown_ns=100 * MS,
    )
    return replace(settings, nvme=replace(settings.nvme, slots=0), guest_slots=0, remote=remote)


def _with_roomy_host(settings: EngineSettings) -> EngineSettings:
    """A host pool that holds what comes back, above an nvme that nobody should have to wait for."""
    floor = FloorSettings(read_latency_ns=80 * MS, write_latency_ns=6 * MS, bytes_per_s=40_000_000)
    return replace(settings, host=replace(settings.host, slots=4096), nvme=replace(settings.nvme, floor=floor))


def _with_small_chunks(settings: EngineSettings) -> EngineSettings:
    """Long prompts in small chunks, a host that holds what comes back: a long document takes long by its own computing alone.

    Where it takes whole steps, everybody behind it is as slow as it is, and the tail has what a shift would bring already.
    """
    step = replace(settings.step, prompt_tokens=64)
    return replace(settings, step=step, host=replace(settings.host, slots=4096))


def _with_prefetch(settings: EngineSettings) -> EngineSettings:
    """Fetching ahead, from an nvme that is worth fetching ahead from."""
    floor = FloorSettings(read_latency_ns=80 * MS, write_latency_ns=6 * MS, bytes_per_s=40_000_000)
    prefetch = PrefetchSettings(window=16, slack_ns=400 * MS, gpu_reserve_slots=32)
    return replace(settings, gpu=replace(settings.gpu, slots=1536), nvme=replace(settings.nvme, floor=floor), prefetch=prefetch)


def _drilled(scenario: Scenario, settings: EngineSettings, means: Means) -> Drilled:
    """The run, its fault somewhere in the middle; a shift of the mix comes later, as there is less to do after it."""
    drill = make_drill(scenario.fault, scenario.seed, scenario.strength, means)
    random = np.random.default_rng((scenario.seed, 3))
    later = _MIX_LATER if scenario.fault == MixShift.name else 0.0
    start_s = (random.uniform(0.46, 0.52) + later) * scenario.duration_s
    end_s = start_s + random.uniform(0.28, 0.32) * scenario.duration_s
    documents = LONG_DOCUMENTS if isinstance(drill, MixShift) else Documents()
    share = drill.document_share if isinstance(drill, MixShift) else documents.share
    arrivals = drill_requests(scenario.seed, scenario.duration_s, (start_s, end_s), share, documents)
    scheduled = None if drill is None else ScheduledDrill(drill, int(start_s * 1e9), int(end_s * 1e9))
    return Drilled(settings, arrivals, scheduled, means.hints)


def drill_requests(
    seed: int,
    duration_s: float,
    shifted_s: tuple[float, float],
    shifted_share: float,
    documents: Documents = Documents(),
) -> list[Arrival]:
    """Chats, and among them documents of a tenant of their own that nobody sends twice.

    Within a stretch another share of the requests are documents, and so many fewer come that as much is computed as before:
    some conversations end, as the next turn of one that only paused would bring what it left out.
    Documents come evenly among the others, so that chance changes neither their share nor what is computed.
    """
    chats = chat_arrivals(
        ChatSettings(
            seed=seed,
            duration_s=duration_s,
            rate_per_s=RATE_PER_S,
            first_tokens=(48, 128),
            turn_tokens=(16, 64),
            max_turns=10,
            new_share=0.08,
            think_s=(0.5, 2.0, 4.0),
        )
    )
    random = np.random.default_rng((seed, 5))
    start_ns, end_ns = (int(at_s * 1e9) for at_s in shifted_s)
    kept = documents.computed_tokens(documents.share) / documents.computed_tokens(shifted_share)
    made: list[Arrival] = []
    owed, number, stays = random.random(), 0, dict[str, bool]()
    for arrival in chats:
        is_shifted = start_ns <= arrival.at_ns < end_ns
        drawn, conversation = random.random(), session_of(arrival.spec.name)
        if is_shifted:
            stays.setdefault(conversation, drawn < kept)
        if not stays.get(conversation, True):
            continue
        owed += shifted_share if is_shifted else documents.share
        if owed < 1:
            made.append(arrival)
            continue
        made.append(Arrival(arrival.at_ns, _document(arrival.spec, documents.length(number, random), random)))
        owed, number = owed % 1, number + 1
    return made


def _document(turn: RequestSpec, tokens: int, random: np.random.Generator) -> RequestSpec:
    """A document in the place of a chat's turn."""
    prompt = random.integers(0, 1024, tokens, dtype=np.int64)
    return RequestSpec(f"document-{turn.name}", prompt, turn.output_tokens, DOCUMENT_TENANT, Retention.NONE)
