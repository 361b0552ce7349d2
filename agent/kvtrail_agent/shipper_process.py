"""The process of a shipper: `python -m kvtrail_agent.shipper_process CONFIG`. One a ring, which a lock beside it keeps so."""

import os
import signal
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import FrameType

from kvtrail_schema.clock import SystemClock

from kvtrail_agent.courier import ThreadCourier
from kvtrail_agent.recovery import send_orphan
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.settings import AgentSettings, ShipperConfig, decode_config
from kvtrail_agent.shipper import Ended, Shipper
from kvtrail_agent.shipper_lock import only_shipper, remove_ring
from kvtrail_agent.spool import Spool
from kvtrail_agent.spool_leftovers import Leftovers
from kvtrail_agent.transports import Transport, open_transport


def ship(config: ShipperConfig) -> bool:
    """Deliver a ring to its end, in this process. Says whether all is delivered.

    The ring's file is gone then; it is gone too when its rest lies in the spool.
    """
    with only_shipper(config.ring) as alone:
        if not alone:
            return False
        settings = config.settings
        if not config.ring.exists():
            remove_ring(config.ring)  # settled by another one; what was made for this one goes too
            directory = settings.spool_dir / config.ring.stem
            return not directory.exists() or send_orphan(directory, _courier(settings)[1], clock=SystemClock())
        return _ship_ring(config)


def _ship_ring(config: ShipperConfig) -> bool:
    """Deliver a ring that is there, with its spool and, in between, what others left behind."""
    settings = config.settings
    transport, courier = _courier(settings)
    spool = open_spool(config.ring, settings)
    leftovers = Leftovers(settings.spool_dir) if settings.spool_bytes else None
    ring = open_ring(config.ring)
    shipper = Shipper(ring, courier, settings, clock=SystemClock(), spool=spool, leftovers=leftovers, seed=os.getpid())

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        shipper.halt()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = shipper.run()
    for kept in (spool, leftovers):
        if kept is not None:
            kept.close()
    if ended is not Ended.HELD:
        remove_ring(config.ring)
    if ended is Ended.DELIVERED:
        transport.close()
    return ended is Ended.DELIVERED


def _courier(settings: AgentSettings) -> tuple[Transport, ThreadCourier]:
    """The transport of the settings, and the thread that waits for it."""
    transport = open_transport(settings.transport, settings.token_file, settings.kafka_options_file)
    return transport, ThreadCourier(transport)


def open_spool(ring: Path, settings: AgentSettings) -> Spool | None:
    """The spool of a ring, with what an earlier shipper left in it; None where there is to be none, or it cannot be used."""
    if not settings.spool_bytes or not _is_private(settings.spool_dir):
        return None
    spool = Spool(settings.spool_dir, ring.stem, ring, settings.spool_bytes)
    try:
        return spool if spool.adopt() else None
    except OSError as error:
        print(f"kvtrail shipper: no spool in {settings.spool_dir}: {error.strerror}", file=sys.stderr)  # noqa: T201 - its log
        return None


def _is_private(directory: Path) -> bool:
    """Whether a directory is for this user alone, or not there yet; what is not is told in the log."""
    try:
        found = directory.stat()
    except FileNotFoundError:
        return True
    except OSError as error:
        print(f"kvtrail shipper: no spool in {directory}: {error.strerror}", file=sys.stderr)  # noqa: T201 - its log
        return False
    if found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return True
    print(f"kvtrail shipper: no spool: {directory} is open to others, chmod 700 it", file=sys.stderr)  # noqa: T201 - its log
    return False


class WithoutPandas(MetaPathFinder):
    """Keeps pyarrow from loading pandas, where it is installed, at its first conversion.

    Nothing here uses it, and loading it keeps the shipper from its ring for half a second, at the very start of an engine.
    """

    def find_spec(self, fullname: str, path: object, target: object = None, /) -> None:
        """Say of pandas alone that it is not there.

        Raises:
            ModuleNotFoundError: it is asked for.
        """
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def main() -> int:
    """Ship the ring that the given configuration names."""
    sys.meta_path.insert(0, WithoutPandas())
    config = decode_config(Path(sys.argv[1]).read_bytes())
    return 0 if ship(config) else 1


if __name__ == "__main__":
    sys.exit(main())
