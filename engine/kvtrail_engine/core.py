"""The engine's thread: everything that decides and everything that tells runs here, one thing after the other."""

from collections import deque

from kvtrail_schema.enums import Tier
from kvtrail_schema.reasons import ErrorReason

from kvtrail_engine.backpressure import QueueWatch
from kvtrail_engine.context import Context
from kvtrail_engine.errors import DeviceLostError, EngineFailedError
from kvtrail_engine.inbox import Call, CancelAsked, Inbox, Message, OpEnded, OpStarted, Submitted
from kvtrail_engine.lifecycle import Lifecycle
from kvtrail_engine.sampling import Sampler
from kvtrail_engine.scheduler import Scheduler
from kvtrail_engine.stepping import Stepping
from kvtrail_engine.transfers import Transfers

POLL_NS = 100_000


class Core:
    """The loop. It sleeps on the inbox until something comes, the step's floor passes, or a sample is due.

    While a step is in flight arrivals are looked up and loads are queued, so that only compute waits for compute.
    """

    def __init__(
        self,
        *,
        context: Context,
        inbox: Inbox,
        scheduler: Scheduler,
        lifecycle: Lifecycle,
        stepping: Stepping,
        transfers: Transfers,
        sampler: Sampler,
        watch: QueueWatch,
    ) -> None:
        self._context = context
        self._inbox = inbox
        self._scheduler = scheduler
        self._lifecycle = lifecycle
        self._stepping = stepping
        self._transfers = transfers
        self._sampler = sampler
        self._watch = watch
        self._is_closing = False
        self._unhandled: deque[Message] = deque()
        self.failure: EngineFailedError | None = None

    def run(self) -> None:
        """The thread's life. A defect, or a lost device, is told as an `error` event and to whoever waits for a result."""
        try:
            while not self._has_ended():
                self._turn()
        except Exception as exc:
            reason = ErrorReason.DEVICE if isinstance(exc, DeviceLostError) else ErrorReason.INTERNAL
            self._context.emit.error(reason, text=repr(exc))
            self._fail(exc)
            raise

    def declare_tiers(self) -> None:
        """Tell which tiers there are, and how large; the places of a guest count: what lies there is told too."""
        guests = dict.fromkeys((Tier.HOST, Tier.NVME), self._context.settings.guest_slots)
        on = {tier: pool for tier, pool in self._context.pools.items() if pool.slots}
        for level, (tier, pool) in enumerate(on.items()):
            size_bytes = (pool.slots + guests.get(tier, 0)) * self._context.settings.block_bytes
            self._context.emit.tier_declared(tier, size_bytes, f"{tier.name.lower()} level {level}")

    def _fail(self, exc: Exception) -> None:
        """Tell whoever waits, also those that were submitted and not seen yet."""
        self.failure = EngineFailedError(f"the engine's thread ended by a defect: {exc!r}")
        self.failure.__cause__ = exc
        self._lifecycle.fail_all(self.failure)
        for message in (*self._unhandled, *self._inbox.drain()):
            if isinstance(message, Submitted):
                message.handle.future.set_exception(self.failure)

    def _turn(self) -> None:
        """Once round the loop."""
        self._unhandled.extend(self._inbox.drain())
        while self._unhandled:
            self._handle(self._unhandled.popleft())
        if self._stepping.is_done():
            self._stepping.finish()
            self._lifecycle.sweep_cancelled()
        self._watch.review()
        self._lifecycle.admission.review()
        self._lifecycle.prepare_waiting()
        self._lifecycle.prefetch_waiting()
        if self._stepping.in_flight is None and (plan := self._scheduler.plan()) is not None:
            self._stepping.start(plan)
        if self._sampler.sample_if_due():
            self._lifecycle.residency.sweep(self._context.clock.now_ns())
        if not self._has_ended():
            self._inbox.wait(self._sleep_ns())

    def _handle(self, message: Message) -> None:
        """One message, by its class."""
        match message:
            case Submitted(handle, arrived_ns):
                self._lifecycle.arrive(handle, arrived_ns)
            case CancelAsked(req):
                self._lifecycle.cancel(req)
            case OpStarted(transfer):
                self._transfers.started(transfer)
            case OpEnded(transfer):
                self._transfers.ended(transfer)
            case Call(run):
                run()
            case _:
                self._is_closing = True
                self._lifecycle.prefetcher.close()
                self._lifecycle.cancel_all()

    def _has_ended(self) -> bool:
        """Whether the engine was closed and nothing is on its way any more."""
        is_idle = self._scheduler.is_idle and self._stepping.in_flight is None
        return self._is_closing and is_idle and self._transfers.in_flight == 0

    def _sleep_ns(self) -> int:
        """How long nothing needs to be done unless a message comes."""
        now_ns = self._context.clock.now_ns()
        until_sample_ns = self._sampler.next_ns - now_ns
        until_prefetch_ns = self._lifecycle.prefetcher.sleep_ns(now_ns)
        if until_prefetch_ns is not None:
            until_sample_ns = min(until_sample_ns, until_prefetch_ns)
        flight = self._stepping.in_flight
        if flight is None:
            return until_sample_ns
        return min(until_sample_ns, max(flight.deadline_ns - now_ns, POLL_NS if not self._stepping.is_done() else 0))
