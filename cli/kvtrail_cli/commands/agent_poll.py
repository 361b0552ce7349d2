"""`kvtrail agent trtllm` and `kvtrail agent lmcache`: follow engines that are asked, or that send, from outside them."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from kvtrail_agent.attach.live_rows import LiveRows
from kvtrail_agent.attach.lmcache_http import LmcacheReceiver, LmcacheServer
from kvtrail_agent.attach.trtllm import recorders
from kvtrail_agent.attach.trtllm_poller import TrtllmPoller
from kvtrail_agent.attach.trtllm_sources import TrtllmServer
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.formats import FORMATS
from kvtrail_agent.importers.lmcache_batches import LmcacheBatches
from kvtrail_agent.importers.user_key import user_key, user_key_file
from kvtrail_agent.settings import AgentSettings
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.kafka_options import read_options

from kvtrail_cli.client import DEFAULT_URL
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.options import Json, KafkaOptionsFile
from kvtrail_cli.output import OUT, note, print_json

Transport = Annotated[
    str, typer.Option(envvar="KVTRAIL_TRANSPORT", help="Where events go: http(s)://host:port, file:///directory, kafka://…")
]
Engine = Annotated[str, typer.Option("--engine", help="Your name for this serving instance.")]
WriteToken = Annotated[Path | None, typer.Option(envvar="KVTRAIL_WRITE_TOKEN_FILE", help="Token for writing.")]
KeyFile = Annotated[
    Path | None,
    typer.Option(envvar="KVTRAIL_KEY_FILE", help="The fleet's key (0600); absent, one of this user's own is made and kept."),
]


class AgentFollowed(msgspec.Struct, frozen=True):
    """What a follower answers when it is stopped: rows recorded, events of the source that never came, and what was broken."""

    rows: int
    lost: int
    quarantined: int
    failures: int = 0
    schema: int = 1


def trtllm(
    server: Annotated[str, typer.Argument(help="trtllm-serve, as http://HOST:PORT.", metavar="URL")],
    *,
    engine: Engine,
    transport: Transport = DEFAULT_URL,
    token_file: WriteToken = None,
    key_file: KeyFile = None,
    kafka_options_file: KafkaOptionsFile = None,
    json: Json = False,
) -> None:
    """Record what TensorRT-LLM's server gives away, until it is interrupted. Nobody else may drain the same server."""
    settings = AgentSettings(engine=engine, transport=transport, token_file=token_file, kafka_options_file=kafka_options_file)
    clock, source = SystemClock(), TrtllmServer(server)
    rows = LiveRows(recorders(settings), "tensorrt-llm", FORMATS["trtllm"].missing, clock)
    poller = TrtllmPoller(source, rows, key=user_key(key_file or user_key_file()), clock=clock)
    _until_interrupted(poller.run)
    source.close()
    _answer(rows, poller.tally.failures, json=json)


def lmcache(
    topic: Annotated[
        str | None, typer.Argument(help="Its topic, as kafka://BROKER:PORT[,…]/TOPIC.", metavar="[KAFKA]", show_default=False)
    ] = None,
    *,
    engine: Engine,
    listen: Annotated[int | None, typer.Option(help="Take its events by HTTP instead, on this port of loopback.")] = None,
    from_start: Annotated[bool, typer.Option(help="Read all that the topic still has, not only what comes.")] = False,
    transport: Transport = DEFAULT_URL,
    token_file: WriteToken = None,
    key_file: KeyFile = None,
    kafka_options_file: KafkaOptionsFile = None,
    json: Json = False,
) -> None:
    """Record LMCache's cache events from its topic, or as its coordinator by HTTP, until it is interrupted."""
    if (topic is None) == (listen is None):
        raise InputInvalid("give the topic as kafka://broker:port/topic, or --listen PORT, and not both")
    settings = AgentSettings(engine=engine, transport=transport, token_file=token_file, kafka_options_file=kafka_options_file)
    rows = LiveRows(recorders(settings), "lmcache", FORMATS["lmcache"].missing, SystemClock())
    decoder = LmcacheBatches(Source(user_key(key_file or user_key_file())))
    if topic is not None:
        _until_interrupted(_topic(topic, kafka_options_file, decoder, rows, from_start=from_start))
    else:
        served = LmcacheServer("127.0.0.1", listen or 0, LmcacheReceiver(decoder, rows))
        note(f"listening: --coordinator-url {served.url}")
        _until_interrupted(served.run)
    _answer(rows, 0, json=json)


def _topic(
    address: str, options_file: Path | None, decoder: LmcacheBatches, rows: LiveRows, *, from_start: bool
) -> Callable[[threading.Event], None]:
    """Follows a topic.

    Raises:
        InputInvalid: the address is no topic.
    """
    from kvtrail_agent.attach.lmcache_kafka import DEFAULT_TOPIC, LmcacheTopic  # noqa: PLC0415 - needs the Kafka client

    bootstrap, _, name = address.removeprefix("kafka://").partition("/")
    if not address.startswith("kafka://") or not bootstrap:
        raise InputInvalid(f"{address!r} is no topic: give kafka://broker:port/{DEFAULT_TOPIC}")
    options = read_options(options_file).client_settings()
    followed = LmcacheTopic(bootstrap, name or DEFAULT_TOPIC, options, from_start=from_start)
    return lambda stop: followed.run(decoder, rows, stop)


def _until_interrupted(run: Callable[[threading.Event], None]) -> None:
    """Run until a signal comes."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    run(stop)


def _answer(rows: LiveRows, failures: int, *, json: bool) -> None:
    """What was done."""
    answer = AgentFollowed(rows.rows, rows.lost, rows.quarantined, failures)
    if json:
        print_json(answer)
    else:
        OUT.print(f"{answer.rows} rows; {answer.lost} events never came, {answer.quarantined} could not be read")
