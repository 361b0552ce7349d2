"""`kvtrail engine run`: the reference engine under a load, recorded."""

import signal
import tempfile
import threading
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

import msgspec
import typer
from kvtrail_agent.degrade.settings import DegradeSettings
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.transports.files import TransportFiles
from rich.console import Group, RenderableType
from rich.text import Text

from kvtrail_cli.client import DEFAULT_URL
from kvtrail_cli.errors import Exit, InputInvalid
from kvtrail_cli.options import Json, KafkaOptionsFile
from kvtrail_cli.output import OUT, note, print_json, progress
from kvtrail_cli.quantiles import Quantiles, quantiles_ms

if TYPE_CHECKING:
    from kvtrail_cli.engine_profiles import Profile

APP = typer.Typer(help="The reference offload engine.", no_args_is_help=True)


DegradeSecretFile = Annotated[
    Path | None,
    typer.Option(help="Take orders to degrade that are signed with a secret in this file (0600); absent: take none."),
]
DegradePort = Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback where orders are taken.")]
DegradeTopic = Annotated[
    str, typer.Option(help="Kafka topic where orders are taken, and no port is opened: kafka://host:port/topic.")
]


class Restore(StrEnum):
    """How it is chosen between loading a stored block and computing it again."""

    AUTO = "auto"
    RESTORE = "restore"
    RECOMPUTE = "recompute"


class EngineRun(msgspec.Struct, frozen=True):
    """What `kvtrail engine run` answers."""

    requests: int
    finished: int
    skipped_lines: tuple[int, ...]
    restored_blocks: dict[str, int]
    computed_tokens: int
    ttft_ms: Quantiles
    tpot_ms: Quantiles
    events_produced: int
    delivered: bool
    floors: str
    device: str
    undelivered_in: tuple[str, ...] = ()
    schema: int = 1


@APP.callback()
def group() -> None:
    """The reference offload engine."""


@APP.command()
def run(  # noqa: PLR0917 - one parameter a flag
    trace: Annotated[Path | None, typer.Option(help="Trace in the Mooncake form; absent: generated chats.")] = None,
    scale: Annotated[int, typer.Option(help="Divide a trace's token counts by this; it divides 512.")] = 16,
    speed: Annotated[float, typer.Option(help="Replay a trace this many times faster.")] = 1.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first requests of a trace.")] = None,
    duration: Annotated[float, typer.Option(min=1, help="Seconds of generated chats.")] = 60.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Generated chats: requests a second.")] = 20.0,
    restore: Annotated[
        Restore,
        typer.Option(help="With a trace: load stored blocks (restore), compute them again (recompute), or choose (auto)."),
    ] = Restore.AUTO,
    prefetch: Annotated[int, typer.Option(min=0, help="Fetch up to this many blocks ahead at a look; 0: none.")] = 0,
    announce: Annotated[
        float, typer.Option(min=0, help="With --prefetch: requests are announced this many seconds before they come.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of weights and load.")] = 0,
    name: Annotated[str, typer.Option(help="The operator's name for this engine.")] = "reference",
    transport: Annotated[
        str,
        typer.Option(
            envvar="KVTRAIL_TRANSPORT",
            help="Where events go: http://host:port, kafka://host:port/topic, file:///directory, or none.",
        ),
    ] = DEFAULT_URL,
    token_file: Annotated[Path | None, typer.Option(envvar="KVTRAIL_WRITE_TOKEN_FILE", help="Token for writing.")] = None,
    kafka_options_file: KafkaOptionsFile = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where the nvme tier lies; absent: a temporary directory.")] = None,
    ring_dir: Annotated[Path | None, typer.Option(help="Where the recorder's ring lies; absent: shared memory.")] = None,
    spool_dir: Annotated[
        Path | None, typer.Option(help="Where events wait on disk; absent: the user's state directory.")
    ] = None,
    nvml_interval_ms: Annotated[
        int, typer.Option(envvar="KVTRAIL_NVML_INTERVAL_MS", min=0, help="Sample GPUs by NVML so often; 0: never.")
    ] = 0,
    degrade_secret_file: DegradeSecretFile = None,
    degrade_port: DegradePort = 4760,
    degrade_topic: DegradeTopic = "",
    *,
    skip_bad_lines: Annotated[bool, typer.Option(help="Skip and count wrong lines of a trace instead of ending.")] = False,
    json: Json = False,
) -> None:
    """Run the engine under a trace or under generated chats, its events recorded."""
    from kvtrail_cli.engine_profiles import TraceChoice, chat_profile, trace_profile  # noqa: PLC0415 - loads torch

    agent = agent_settings(name, transport, TransportFiles(token_file, kafka_options_file), RecorderDirs(ring_dir, spool_dir))
    agent = agent and msgspec.structs.replace(agent, nvml_interval_ms=nvml_interval_ms)
    with tempfile.TemporaryDirectory(prefix="kvtrail-nvme-") as temporary:
        where = data_dir or Path(temporary)
        if trace is None:
            profile = chat_profile(seed, where, duration, rate)
        else:
            profile = trace_profile(TraceChoice(trace, scale, speed, limit, skip_bad_lines, restore.value), seed, where)
        if not profile.arrivals:
            raise InputInvalid(f"{trace}: no request to run")
        degrade = _degrade_settings(agent, degrade_secret_file, degrade_port, degrade_topic)
        answer = run_profile(profile.fetching_ahead(prefetch, announce), agent, degrade)
    _end(answer, json=json)


def _end(answer: EngineRun, *, json: bool) -> NoReturn:
    """Say what came of a run, and end with 1 where not all was delivered."""
    if json:
        print_json(answer)
    else:
        OUT.print(_view(answer))
    raise typer.Exit(Exit.GOOD if answer.delivered else Exit.BAD)


def _degrade_settings(agent: AgentSettings | None, secrets: Path | None, port: int, topic: str) -> DegradeSettings | None:
    """Where the flags want orders to be taken, or None where they do not.

    Raises:
        InputInvalid: nothing is recorded, so that nobody could see what became of an order.
    """
    if secrets is None:
        return None
    if agent is None:
        message = "--degrade-secret-file needs a transport: what becomes of an order is told by events"
        raise InputInvalid(message)
    return DegradeSettings(
        engine=agent.engine,
        secret_file=secrets,
        port=port,
        listens=not topic,
        topic=topic,
        kafka_options_file=agent.kafka_options_file,
    )


class RecorderDirs(NamedTuple):
    """Where a recorder keeps what is under way; None: where it does by default."""

    ring_dir: Path | None
    spool_dir: Path | None


def agent_settings(name: str, transport: str, files: TransportFiles, dirs: RecorderDirs) -> AgentSettings | None:
    """The recorder that the flags ask for, or None where they ask for none."""
    if transport == "none":
        return None
    settings = AgentSettings(
        engine=name, transport=transport, token_file=files.token_file, kafka_options_file=files.kafka_options_file
    )
    return msgspec.structs.replace(settings, **{name: path for name, path in dirs._asdict().items() if path is not None})


def run_profile(profile: "Profile", agent: AgentSettings | None, degrade: DegradeSettings | None = None) -> EngineRun:
    """Run it with a progress bar; Ctrl-C ends it early and keeps what was recorded."""
    from kvtrail_engine.loadgen.hints import Hints  # noqa: PLC0415 - loads torch

    from kvtrail_cli.engine_session import run_recorded  # noqa: PLC0415 - as above

    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    note(profile.settings.floors_text())
    try:
        with progress("requests") as advance:
            hints = None if profile.hint_lead_ns is None else Hints(profile.hint_lead_ns)
            session = run_recorded(profile.settings, profile.arrivals, agent, advance, hints=hints, stop=stop, degrade=degrade)
    finally:
        signal.signal(signal.SIGINT, before)
    result = session.result
    return EngineRun(
        requests=len(result.results),
        finished=len(result.ttft_ns),
        skipped_lines=profile.skipped_lines,
        restored_blocks={tier.name.lower(): blocks for tier, blocks in result.restored_blocks.items()},
        computed_tokens=result.computed_tokens,
        ttft_ms=quantiles_ms(result.ttft_ns),
        tpot_ms=quantiles_ms(result.tpot_ns),
        events_produced=session.produced,
        delivered=session.delivered,
        floors=result.floors,
        device=result.device,
        undelivered_in=session.undelivered_in,
    )


def _view(answer: EngineRun) -> RenderableType:
    """The run in a few lines."""
    restored = ", ".join(f"{blocks:,} from {tier}" for tier, blocks in answer.restored_blocks.items())
    lines = [
        f"{answer.finished:,} of {answer.requests:,} requests answered  ({answer.device})",
        f"TTFT ms  P50 {_ms(answer.ttft_ms.p50)}  P95 {_ms(answer.ttft_ms.p95)}  P99 {_ms(answer.ttft_ms.p99)}",
        f"TPOT ms  P50 {_ms(answer.tpot_ms.p50)}  P95 {_ms(answer.tpot_ms.p95)}  P99 {_ms(answer.tpot_ms.p99)}",
        f"blocks restored: {restored}; tokens computed: {answer.computed_tokens:,}",
        f"events recorded: {answer.events_produced:,}, {'all delivered' if answer.delivered else 'NOT ALL DELIVERED YET'}",
    ]
    if answer.skipped_lines:
        lines.append(f"lines of the trace skipped: {len(answer.skipped_lines):,} ({answer.skipped_lines[0]} first)")
    lines += _left(answer.undelivered_in)
    return Group(*(Text(line) for line in lines))


def _left(directories: tuple[str, ...]) -> list[str]:
    """Where events lie that nobody took, and who sends them."""
    if not directories:
        return []
    commands = " and ".join(f"kvtrail agent recover {directory}" for directory in directories)
    return [
        f"what was not delivered lies in {' and '.join(directories)}; the recorder's shipper tries for a minute more,",
        f"then the next engine with the same directories sends it, or you do: {commands}",
    ]


def _ms(value: float | None) -> str:
    """Milliseconds for people."""
    return "–" if value is None else f"{value:,.1f}"
