"""What `kvtrail bench engine` answers; loads no tensors."""

import msgspec


class Beside(msgspec.Struct, frozen=True):
    """A figure of ours beside its peer's from the same run: medians of the rounds, and the median of the rounds' ratios."""

    ours: float
    peer: float
    ratio: float
    """Ours over the peer's."""
    ratio_of_best: float
    """Our best round over the peer's: what is left of a difference when other work on the machine is out of the way."""


class EngineBench(msgspec.Struct, frozen=True):
    """The engine's own machinery on one machine; figures of a CPU say nothing about a GPU.

    `nvme_*_gb_per_s` are payload bytes by `queue_depth` threads through the tier's store, with headers, checksums and
    checks, beside a plain loop of `preadv` and `pwritev` of as many bytes at the same offsets of the same file.
    `host_copy_gb_per_s` is an op of the host tier beside `torch.Tensor.copy_` of the same blocks. `small_*_us` are a record
    in a segment (ours) beside a file of its own (peer).
    """

    nvme_read_gb_per_s: Beside
    nvme_write_gb_per_s: Beside
    host_copy_gb_per_s: Beside
    small_write_us: Beside
    small_read_us: Beside
    small_start_us: Beside
    """A record's share of a start: read and verified from a segment, beside listed, opened and read as a file."""
    step_us: float
    """One step of a busy engine with a tiny model and no floors, from its start to its end."""
    step_compute_us: float
    """Of it, what the device computed."""
    step_overhead_us: float
    """The rest: bookkeeping, upload, sampling."""
    step_overhead_ratio: float
    """The rest over the compute."""
    queue_depth: int
    block_bytes: int
    op_blocks: int
    total_bytes: int
    direct_io: str
    rounds: int
    load_per_cpu: float
    """Processes that wanted a processor in the minute before, over the processors there are: above 1 the machine was busy."""
    device: str = "cpu-emulated"
    schema: int = 1
