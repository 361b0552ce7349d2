"""The engine as its users hold it: start, submit, close."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import torch
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.reasons import ErrorReason, InvalidateReason

from kvtrail_engine.backpressure import Pressure, PressureStatistics, QueueWatch
from kvtrail_engine.clock import Clock, SystemClock
from kvtrail_engine.context import Context
from kvtrail_engine.core import Core
from kvtrail_engine.datadir import DataDir
from kvtrail_engine.erasing import Erasing
from kvtrail_engine.errors import EngineClosedError, EngineError, PinFailedError
from kvtrail_engine.estimates import Estimator
from kvtrail_engine.executor import Executor
from kvtrail_engine.history import History
from kvtrail_engine.identity.holdings import Holdings
from kvtrail_engine.identity.journal import Journal
from kvtrail_engine.identity.selector import Selector
from kvtrail_engine.ids import Ids
from kvtrail_engine.inbox import Call, CancelAsked, CloseAsked, Inbox, InboxReports, Submitted
from kvtrail_engine.invalidation import Eraser, Invalidation, Invalidator, invalidate
from kvtrail_engine.keys import load_or_create_key
from kvtrail_engine.lifecycle import Lifecycle, Totals
from kvtrail_engine.maintenance import Maintenance
from kvtrail_engine.manifest import manifest_text
from kvtrail_engine.observers import emitter_of
from kvtrail_engine.policy import PriorityLru
from kvtrail_engine.prefetch_book import PrefetchBook, PrefetchStatistics
from kvtrail_engine.request import RequestHandle, RequestSpec
from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.runtime.device import choose_device, label_of, make_deterministic, settle_device
from kvtrail_engine.runtime.pinning import wants_pinned
from kvtrail_engine.sampling import Sampler
from kvtrail_engine.scheduler import Scheduler
from kvtrail_engine.settings import EngineSettings, RemoteSettings
from kvtrail_engine.stepping import Stepping
from kvtrail_engine.tiers.floor import Floor
from kvtrail_engine.tiers.host import HostMover
from kvtrail_engine.tiers.keeping import WallTerms
from kvtrail_engine.tiers.nvme import NvmeMover
from kvtrail_engine.tiers.nvme_tier import NvmeTier
from kvtrail_engine.tiers.pool import Block, PoolStatistics, TierPool
from kvtrail_engine.tiers.queue import QueueStatistics, TransferQueue
from kvtrail_engine.tiers.segments import StoreStatistics
from kvtrail_engine.tiers.workers import Workers
from kvtrail_engine.transfers import Transfers

if TYPE_CHECKING:
    from kvtrail_engine.tiers.remote_tier import RemoteStatistics, RemoteTier

T = TypeVar("T")


class EngineStatistics(NamedTuple):
    """An engine at one moment; the parts were read one after the other."""

    pools: dict[Tier, PoolStatistics]
    queues: dict[Tier, QueueStatistics]
    waiting: int
    active: int
    totals: Totals
    pressure: PressureStatistics
    prefetches: PrefetchStatistics
    step_busy_ns: int
    """The time in which some step ran."""
    nvme_files: StoreStatistics
    unerased: int = 0
    """Invalidated copies whose bytes are not gone yet: nobody finds them, and they are tried again."""
    remote: "RemoteStatistics | None" = None


class Engine:
    """A real offload engine. Made anywhere; `start` gives it its threads; any thread may submit; `close` ends them.

    Observers are called on the engine's thread alone, in order, so that they need no lock; they must not block or raise.
    Use it as a context manager, or call `close` yourself.

    Raises:
        SettingsError: the settings cannot work.
        StorageError: `data_dir` cannot be used.
    """

    remote: "RemoteTier | None" = None
    _pin_failure: PinFailedError | None = None

    def __init__(
        self,
        settings: EngineSettings,
        observers: Sequence[Emitter] = (),
        clock: Clock | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        settings.check()
        self.settings = settings
        self._clock = clock or SystemClock()
        self._wall_ns = wall_ns
        self.device = choose_device(settings.device)
        make_deterministic(self.device)
        self._dir = DataDir(settings.data_dir)
        self._emit = emitter_of(observers)
        self._inbox = Inbox()
        self._ids = Ids(settings.rank)
        self._lock = threading.Lock()
        self._is_closed = False  # guarded by _lock
        try:
            self._build_tiers()
            self._build_core()
        except EngineError:
            self._dir.close()
            raise
        self._thread = threading.Thread(target=self._core.run, name="kvtrail-engine", daemon=True)

    @property
    def device_label(self) -> str:
        """What stands beside every result: `cuda` or `cpu-emulated`."""
        return label_of(self.device)

    def start(self) -> Self:
        """Declare what there is, and start the threads."""
        settle_device(self.device)
        self._declare()
        if self.remote is not None:
            self.remote.start()
        self.erasing.start()
        for workers in self._workers:
            workers.start()
        self._thread.start()
        return self

    def submit(self, spec: RequestSpec) -> RequestHandle:
        """Hand a request over; returns at once. It arrives now, whatever the engine is doing.

        Raises:
            EngineClosedError: the engine takes no more.
            EngineFailedError: its thread has ended by a defect.
        """
        with self._lock:
            if self._is_closed:
                message = f"request {spec.name}: the engine is closed"
                raise EngineClosedError(message)
            self.lifecycle.namespaces.remember(spec)
            handle = RequestHandle(self._ids.request(), spec, lambda req: self._inbox.put(CancelAsked(req)))
            self._inbox.put(Submitted(handle, self._clock.now_ns()))
            if self._core.failure is not None:
                raise self._core.failure
        return handle

    def call_on_thread(self, run: Callable[[], None]) -> None:
        """Run something on the engine's thread, soon, between two of its turns; for drills and proofs."""
        self._inbox.put(Call(run))

    def ask(self, question: Callable[[], T], timeout_s: float = 30.0) -> T:
        """Run something on the engine's thread and wait for its answer; never call it from there.

        Raises:
            TimeoutError: the engine's thread did not come to it, and will not; or it began, and lasts for as long again.
            EngineFailedError: that thread has ended by a defect.
            EngineClosedError: that thread has ended, because the engine was closed.
            Exception: whatever the question raised.
        """
        if self._core.failure is not None:
            raise self._core.failure
        if self._is_closed and not self._thread.is_alive():  # while it ends, it still answers
            message = "nothing can be asked: the engine is closed"
            raise EngineClosedError(message)
        answer: Future[T] = Future()

        def run() -> None:
            if not answer.set_running_or_notify_cancel():
                return  # nobody waits for it any more, so nobody would know that it was done
            try:
                answer.set_result(question())
            except Exception as exc:  # noqa: BLE001 - it is raised where the question was asked
                answer.set_exception(exc)

        self.call_on_thread(run)
        try:
            return answer.result(timeout_s)
        except TimeoutError:
            if answer.cancel():
                raise
            return answer.result(timeout_s)  # it has begun, so what it does counts

    def hint(self, session: str, spec: RequestSpec, use_in_ns: int) -> None:
        """A session will go on with this prompt in about so long: have what is stored of it near by then. Returns at once."""
        prefetcher = self.lifecycle.prefetcher
        self.call_on_thread(lambda: prefetcher.hint(session, self.lifecycle.blocks_of(spec), use_in_ns))

    def forget_hint(self, session: str) -> None:
        """A session will not go on after all. Returns at once."""
        self.call_on_thread(lambda: self.lifecycle.prefetcher.forget(session))

    def invalidate(
        self, selector: Selector, reason: InvalidateReason = InvalidateReason.MANUAL, timeout_s: float = 30.0
    ) -> Invalidation:
        """Take away every block of the namespaces that a selector means, on every tier, for good. Blocks; from any thread
        but the engine's.

        It is on the disk before it begins, so that it holds after a crash, and nobody finds such a block from the moment at
        which it begins. Requests that read one are called off.

        Raises:
            SettingsError: the selector selects nothing in particular.
            EngineClosedError: the engine is closed.
            StorageError: it could not be put down; then nothing was told, but new lookups miss all the same.
        """
        selected = selector.hashed(self.lifecycle.key)
        if self._is_closed:
            message = "the engine is closed"
            raise EngineClosedError(message)
        self._journal.invalidate(selected)
        done = invalidate(self._invalidator, self.ask, selected, reason, timeout_s)
        if done.unfinished:
            self.erasing.owe()
        return done

    def blocks_of(self, spec: RequestSpec) -> tuple[Block, ...]:
        """The full blocks that a request's prompt has in this engine."""
        return self.ask(lambda: self.lifecycle.blocks_of(spec))

    def floor_of(self, tier: Tier) -> Floor:
        """The floor of a tier below the gpu; its settings may be replaced at any time."""
        return self._floors[tier]

    def statistics(self) -> EngineStatistics:
        """What is where. Cheap, from any thread, not one single moment."""
        return EngineStatistics(
            pools={tier: pool.statistics() for tier, pool in self.context.pools.items()},
            queues={tier: queue.statistics() for tier, queue in self._queues.items()},
            waiting=len(self._scheduler.waiting),
            active=self._scheduler.active,
            totals=self.lifecycle.totals,
            pressure=self.context.pressure.statistics(),
            prefetches=self.context.prefetches.statistics(),
            step_busy_ns=self._stepping.busy_ns,
            nvme_files=self.nvme.store.statistics(),
            unerased=self._invalidator.owed,
            remote=None if self.remote is None else self.remote.statistics(),
        )

    def close(self) -> None:
        """Call off what is left, end the threads, close the tier's files. Blocks for ops in service; twice is once."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self.erasing.close()
        if self._thread.ident is not None:
            self._inbox.put(CloseAsked())
            self._thread.join()
            for workers in self._workers:
                workers.close()
        if self.remote is not None:
            self.remote.close()
        self.nvme.store.close()
        self._journal.close()
        self._dir.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _build_tiers(self) -> None:
        """Arenas, files, queues, floors and threads of every tier."""
        self.gpu_arena = Arena(self.settings, self.settings.gpu.slots, self.device)
        self.host_arena = self._host_arena()
        settings, pinned = self.settings, self.host_arena.pinned
        self._key = load_or_create_key(self._dir.key_file)
        self.nvme = NvmeTier(settings, self._dir.nvme, self._key, self.device, wall_ns=self._wall_ns, clock=self._clock)
        tiers = {Tier.HOST: settings.host, Tier.NVME: settings.nvme}
        self._queues = {tier: TransferQueue(given.queue_ops) for tier, given in tiers.items()}
        self._floors = {tier: Floor(given.floor, self._clock) for tier, given in tiers.items()}
        reports = self.reports = InboxReports(self._inbox)
        host = [self._host_mover() for _ in range(settings.host.workers)]
        nvme = [self._nvme_mover(pinned=pinned) for _ in range(settings.nvme.workers)]
        self._workers = [
            Workers("host", self._queues[Tier.HOST], host, reports, self._clock),
            Workers("nvme", self._queues[Tier.NVME], nvme, reports, self._clock),
        ]
        if settings.remote is not None:
            self._add_remote(settings.remote, reports)

    def _host_arena(self) -> Arena:
        """The host's memory; where it cannot be pinned, none, and the engine goes on without the tier."""
        settings, cpu = self.settings, torch.device("cpu")
        pinned = wants_pinned(settings.pinning, self.device)
        try:
            return Arena(settings, settings.host.slots + settings.guest_slots, cpu, pinned=pinned)
        except PinFailedError as failure:
            self._pin_failure = failure
            self.settings = settings.without_host()
            return Arena(self.settings, 0, cpu)

    def _add_remote(self, given: RemoteSettings, reports: InboxReports) -> None:
        """Connect to the remote, and give it a queue, a floor and threads."""
        from kvtrail_engine.remote_wiring import connect_remote, remote_mover  # noqa: PLC0415 - loads the client

        terms = WallTerms(self._clock, self._wall_ns, given.expiry_ns)
        self.remote = connect_remote(self, given, terms)
        queue = self._queues[Tier.REMOTE] = TransferQueue(given.tier.queue_ops)
        self._floors[Tier.REMOTE] = Floor(given.tier.floor, self._clock)
        movers = [remote_mover(self, self.remote) for _ in range(given.tier.workers)]
        self._workers.append(Workers("remote", queue, movers, reports, self._clock))

    def _host_mover(self) -> HostMover:
        """What one thread of the host tier works with."""
        stream = CopyStream(self.device, self._clock)
        return HostMover(self.gpu_arena, self.host_arena, stream, self._floors[Tier.HOST], self._clock)

    def _nvme_mover(self, *, pinned: bool) -> NvmeMover:
        """What one thread of the nvme tier works with."""
        bounce = Arena(self.settings, self.settings.op_blocks, torch.device("cpu"), pinned=pinned)
        stream = CopyStream(self.device, self._clock)
        floor = self._floors[Tier.NVME]
        return NvmeMover(
            gpu=self.gpu_arena,
            host=self.host_arena,
            bounce=bounce,
            store=self.nvme.store,
            terms=self.nvme.terms,
            stream=stream,
            floor=floor,
            clock=self._clock,
        )

    def _build_core(self) -> None:
        """Everything that lives on the engine's thread."""
        settings, clock = self.settings, self._clock
        slots = {Tier.GPU: settings.gpu.slots, Tier.HOST: settings.host.slots, Tier.NVME: settings.nvme.slots}
        if settings.remote is not None:
            slots[Tier.REMOTE] = settings.remote.tier.slots
        holdings = Holdings()
        self.context = Context(
            settings=settings,
            clock=clock,
            ids=self._ids,
            emit=self._emit,
            pools={
                tier: TierPool(tier, count, PriorityLru(settings.ageing_point_ns), holdings) for tier, count in slots.items()
            },
            history=History(),
            estimates=Estimator(settings),
            pressure=Pressure(self._emit, self._ids),
            holdings=holdings,
            prefetches=PrefetchBook(self._emit, clock, settings.block_bytes),
        )
        self.nvme.take_in(self.context.nvme)
        self.transfers = Transfers(self.context, self._queues, pinned=self.host_arena.pinned)
        self._scheduler = Scheduler(settings.step, self._emit)
        self._journal = Journal(self._dir.journal_file, self._key)
        self.lifecycle = Lifecycle(self.context, self._scheduler, self.transfers, self._key, self._journal)
        erasers: dict[Tier, Eraser] = {Tier.NVME: self.nvme.store}
        if self.remote is not None:
            erasers[Tier.REMOTE] = self.remote.store
        self._invalidator = Invalidator(
            self.context, self.lifecycle.residency, self.lifecycle.namespaces, self.lifecycle.revoke, erasers
        )
        self.erasing = Erasing(self._invalidator, self.ask, settings.erase_retry_ns)
        arenas = {Tier.GPU: self.gpu_arena, Tier.HOST: self.host_arena}
        self.maintenance = Maintenance(self.context, self.lifecycle.residency, self.lifecycle.saving, arenas)
        executor = Executor(settings, self.device, self.gpu_arena, clock)
        self._stepping = Stepping(self.context, self.lifecycle.residency, executor, self.lifecycle)
        sampler = Sampler(self.context, self._queues, self.nvme.store.free_bytes, lambda: self.lifecycle.totals)
        self._core = Core(
            context=self.context,
            inbox=self._inbox,
            scheduler=self._scheduler,
            lifecycle=self.lifecycle,
            stepping=self._stepping,
            transfers=self.transfers,
            sampler=sampler,
            watch=QueueWatch(self.context.pressure, self._queues),
        )

    def _declare(self) -> None:
        """Tell what this engine is, before anything else; runs before its thread does."""
        self._emit.manifest_declared(manifest_text(self.settings, self.device, self.nvme.facts()))
        self._core.declare_tiers()
        if self._pin_failure is not None:
            self._emit.error(ErrorReason.PIN_FAILED, Tier.HOST, text=f"no host tier: {self._pin_failure}")
        self.lifecycle.namespaces.declare_stored(record.block.ns for record in self.nvme.store.recovery.records)
        self.nvme.declare(self._emit)
