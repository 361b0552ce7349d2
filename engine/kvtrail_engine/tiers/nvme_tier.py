"""The nvme tier as an engine holds it: its files, what they hold at the start, and what is told of that."""

from collections.abc import Callable
from pathlib import Path

import torch
from kvtrail_schema.absent import NO_U64
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier

from kvtrail_engine.clock import Clock
from kvtrail_engine.fingerprint import fingerprint_of
from kvtrail_engine.settings import EngineSettings
from kvtrail_engine.tiers.encryption import Cipher, read_secret
from kvtrail_engine.tiers.envelope import NO_KEY, Origin
from kvtrail_engine.tiers.keeping import WallTerms
from kvtrail_engine.tiers.pool import Copy, CopyState, TierPool
from kvtrail_engine.tiers.segments import SegmentStore


class NvmeTier:
    """Made before an engine has threads: opening the files reads all of them once.

    Raises:
        SettingsError: the key file is open to others, too short, or encryption is not installed.
        StorageError: the folder cannot be used.
    """

    def __init__(
        self,
        settings: EngineSettings,
        directory: Path,
        key: bytes,
        device: torch.device,
        *,
        wall_ns: Callable[[], int],
        clock: Clock,
    ) -> None:
        files = settings.nvme_files
        self._block_bytes = settings.block_bytes
        self._clock = clock
        self.terms = WallTerms(clock, wall_ns, files.expiry_ns)
        cipher = None if files.key_file is None else Cipher(read_secret(files.key_file))
        self.store = SegmentStore(
            directory,
            settings.nvme.slots + (settings.guest_slots if settings.nvme.slots else 0),
            settings.block_bytes,
            Origin(fingerprint_of(key, settings, device), NO_KEY if cipher is None else cipher.key_id),
            files,
            indexed=settings.nvme.slots,
            wall_ns=wall_ns,
            clock=clock,
            cipher=cipher,
        )

    def take_in(self, pool: TierPool) -> None:
        """Index the records that an earlier engine left."""
        now_ns = self._clock.now_ns()
        records = self.store.recovery.records
        pool.adopt(
            Copy(r.block, Tier.NVME, r.slot, CopyState.READY, now_ns, terms=self.terms.terms_of(r.keeping)) for r in records
        )

    def declare(self, emit: Emitter) -> None:
        """Tell what was taken in, the oldest first, and what was removed."""
        recovery = self.store.recovery
        for orphan in recovery.orphans:
            block = NO_U64 if orphan.block is None else orphan.block
            ns = NO_U64 if orphan.ns is None else orphan.ns
            emit.orphan_found(Tier.NVME, orphan.size_bytes, orphan.reason, block, ns)
            emit.orphan_removed(Tier.NVME, orphan.size_bytes, orphan.reason, block, ns)
        for record in recovery.records:
            block_ = record.block
            emit.block_created(
                block_.id,
                Tier.NVME,
                record.slot,
                block_.ns,
                NO_U64 if block_.parent is None else block_.parent,
                tokens=block_.tokens,
                token_start=block_.token_start,
                bytes=self._block_bytes,
                dtype=block_.dtype,
                priority=record.keeping.priority,
            )

    def facts(self) -> dict[str, str | int | bool]:
        """What the manifest says about the files."""
        return {
            "direct_io": self.store.io.note,
            "align_bytes": self.store.io.align_bytes,
            "record_bytes": self.store.geometry.record_bytes,
            "files": self.store.geometry.segments(self.store.slots),
            "checksum": "xxh3-64",
            "is_encrypted": self.store.origin.key_id != NO_KEY,
            **self.store.recovery.statistics._asdict(),
        }
