"""vLLM's objects as a connector is given them, with the fields of version 0.32 that matter, and the order of its calls."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from kvtrail_agent.attach.vllm_chain import Chains
from kvtrail_agent.attach.vllm_loads import Loads
from kvtrail_agent.attach.vllm_names import Names
from kvtrail_agent.attach.vllm_pool import Residents
from kvtrail_agent.attach.vllm_queue import Queue
from kvtrail_agent.attach.vllm_scheduler import SchedulerWatch
from kvtrail_agent.attach.vllm_worker import StepTimes
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier

KEY: Final = b"0123456789abcdef"
BLOCK: Final = 4
BLOCK_BYTES: Final = 1_000
MS: Final = 1_000_000


class Request:
    """A request as vLLM's scheduler holds it."""

    def __init__(self, request_id: str, tokens: int, *, salt: str | None = None, first_hash: int = 0) -> None:
        self.request_id = request_id
        self.num_prompt_tokens = tokens
        self.num_output_tokens = 0
        self.cache_salt = salt
        self.lora_request: Any = None
        self.trace_headers: dict[str, str] | None = None
        self.priority = 0
        self.status: Any = SimpleNamespace(name="RUNNING")
        self.block_hashes = [bytes([first_hash + place]) * 32 for place in range(tokens // BLOCK)]

    @property
    def num_tokens(self) -> int:
        """Prompt and output."""
        return self.num_prompt_tokens + self.num_output_tokens

    def end(self, how: str = "FINISHED_STOPPED") -> "Request":
        """With the status that it ends with."""
        self.status = SimpleNamespace(name=how)
        return self


def output(
    new: dict[str, int] | None = None,
    again: dict[str, int] | None = None,
    tokens: dict[str, int] | None = None,
    preempted: set[str] | None = None,
) -> Any:
    """A `SchedulerOutput`: computed tokens of requests that are new, and of those that go on; tokens of each in the step."""
    scheduled = tokens or {}
    cached = SimpleNamespace(req_ids=list(again or {}), num_computed_tokens=list((again or {}).values()), resumed_req_ids=set())
    return SimpleNamespace(
        scheduled_new_reqs=[SimpleNamespace(req_id=name, num_computed_tokens=count) for name, count in (new or {}).items()],
        scheduled_cached_reqs=cached,
        num_scheduled_tokens=scheduled,
        total_num_scheduled_tokens=sum(scheduled.values()),
        preempted_req_ids=preempted,
    )


def answer(
    *,
    received: set[str] | None = None,
    sent: set[str] | None = None,
    bad: set[int] | None = None,
    failed: set[str] | None = None,
) -> Any:
    """A `KVConnectorOutput`."""
    return SimpleNamespace(
        finished_recving=received or set(),
        finished_sending=sent or set(),
        invalid_block_ids=bad or set(),
        failed_recving=failed or set(),
    )


@dataclass
class Scheduler:
    """What vLLM's scheduler would call, on a clock in milliseconds that the test turns."""

    most_running: int = 8
    most_tokens: int = 64
    tier: Tier = Tier.NVME
    saves_at_once: bool = True
    emitter: CollectingEmitter = field(default_factory=CollectingEmitter)

    def __post_init__(self) -> None:
        emit = self.emitter.as_emitter()
        names = Names(KEY)
        self.residents = Residents(emit, 0, BLOCK_BYTES)
        self.chains = Chains(emit, names, self.residents, BLOCK, BLOCK)
        loads = Loads(emit, self.residents, self.tier, BLOCK_BYTES, saves_at_once=self.saves_at_once)
        self.watch = SchedulerWatch(emit, names, self.chains, loads, Queue(emit, self.most_running, self.most_tokens))

    def comes(self, request: Request, at: int) -> None:
        """A request is added."""
        self.watch.came(request, at * MS)

    def looks_up(self, request: Request, at: int, gpu: int = 0, found: int | None = 0, *, is_async: bool = False) -> None:
        """A request is looked up; a millisecond."""
        self.watch.looked_up(request, gpu, found, is_async, ((at - 1) * MS, at * MS))

    def gives(self, request: Request, at: int, slots: list[int] | None = None, found: int = 0) -> None:
        """A request is given its blocks."""
        self.watch.given(request, slots or [], found, self.tier, at * MS)

    def builds(self, at: int, **told: Any) -> None:
        """A step is handed out."""
        self.watch.built(output(**told), at * MS)

    def hears(self, at: int, times: StepTimes | None = None, **told: Any) -> None:
        """Workers answered."""
        self.watch.worker_said(answer(**told), [] if times is None else [times], 0, at * MS)

    def ends_step(self, at: int) -> None:
        """The step's results are taken."""
        self.watch.done(at * MS)

    def ends(self, request: Request, at: int, how: str = "FINISHED_STOPPED", slots: int = 0, *, keeps: bool = False) -> None:
        """A request ends."""
        self.watch.finished(request.end(how), slots, at * MS, keeps_blocks=keeps)


def times(
    load: tuple[int, int] | None = None, layers: tuple[int, int] = (0, 0), save: tuple[int, int] = (0, 0), asked: int = 0
) -> StepTimes:
    """Times of a worker in milliseconds: the load call, what layers waited and until when, what saving took and until when."""
    begin, end = load or (0, 0)
    return StepTimes(0, 0, begin * MS, end * MS, layers[0] * MS, layers[1] * MS, save[0] * MS, save[1] * MS, asked * MS)
