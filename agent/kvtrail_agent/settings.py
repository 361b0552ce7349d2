"""What an operator sets of the agent: one struct, checked once, handed to the shipper as a file."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from kvtrail_agent.errors import SettingsInvalid


def default_ring_dir() -> Path:
    """Shared memory where the system has it: the ring then costs no disk writes. One directory a user."""
    base = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")  # noqa: S108 - made 0700 before it is used
    return base / f"kvtrail-{os.getuid()}"


def default_spool_dir() -> Path:
    """Where programs of this user keep their state on disk: `$XDG_STATE_HOME/kvtrail/spool`, or below `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = os.environ.get("HOME", "") or f"/var/tmp/kvtrail-{os.getuid()}"  # noqa: S108 - made 0700 before it is used
    return Path(state or Path(home) / ".local" / "state") / "kvtrail" / "spool"


class ShipperConfig(msgspec.Struct, frozen=True):
    """What the shipper is told by the recorder that starts it."""

    ring: Path
    settings: "AgentSettings"


def encode_config(config: ShipperConfig) -> bytes:
    """A configuration as the file that the shipper reads."""
    return msgspec.json.encode(config, enc_hook=str)


def decode_config(raw: bytes) -> ShipperConfig:
    """The configuration in a file."""
    return msgspec.json.decode(raw, type=ShipperConfig, dec_hook=lambda kind, value: kind(value))


def check_settings(settings: "AgentSettings") -> None:
    """See that each setting is within its bounds, before anything is made.

    Raises:
        SettingsInvalid: one is not; the message names it.
    """
    try:
        msgspec.json.decode(
            msgspec.json.encode(settings, enc_hook=str), type=AgentSettings, dec_hook=lambda kind, value: kind(value)
        )
    except msgspec.MsgspecError as error:
        message = f"settings of the agent: {error}"
        raise SettingsInvalid(message) from error


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one recorder and its shipper.

    A ring of `slot_count` records of 128 bytes holds what the shipper has not yet delivered: 262,144 records are 32 MiB,
    five seconds at 50,000 events a second. What cannot leave waits in the spool: 1 GiB is about
    100 million events. Batches leave when `flush_rows` are there or `flush_interval_ms` have passed.
    """

    engine: Annotated[str, Meta(min_length=1, max_length=256, description="the operator's name for this serving instance")]
    transport: Annotated[
        str, Meta(description="http(s)://host:port, file:///directory, or kafka://host:port[,host:port]/topic")
    ]
    rank: Annotated[int, Meta(ge=0, le=65534, description="data- or tensor-parallel rank inside the engine")] = 0
    token_file: Annotated[Path | None, Meta(description="file (0600) with the token for sending events")] = None
    kafka_options_file: Annotated[Path | None, Meta(description="file (0600, TOML) with TLS and SASL options of Kafka")] = None
    ring_dir: Annotated[Path, Meta(description="where rings lie, closed to others; shared memory by default")] = msgspec.field(
        default_factory=default_ring_dir
    )
    spool_dir: Annotated[
        Path, Meta(description="where events wait on disk while the transport is down or slow, closed to others")
    ] = msgspec.field(default_factory=default_spool_dir)
    spool_bytes: Annotated[
        int,
        Meta(ge=0, description="the most that all spools in spool_dir take together; then the newest is dropped; 0: no spool"),
    ] = 1 << 30
    slot_count: Annotated[int, Meta(description="records that the ring holds, a power of two; 128 bytes each")] = 1 << 18
    text_bytes: Annotated[int, Meta(description="room for texts under way")] = 4 << 20
    flush_rows: Annotated[int, Meta(ge=1, le=1 << 20, description="a batch of so many events leaves at once")] = 8192
    flush_interval_ms: Annotated[int, Meta(ge=1, le=60_000, description="a batch that is not full leaves after this")] = 250
    heartbeat_interval_ms: Annotated[
        int, Meta(ge=10, le=60_000, description="how often recorder and shipper say that they live")
    ] = 1000
    close_timeout_ms: Annotated[int, Meta(ge=0, le=600_000, description="how long close() waits for delivery")] = 2000
    nvml_interval_ms: Annotated[
        int, Meta(ge=0, le=600_000, description="how often GPUs are sampled by NVML, in a thread of its own; 0: never")
    ] = 0


def setting_docs() -> list[tuple[str, str, str]]:
    """The reference: name, default and meaning of each setting, in the order of the struct."""
    return [(field.name, _default(field), _description(field.type)) for field in msgspec.structs.fields(AgentSettings)]


def _default(field: msgspec.structs.FieldInfo) -> str:
    """A default as people read it."""
    if field.name == "ring_dir":
        return "shared memory, one directory a user"
    if field.name == "spool_dir":
        return "$XDG_STATE_HOME/kvtrail/spool, or ~/.local/state/kvtrail/spool"
    return "" if field.required else str(field.default)


def _description(kind: object) -> str:
    """The help text of a setting's type."""
    return next((part.description for part in getattr(kind, "__metadata__", ()) if part.description), "")
