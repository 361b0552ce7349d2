"""What things cost lately: medians over long windows, so that a burst does not turn the policy over."""

from collections import deque
from collections.abc import Mapping
from statistics import median_low

from kvtrail_schema.enums import Tier

from kvtrail_engine.settings import EngineSettings
from kvtrail_engine.tiers.transfer import Transfer, TransferOutcome

REFRESH_EVERY = 16


class RunningMedian:
    """The median of the last `window` values; recomputed once in a while, so that asking costs nothing."""

    def __init__(self, window: int, prior: int) -> None:
        self._values: deque[int] = deque(maxlen=window)
        self._since = 0
        self.value = prior

    def add(self, value: int) -> None:
        """One more observation. The first ones count at once, later ones in groups."""
        self._values.append(value)
        self._since += 1
        if self._since >= REFRESH_EVERY or len(self._values) < REFRESH_EVERY:
            self.value = median_low(self._values)
            self._since = 0


class LoadCosts:
    """What loads from one tier cost: their wait, their time in service, and their size."""

    def __init__(self, window: int, prior_ns: int) -> None:
        self.queue_ns = RunningMedian(window, 0)
        self.service_ns = RunningMedian(window, prior_ns)

    @property
    def op_ns(self) -> int:
        """What one op takes from being queued to its end."""
        return self.queue_ns.value + self.service_ns.value


class Estimator:
    """P50s of what was observed; before anything was, the floors. The engine's thread only."""

    def __init__(self, settings: EngineSettings) -> None:
        window = settings.estimate_window
        self._loads = {
            Tier.HOST: LoadCosts(window, settings.host.floor.cost_ns(settings.block_bytes, write=False)),
            Tier.NVME: LoadCosts(window, settings.nvme.floor.cost_ns(settings.block_bytes, write=False)),
        }
        if settings.remote is not None:
            floor = settings.remote.tier.floor
            self._loads[Tier.REMOTE] = LoadCosts(window, floor.cost_ns(settings.block_bytes, write=False))
        self._token_ns = RunningMedian(window, max(settings.step.floor_prefill_token_ns, 1_000))
        self._op_blocks = settings.op_blocks

    def observe_load(self, transfer: Transfer) -> None:
        """A load into the gpu ended."""
        costs = self._loads.get(transfer.src)
        if costs is not None and transfer.outcome is TransferOutcome.DONE:
            costs.queue_ns.add(transfer.started_ns - transfer.queued_ns)
            costs.service_ns.add(transfer.ended_ns - transfer.started_ns)

    def observe_step(self, duration_ns: int, prefill_tokens: int) -> None:
        """A step ended; those that computed prompts tell what a prompt's token costs."""
        if prefill_tokens:
            self._token_ns.add(duration_ns // prefill_tokens)

    def restore_ns(self, blocks: Mapping[Tier, int]) -> int:
        """Loading so many blocks from each tier: the ops of a tier one after the other, the tiers side by side."""
        return max((self._loads[tier].op_ns * -(-count // self._op_blocks) for tier, count in blocks.items()), default=0)

    def recompute_ns(self, tokens: int, ahead_tokens: int) -> int:
        """Computing so many tokens once those ahead are done."""
        return (tokens + ahead_tokens) * self._token_ns.value

    def keep_ns(self, evictions: int) -> int:
        """What the room costs others: each evicted block may have to come back from host."""
        return self._loads[Tier.HOST].op_ns * evictions // self._op_blocks
