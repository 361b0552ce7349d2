"""How much is taken in at a time: everything, or half of what was in work when the disk's queue became full."""

from kvtrail_schema.reasons import BackpressureReason

from kvtrail_engine.context import Context
from kvtrail_engine.scheduler import Scheduler
from kvtrail_engine.sequence import Sequence


class Admission:
    """Runs on the engine's thread: a sum over what is in work, and only while the limit is down."""

    def __init__(self, context: Context, scheduler: Scheduler) -> None:
        self._context = context
        self._scheduler = scheduler

    def review(self) -> None:
        """Lower the limit when the disk's queue begins to push back, lift it when that ends."""
        pressure, settings = self._context.pressure, self._context.settings
        is_full = pressure.is_on(BackpressureReason.DISK_QUEUE)
        if is_full == (pressure.admission_tokens is not None):
            return
        lowered = max(self._scheduler.active_tokens() // 2, settings.block_tokens)
        pressure.limit_admission(lowered if is_full else None, settings.gpu.slots * settings.block_tokens)

    def admits(self, sequence: Sequence) -> bool:
        """Whether a request may be taken in now. An engine with nothing in work always takes one, so that none starves."""
        limit = self._context.pressure.admission_tokens
        if limit is None or self._scheduler.active == 0:
            return True
        return self._scheduler.active_tokens() + sequence.prompt_tokens <= limit
