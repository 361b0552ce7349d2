"""`kvtrail agent relay`: follow what an engine publishes of its cache, from outside the engine."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from kvtrail_agent.importers.user_key import user_key, user_key_file
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.relay.addresses import zmq_address
from kvtrail_agent.relay.relay import Relay, Tally
from kvtrail_agent.relay.sockets import Sockets
from kvtrail_agent.settings import AgentSettings

from kvtrail_cli.client import DEFAULT_URL
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.options import Json, KafkaOptionsFile
from kvtrail_cli.output import OUT, print_json


class AgentRelay(msgspec.Struct, frozen=True):
    """What `kvtrail agent relay` answers when it is stopped: batches and rows recorded, and what went wrong."""

    batches: int
    rows: int
    lost_batches: int
    restarts: int
    unreadable: int
    quarantined: int
    schema: int = 1


def relay(
    publishers: Annotated[
        list[str],
        typer.Argument(help="What the engine publishes on: zmq://HOST:PORT, one a data-parallel rank.", metavar="ZMQ…"),
    ],
    *,
    engine: Annotated[str, typer.Option("--engine", help="Your name for this serving instance.")],
    replay: Annotated[
        list[str] | None, typer.Option("--replay", help="Its replay endpoint, one a publisher, in the same order.")
    ] = None,
    dialect: Annotated[Dialect, typer.Option(help="Which engine publishes.")] = Dialect.VLLM,
    topic: Annotated[str, typer.Option(help="Only topics that begin so.")] = "",
    transport: Annotated[
        str,
        typer.Option(envvar="KVTRAIL_TRANSPORT", help="Where events go: http(s)://host:port, file:///directory, kafka://…"),
    ] = DEFAULT_URL,
    token_file: Annotated[Path | None, typer.Option(envvar="KVTRAIL_WRITE_TOKEN_FILE", help="Token for writing.")] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="KVTRAIL_KEY_FILE", help="The fleet's key (0600); absent, one of this user's own is made and kept."
        ),
    ] = None,
    kafka_options_file: KafkaOptionsFile = None,
    json: Json = False,
) -> None:
    """Record what vLLM or SGLang publish of their caches over ZeroMQ, until it is interrupted; the engine stays as it is."""
    replays = [*(replay or ())]
    if replays and len(replays) != len(publishers):
        raise InputInvalid(f"{len(publishers)} publishers and {len(replays)} replay endpoints: give one each, or none")
    settings = AgentSettings(engine=engine, transport=transport, token_file=token_file, kafka_options_file=kafka_options_file)
    key, stop = user_key(key_file or user_key_file()), threading.Event()
    pairs = zip(publishers, replays or [None] * len(publishers), strict=True)
    relays = [
        Relay(
            Sockets(zmq_address(live), zmq_address(kept) if kept else None, topic, dialect),
            starter(settings),
            key=key,
            dialect=dialect,
        )
        for live, kept in pairs
    ]
    follow(relays, stop)
    answer = total([one.tally for one in relays])
    if json:
        print_json(answer)
    else:
        OUT.print(
            f"{answer.batches} batches, {answer.rows} rows; {answer.lost_batches} batches lost, {answer.restarts} restarts, "
            f"{answer.unreadable} messages and {answer.quarantined} events that could not be read"
        )


def starter(settings: AgentSettings) -> Callable[[int], Recorder]:
    """Starts a recorder for a rank, with the settings otherwise as they are."""
    return lambda rank: Recorder.start(msgspec.structs.replace(settings, rank=rank))


def follow(relays: list[Relay], stop: threading.Event) -> None:
    """Run one thread a publisher until a signal comes; what a thread raises ends all, and is raised here."""
    failures: list[BaseException] = []

    def run(one: Relay) -> None:
        try:
            one.run(stop)
        except Exception as error:  # noqa: BLE001 - raised again below, on the thread of the command
            failures.append(error)
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    threads = [threading.Thread(target=run, args=(one,), name=f"kvtrail-relay-{place}") for place, one in enumerate(relays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def total(tallies: list[Tally]) -> AgentRelay:
    """What all publishers together gave."""
    names = [name for name in AgentRelay.__struct_fields__ if name != "schema"]
    return AgentRelay(**{name: sum(getattr(tally, name) for tally in tallies) for name in names})
