"""What can be hurt, and how: each part lists its hurts, each hurt has a beginning and an end.

To add a part: a `Part` whose hurts are functions of the world, and its name in the parts of a route.
"""

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kvtrail_cli.demo.broker import LocalBroker

from tests.chaos.routes import KafkaRoute
from tests.chaos.world import World


class Hurt(NamedTuple):
    """Something done to a part; `mend` undoes it, and may find that the part is gone."""

    name: str
    begin: Callable[[World], None]
    mend: Callable[[World], None]


class Part(NamedTuple):
    """A part and all that can happen to it."""

    name: str
    hurts: tuple[Hurt, ...]


def nothing(_world: World) -> None:
    """There is nothing to undo."""


def _send(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes that may be gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _engine(number: int) -> Callable[[World], None]:
    """Send a signal to the engine, if it still runs."""

    def act(world: World) -> None:
        if world.engine is not None and world.engine.poll() is None:
            world.engine.send_signal(number)

    return act


def _shipper(number: int) -> Callable[[World], None]:
    """Send a signal to the shippers."""
    return lambda world: _send(world.shippers(), number)


def _limit_disk(size: int) -> Callable[[World], None]:
    """Let no file of the shippers grow beyond a size, as a full disk does; -1 takes the limit away."""

    def act(world: World) -> None:
        for pid in world.shippers():
            with contextlib.suppress(ProcessLookupError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size if size >= 0 else hard, hard))

    return act


def _cut_and_fill(world: World) -> None:
    """A full disk is felt by who writes to it: take the network away too."""
    _limit_disk(600)(world)
    world.proxy.cut()


def _mend_both(world: World) -> None:
    """Network and disk are back."""
    world.proxy.mend()
    _limit_disk(-1)(world)


def _broker(world: World) -> LocalBroker:
    """The broker on the way."""
    assert isinstance(world.route, KafkaRoute)
    return world.route.broker


ENGINE: Final = Part(
    "engine",
    (
        Hurt("kill", _engine(signal.SIGKILL), nothing),
        Hurt("pause", _engine(signal.SIGSTOP), _engine(signal.SIGCONT)),
    ),
)
SHIPPER: Final = Part(
    "shipper",
    (
        Hurt("kill", _shipper(signal.SIGKILL), nothing),
        Hurt("pause", _shipper(signal.SIGSTOP), _shipper(signal.SIGCONT)),
        Hurt("disk full", _cut_and_fill, _mend_both),
    ),
)
COLLECTOR: Final = Part(
    "collector",
    (
        Hurt("kill", lambda world: world.collector.process.kill(), lambda world: world.collector.restart()),
        Hurt(
            "pause",
            lambda world: world.collector.process.send_signal(signal.SIGSTOP),
            lambda world: world.collector.process.send_signal(signal.SIGCONT),
        ),
    ),
)
NETWORK: Final = Part(
    "network",
    (
        Hurt("cut", lambda world: world.proxy.cut(), lambda world: world.proxy.mend()),
        Hurt("stall", lambda world: world.proxy.stall(), lambda world: world.proxy.mend()),
    ),
)
BROKER: Final = Part(
    "broker",
    (
        Hurt("kill", lambda world: _broker(world).kill(), lambda world: _broker(world).start()),
        Hurt("pause", lambda world: _broker(world).pause(), lambda world: _broker(world).resume()),
    ),
)
PARTS: Final = (ENGINE, SHIPPER, COLLECTOR, NETWORK)
KAFKA_PARTS: Final = (*PARTS, BROKER)
