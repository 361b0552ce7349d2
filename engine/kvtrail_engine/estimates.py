"""What things cost lately: P50 and P95 over long windows, by tier and size, so that a burst does not turn the policy over."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from kvtrail_schema.enums import Tier

from kvtrail_engine.settings import EngineSettings, EstimateSettings, FloorSettings, Quantile
from kvtrail_engine.tiers.transfer import Transfer, TransferOutcome

REFRESH_EVERY = 16
ENOUGH = 8
"""So many ops of a size must have been seen before they speak for it."""


class RunningMedian:
    """The P50 and the P95 of the last `window` values; recomputed once in a while, so that asking costs nothing."""

    def __init__(self, window: int, prior: int) -> None:
        self._values: deque[int] = deque(maxlen=window)
        self._since = 0
        self.value = prior
        self.p95 = prior

    @property
    def count(self) -> int:
        """How many values it is made of."""
        return len(self._values)

    def at(self, quantile: Quantile) -> int:
        """One of the two."""
        return self.value if quantile is Quantile.P50 else self.p95

    def add(self, value: int) -> None:
        """One more observation. The first ones count at once, later ones in groups."""
        self._values.append(value)
        self._since += 1
        if self._since >= REFRESH_EVERY or len(self._values) < REFRESH_EVERY:
            ordered = sorted(self._values)
            self.value = ordered[(len(ordered) - 1) // 2]
            self.p95 = ordered[(len(ordered) - 1) * 95 // 100]
            self._since = 0


class CostStatistics(NamedTuple):
    """What loads from one tier cost lately."""

    loads: int
    """How many of them were seen, of those that the window holds."""
    queue_p50_ns: int
    queue_p95_ns: int
    service_p50_ns: int
    service_p95_ns: int


class LoadCosts:
    """What loads from one tier cost: their wait, and their time in service by size. Sizes are powers of two of blocks."""

    def __init__(self, settings: EstimateSettings, window: int, floor: FloorSettings, block_bytes: int) -> None:
        self._settings = settings
        self._window = window
        self._floor = floor
        self._block_bytes = block_bytes
        self._queue_ns = RunningMedian(window, 0)
        self._service_ns = RunningMedian(window, floor.cost_ns(block_bytes, write=False))
        self._by_size: dict[int, RunningMedian] = {}

    def observe(self, transfer: Transfer) -> None:
        """A load has ended well."""
        service_ns = transfer.ended_ns - transfer.started_ns
        self._queue_ns.add(transfer.started_ns - transfer.queued_ns)
        self._service_ns.add(service_ns)
        size = _size_class(len(transfer.rows))
        self._by_size.setdefault(size, RunningMedian(self._window, 0)).add(service_ns)

    def op_ns(self, blocks: int) -> int:
        """What one op of so many blocks takes from being queued to its end."""
        return self._queue_ns.at(self._settings.quantile) + self.service_ns(blocks)

    def service_ns(self, blocks: int) -> int:
        """Its time in service: by ops of its size if there were enough, else by all, else by the floor."""
        quantile, known = self._settings.quantile, self._by_size.get(_size_class(blocks))
        if not self._settings.is_by_size:
            return self._service_ns.at(quantile)
        if known is not None and known.count >= ENOUGH:
            return known.at(quantile)
        if self._service_ns.count:
            return self._service_ns.at(quantile)
        return self._floor.cost_ns(blocks * self._block_bytes, write=False)

    def statistics(self) -> CostStatistics:
        """All sizes together."""
        queue, service = self._queue_ns, self._service_ns
        return CostStatistics(service.count, queue.value, queue.p95, service.value, service.p95)


class Estimator:
    """Quantiles of what was observed; before anything was, the floors. The engine's thread only."""

    def __init__(self, settings: EngineSettings) -> None:
        tiers = {Tier.HOST: settings.host, Tier.NVME: settings.nvme}
        if settings.remote is not None:
            tiers[Tier.REMOTE] = settings.remote.tier
        window, given = settings.estimate_window, settings.estimates
        self._loads = {tier: LoadCosts(given, window, one.floor, settings.block_bytes) for tier, one in tiers.items()}
        self._token_ns = RunningMedian(window, max(settings.step.floor_prefill_token_ns, 1_000))
        self._quantile = given.quantile
        self._op_blocks = settings.op_blocks
        self._block_tokens = settings.block_tokens

    def observe_load(self, transfer: Transfer) -> None:
        """A load ended."""
        costs = self._loads.get(transfer.src)
        if costs is not None and transfer.outcome is TransferOutcome.DONE:
            costs.observe(transfer)

    def observe_step(self, duration_ns: int, prefill_tokens: int) -> None:
        """A step ended; those that computed prompts tell what a prompt's token costs."""
        if prefill_tokens:
            self._token_ns.add(duration_ns // prefill_tokens)

    def restore_ns(self, blocks: Mapping[Tier, int]) -> int:
        """Loading so many blocks from each tier: the ops of a tier one after the other, the tiers side by side."""
        return max((self._tier_ns(self._loads[tier], count) for tier, count in blocks.items()), default=0)

    def recompute_ns(self, tokens: int, ahead_tokens: int) -> int:
        """Computing so many tokens once those ahead are done."""
        return (tokens + ahead_tokens) * self._token_ns.at(self._quantile)

    def keep_ns(self, restorable: Mapping[Tier, int], lost_blocks: int) -> int:
        """What the room costs others, who may want the evicted blocks again: those that a slower tier has are restored, the
        others computed.
        """
        return self.restore_ns(restorable) + self.recompute_ns(lost_blocks * self._block_tokens, 0)

    def block_ns(self, tier: Tier) -> int:
        """The time in service of one block from a tier within a full op: the inverse of its bandwidth."""
        return max(self._loads[tier].service_ns(self._op_blocks) // self._op_blocks, 1)

    def wait_ns(self, tier: Tier, ops: int, workers: int) -> int:
        """How long a newcomer waits behind so many ops that a tier's threads share."""
        return ops * self._loads[tier].service_ns(self._op_blocks) // max(workers, 1)

    def statistics(self) -> dict[Tier, CostStatistics]:
        """What loads cost lately, by the tier that they came from."""
        return {tier: costs.statistics() for tier, costs in self._loads.items()}

    def _tier_ns(self, costs: LoadCosts, blocks: int) -> int:
        """So many blocks from one tier, in ops of the usual size and one for the rest."""
        full, rest = divmod(blocks, self._op_blocks)
        return full * costs.op_ns(self._op_blocks) + (costs.op_ns(rest) if rest else 0)


def _size_class(blocks: int) -> int:
    """1, 2, 3 to 4, 5 to 8, 9 to 16 …"""
    return (blocks - 1).bit_length()
