"""Everything about an engine that can be set, with units in the names; frozen, checked once at the engine's start."""

from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from kvtrail_schema.enums import Tier

from kvtrail_engine.errors import SettingsError
from kvtrail_engine.nvme_settings import NvmeSettings

MIB = 1024 * 1024


class DeviceChoice(Enum):
    """Where the model computes; `AUTO` takes CUDA where there is a device."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Pinning(Enum):
    """Whether memory that is copied to and from the device is pinned. Where it cannot be, there is no host tier."""

    AUTO = "auto"
    """With CUDA."""
    ALWAYS = "always"
    NEVER = "never"
    """Copies go through pageable memory, slower, and wait for the processor."""


class RestorePolicy(Enum):
    """How it is chosen between loading a stored block and computing it again."""

    AUTO = "auto"
    """By live estimates, per request."""
    RESTORE = "restore"
    """Load whatever is stored."""
    RECOMPUTE = "recompute"
    """Never load."""


class LostPolicy(Enum):
    """What becomes of a request whose prefix lies on a remote that is lost; it never waits for it to come back."""

    RECOMPUTE = "recompute"
    """It is computed again."""
    REJECT = "reject"
    """The request is rejected, with reason `backpressure`: for engines that must not take the load of a cold cache."""


@dataclass(frozen=True, slots=True)
class FloorSettings:
    """The least time that an op takes, as a deadline over the real copy: latency plus bytes at a bandwidth.

    Without it a laptop's page cache makes its nvme as fast as memory. All zero: no floor.
    """

    read_latency_ns: int = 0
    write_latency_ns: int = 0
    bytes_per_s: int = 0

    def cost_ns(self, size_bytes: int, *, write: bool) -> int:
        """The floor of one op of this size."""
        latency_ns = self.write_latency_ns if write else self.read_latency_ns
        return latency_ns + (size_bytes * 1_000_000_000 // self.bytes_per_s if self.bytes_per_s else 0)


@dataclass(frozen=True, slots=True)
class TierSettings:
    """One tier: its room in blocks, its own threads, the bound of its queue in ops, and its floor.

    No slots: the tier is off. What leaves the tier above it goes to the next one that is on.
    """

    slots: int
    workers: int = 1
    queue_ops: int = 2048
    floor: FloorSettings = field(default_factory=FloorSettings)


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """A Redis server as the slowest tier. Every call to it ends within `timeout_ns` for each answer it waits for.

    The password stands in a file of mode 0600, never in the address. Records expire by themselves after `expiry_ns`.
    """

    url: str
    """`redis://host:port/database`, or `rediss://` for TLS."""
    tier: TierSettings = field(default_factory=lambda: TierSettings(slots=8192, workers=2))
    username: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    """Certificates that the server's is checked against; absent: the system's."""
    key_file: Path | None = None
    """A file of mode 0600 with at least 32 random bytes: records are encrypted before they leave, as on nvme."""
    timeout_ns: int = 250_000_000
    expiry_ns: int = 3_600_000_000_000
    failures_to_open: int = 3
    """So many failures in a row, and the remote counts as lost."""
    cooldown_ns: int = 500_000_000
    """A lost remote is asked again after this time, then after twice as long, up to sixteen times as long."""
    on_lost: LostPolicy = LostPolicy.RECOMPUTE


@dataclass(frozen=True, slots=True)
class StepSettings:
    """One scheduler iteration: what fits into it, and the least time that it takes (a deadline over the real compute)."""

    budget_tokens: int = 256
    prompt_tokens: int | None = None
    """So many tokens of one prompt are computed in a step at most; None: all that the budget leaves. Whoever comes after a long
    prompt then computes beside it, and does not wait until it is through."""
    max_sequences: int = 32
    max_waiting: int = 16_384
    """So many requests may wait for a place; one more is rejected with reason `backpressure`."""
    floor_ns: int = 0
    floor_prefill_token_ns: int = 0
    floor_decode_token_ns: int = 0

    def most_of_a_prompt(self) -> int:
        """How many tokens of one prompt a step may compute."""
        return self.budget_tokens if self.prompt_tokens is None else self.prompt_tokens

    def cost_ns(self, prefill_tokens: int, decode_tokens: int) -> int:
        """The floor of a step with these totals."""
        return self.floor_ns + prefill_tokens * self.floor_prefill_token_ns + decode_tokens * self.floor_decode_token_ns


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The shape of the transformer. Weights follow from `EngineSettings.seed` alone; all of it is fp32."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    hidden: int = 128
    vocabulary: int = 1024
    max_positions: int = 8192

    @property
    def head_width(self) -> int:
        """Width of one attention head."""
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        """Width of the keys (and of the values) of one token in one layer."""
        return self.kv_heads * self.head_width


class Quantile(Enum):
    """Which of the costs lately an estimate is made of."""

    P50 = "p50"
    """What is usual."""
    P95 = "p95"
    """What is rarely exceeded: for engines that would rather compute than wait for a slow read."""


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """How costs are estimated."""

    quantile: Quantile = Quantile.P50
    is_by_size: bool = True
    """Ops of different sizes are told apart; off: one figure a tier, whatever the size of its ops."""


@dataclass(frozen=True, slots=True)
class PrefetchSettings:
    """Fetching ahead of need."""

    window: int = 0
    """The most blocks that are fetched at one look at a request or hint, whatever time and bandwidth would allow; 0: none."""
    byte_cap: int = 64 * MIB
    """The most that may be fetched, or on its way, and not used yet."""
    lookahead: int = 4
    """So many of the requests that wait are fetched for."""
    interval_ns: int = 2_000_000
    least_wait_ns: int = 20_000_000
    """A request that waits for its place is taken to wait at least so long."""
    deadline_ns: int = 2_000_000_000
    """What a waiting request's prefix may take; later it is called off."""
    slack_ns: int = 200_000_000
    """What is hinted at may come so much later than it was said to be used."""
    hint_grace_ns: int = 10_000_000_000
    """A session that has not gone on so long after it should have is given up."""
    gpu_reserve_slots: int = 16
    """So many gpu slots are left to requests; what does not fit beside them goes to host."""
    host_share: float = 0.5
    """The most of the host's slots that are fetched into ahead and not used yet: those stay until they are used, or late."""

    @property
    def is_on(self) -> bool:
        """Whether anything is fetched ahead."""
        return self.window > 0


@dataclass(frozen=True, slots=True)
class TenantQuota:
    """The most slots of a tier that one tenant may hold, so that high priority starves nobody.

    Without a name: each tenant that has no quota of its own there.
    """

    tier: Tier
    slots: int
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """One engine. `data_dir` holds the segment files of nvme and the key that block ids are hashed with."""

    data_dir: Path
    seed: int = 0
    rank: int = 0
    device: DeviceChoice = DeviceChoice.AUTO
    block_tokens: int = 32
    model: ModelSettings = field(default_factory=ModelSettings)
    gpu: TierSettings = field(default_factory=lambda: TierSettings(slots=512))
    host: TierSettings = field(default_factory=lambda: TierSettings(slots=1024))
    nvme: TierSettings = field(default_factory=lambda: TierSettings(slots=8192, workers=4))
    nvme_files: NvmeSettings = field(default_factory=NvmeSettings)
    remote: RemoteSettings | None = None
    step: StepSettings = field(default_factory=StepSettings)
    restore_policy: RestorePolicy = RestorePolicy.AUTO
    estimates: EstimateSettings = field(default_factory=EstimateSettings)
    estimate_window: int = 1024
    """So many of the last ops (and steps) make an estimate's P50: long, so that one burst does not turn the policy."""
    op_blocks: int = 16
    """The most blocks in one op."""
    gpu_low_slots: int = 0
    """So many gpu slots are kept free of idle copies, as room for prompts to come."""
    host_low_slots: int = 64
    """With fewer free host slots than this, the least recently used host blocks are demoted to nvme (else to remote)."""
    nvme_low_slots: int = 0
    """With fewer free nvme slots than this, the least recently used nvme blocks are demoted to remote, where there is one."""
    pinning: Pinning = Pinning.AUTO
    guest_slots: int = 0
    """Slots on host and on nvme beside the pools', for a tenant that a drill brings with a quota of its own."""
    sample_interval_ns: int = 250_000_000
    ageing_point_ns: int = 0
    """One point of retention priority is worth so much idle time: with it, old high priority falls. 0: nothing ages."""
    keep_lookahead: int = 8
    """So many copies beside the least recently used are looked at when the gpu needs room: those cheap to have again leave."""
    prefetch: PrefetchSettings = field(default_factory=PrefetchSettings)
    erase_retry_ns: int = 500_000_000
    """Invalidated data that could not be erased is tried again after this time, then after longer, up to sixteen times it."""
    tenant_quotas: tuple[TenantQuota, ...] = ()

    @property
    def block_bytes(self) -> int:
        """Bytes of the KV of one block: keys and values of every layer, fp32."""
        return self.model.layers * 2 * self.block_tokens * self.model.kv_width * 4

    def workers_of(self, tier: Tier) -> int:
        """The threads of a tier below the gpu."""
        given = {Tier.HOST: self.host, Tier.NVME: self.nvme}
        if self.remote is not None:
            given[Tier.REMOTE] = self.remote.tier
        return given[tier].workers

    def quota_slots(self, tier: Tier, tenant: str) -> int | None:
        """The most slots of a tier that a tenant may hold; None: as many as there are."""
        found = {quota.tenant: quota.slots for quota in self.tenant_quotas if quota.tier is tier}
        return found.get(tenant, found.get(None))

    def check(self) -> None:
        """Raise `SettingsError` for what cannot work, before anything is allocated."""
        wrong = [problem for problem, is_wrong in self._problems().items() if is_wrong]
        if wrong:
            message = "; ".join(wrong)
            raise SettingsError(message)

    def _problems(self) -> dict[str, bool]:
        """Each rule in words, and whether it is broken."""
        model, ahead = self.model, self.prefetch
        tiers = (self.gpu, self.host, self.nvme, *(() if self.remote is None else (self.remote.tier,)))
        return {
            "block_tokens must be positive": self.block_tokens < 1,
            "step.budget_tokens must hold at least one block": self.step.budget_tokens < self.block_tokens,
            "step.prompt_tokens must hold at least one block": self.block_tokens
            > (self.step.prompt_tokens or self.block_tokens),
            "step.max_sequences and step.max_waiting must be positive": min(self.step.max_sequences, self.step.max_waiting) < 1,
            "model.width must be heads times an even head width": bool(model.width % model.heads or model.head_width % 2),
            "model.heads must be a multiple of model.kv_heads": bool(model.heads % model.kv_heads),
            "the gpu needs a slot, and each tier workers and queue_ops of at least 1": self.gpu.slots < 1
            or any(min(t.slots, t.workers - 1, t.queue_ops - 1) < 0 for t in tiers),
            "nvme and remote are filled through host: host.slots must be positive where they have any": self.host.slots < 1
            and any(t.slots for t in tiers[2:]),
            "host_low_slots must not exceed host.slots": self.host_low_slots > self.host.slots > 0,
            "nvme_low_slots must not exceed nvme.slots": self.nvme_low_slots > self.nvme.slots,
            "gpu_low_slots must be below gpu.slots": self.gpu_low_slots >= self.gpu.slots,
            "op_blocks must be positive": self.op_blocks < 1,
            "ageing_point_ns must not be negative": self.ageing_point_ns < 0,
            "keep_lookahead must not be negative": self.keep_lookahead < 0,
            "erase_retry_ns must be positive": self.erase_retry_ns < 1,
            "prefetch.byte_cap, lookahead and interval_ns must be positive, window not negative": (
                min(ahead.window + 1, ahead.byte_cap, ahead.lookahead, ahead.interval_ns) < 1
            ),
            "prefetch.host_share must be from 0 to 1": not 0 <= ahead.host_share <= 1,
            "each tenant quota must be positive": any(quota.slots < 1 for quota in self.tenant_quotas),
        }

    def without_host(self) -> "EngineSettings":
        """The same engine without a host tier; what lies on nvme is still read, and nothing more is stored."""
        return replace(self, host=replace(self.host, slots=0), host_low_slots=0, guest_slots=0, pinning=Pinning.NEVER)

    def floors_text(self) -> str:
        """One line that says every floor; it belongs beside every result."""
        step = self.step
        parts = [
            f"{name} read {t.floor.read_latency_ns / 1e6:g} ms, write {t.floor.write_latency_ns / 1e6:g} ms, "
            f"{t.floor.bytes_per_s / MIB:g} MiB/s"
            for name, t in self._floored()
        ]
        parts.append(
            f"step {step.floor_ns / 1e6:g} ms + {step.floor_prefill_token_ns / 1e3:g} us a prefill token "
            f"+ {step.floor_decode_token_ns / 1e3:g} us a decode token"
        )
        return "floors: " + "; ".join(parts)

    def _floored(self) -> list[tuple[str, TierSettings]]:
        """The tiers below the gpu that are on, by name."""
        named = [("host", self.host), ("nvme", self.nvme)]
        if self.remote is not None:
            named.append(("remote", self.remote.tier))
        return [(name, tier) for name, tier in named if tier.slots]
