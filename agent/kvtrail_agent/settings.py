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
    five seconds at 50,000 events a second. Batches leave when `flush_rows` are there or `flush_interval_ms` have passed.
    """

    engine: Annotated[str, Meta(min_length=1, max_length=256)]
    transport: str
    rank: Annotated[int, Meta(ge=0, le=65534)] = 0
    token_file: Path | None = None
    ring_dir: Path = msgspec.field(default_factory=default_ring_dir)
    slot_count: int = 1 << 18
    text_bytes: int = 4 << 20
    flush_rows: Annotated[int, Meta(ge=1, le=1 << 20)] = 8192
    flush_interval_ms: Annotated[int, Meta(ge=1, le=60_000)] = 250
    heartbeat_interval_ms: Annotated[int, Meta(ge=10, le=60_000)] = 1000
    close_timeout_ms: Annotated[int, Meta(ge=0, le=600_000)] = 2000
