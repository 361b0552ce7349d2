"""How an engine is wired to its remote tier; loaded only by engines that have one, since it loads the Redis client."""

import secrets
from typing import TYPE_CHECKING

import torch
from kvtrail_schema.enums import Tier
from kvtrail_schema.reasons import BackpressureReason

from kvtrail_engine.runtime.arena import Arena
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.settings import RemoteSettings
from kvtrail_engine.tiers.keeping import WallTerms
from kvtrail_engine.tiers.remote import RemoteMover
from kvtrail_engine.tiers.remote_store import RemoteStore
from kvtrail_engine.tiers.remote_tier import RemoteTier
from kvtrail_engine.tiers.segments import Get

if TYPE_CHECKING:
    from kvtrail_engine.engine import Engine


class RemoteReports:
    """Tells the engine's thread whether the remote is there; called on the thread that probes it."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    def remote_lost(self) -> None:
        """What lies there is computed again from now on, or its requests are rejected."""
        self._engine.call_on_thread(lambda: self._engine.context.pressure.begin(BackpressureReason.REMOTE_LOST))

    def remote_back(self, *, has_kept_all: bool) -> None:
        """Read from it again; a server that began anew has nothing any more. What is owed to be erased there is tried now."""

        def take_back() -> None:
            self._engine.context.pressure.end(BackpressureReason.REMOTE_LOST)
            if not has_kept_all:
                self._engine.maintenance.clear(Tier.REMOTE)

        self._engine.call_on_thread(take_back)
        self._engine.erasing.hurry()


def connect_remote(engine: "Engine", given: RemoteSettings, terms: WallTerms) -> RemoteTier:
    """The remote tier of an engine, asked for the first time. Blocks for a timeout at most.

    Raises:
        SettingsError: address, password file or key file cannot be used, or the server refuses us.
    """
    fingerprint = engine.nvme.store.origin.fingerprint
    store = RemoteStore(given, engine.settings.block_bytes, fingerprint, secrets.token_hex(8), terms.wall_ns)
    return RemoteTier(given, store, terms, RemoteReports(engine))


def remote_mover(engine: "Engine", remote: RemoteTier) -> RemoteMover:
    """What one thread of the remote tier works with."""
    nvme, terms = engine.nvme.store, remote.terms
    frames = nvme.frames(1)
    pinned = engine.host_arena.pinned
    return RemoteMover(
        gpu=engine.gpu_arena,
        host=engine.host_arena,
        bounce=Arena(engine.settings, engine.settings.op_blocks, torch.device("cpu"), pinned=pinned),
        store=remote.store,
        breaker=remote.breaker,
        read_nvme=lambda row, into: nvme.read_one(Get(row.source.slot, row.block, into), frames),
        terms=terms,
        stream=CopyStream(engine.device, terms.clock),
        floor=engine.floor_of(Tier.REMOTE),
        clock=terms.clock,
    )
