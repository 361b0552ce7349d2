"""The five ways of one engine, for comparison on the same requests: which tiers are on, and whether they are read."""

from dataclasses import replace
from enum import StrEnum

from kvtrail_engine.errors import SettingsError
from kvtrail_engine.settings import EngineSettings, RemoteSettings, RestorePolicy


class Mode(StrEnum):
    """Where a prefix comes from that has left the gpu."""

    GPU_ONLY = "gpu-only"
    """From nowhere: no tier below the gpu is on, and it is computed again."""
    HOST = "host"
    """From host, as far as its room goes; nothing lies below it."""
    NVME = "nvme"
    """From nvme: host only passes blocks on."""
    REMOTE = "remote"
    """From a remote: host only passes blocks on, and nvme is off."""
    RECOMPUTE = "recompute"
    """From the step: blocks are stored as with nvme, and never loaded."""


def mode_settings(base: EngineSettings, mode: Mode, remote: RemoteSettings | None = None) -> EngineSettings:
    """`base` with the tiers and the policy of a mode; floors, sizes and steps stay as they are. Pure.

    Raises:
        SettingsError: the mode is `remote`, and none is given.
    """
    off_nvme, passing = replace(base.nvme, slots=0), base.host.slots
    plain = replace(base, remote=None, nvme_low_slots=0, restore_policy=RestorePolicy.RESTORE)
    if mode is Mode.GPU_ONLY:
        return replace(plain, host=replace(base.host, slots=0), nvme=off_nvme, host_low_slots=0)
    if mode is Mode.HOST:
        return replace(plain, nvme=off_nvme, host_low_slots=0)
    if mode is Mode.REMOTE:
        if remote is None:
            message = "mode remote needs the settings of a remote"
            raise SettingsError(message)
        return replace(plain, nvme=off_nvme, remote=remote, host_low_slots=passing)
    policy = RestorePolicy.RECOMPUTE if mode is Mode.RECOMPUTE else RestorePolicy.RESTORE
    return replace(plain, host_low_slots=passing, restore_policy=policy)
