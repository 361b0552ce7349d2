"""`kvtrail collector serve`: store events, answer questions."""

import os
from pathlib import Path
from typing import Annotated

import typer

from kvtrail_cli.output import note

APP = typer.Typer(help="The collector: stores events, answers questions.", no_args_is_help=True)


@APP.callback()
def group() -> None:
    """The collector: stores events, answers questions."""


@APP.command()
def serve(
    config: Annotated[Path | None, typer.Option(help="TOML file; its table [collector] holds settings.")] = None,
    store: Annotated[str | None, typer.Option(help="DuckDB file that holds the events; made if it is not there.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; any but loopback needs tokens, and TLS.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    *,
    kafka_bootstrap: Annotated[
        str | None, typer.Option(help="Brokers of a Kafka cluster to read from: host:port[,host:port].")
    ] = None,
    kafka_topic: Annotated[str | None, typer.Option(help="Topic that holds the batches.")] = None,
    address_file: Annotated[Path | None, typer.Option(help="Write the address here once calls can be made.")] = None,
) -> None:
    """Run a collector until SIGTERM or Ctrl-C. Every other setting: a TOML file or a KVTRAIL_ variable (`kvtrail doctor`)."""
    from kvtrail_collector.serve import Address, serve  # noqa: PLC0415 - heavy, and no other verb needs it
    from kvtrail_collector.settings import load_settings  # noqa: PLC0415 - as above

    flags = {"store": store, "host": host, "port": port, "kafka_bootstrap": kafka_bootstrap, "kafka_topic": kafka_topic}
    loaded = load_settings(config, os.environ, flags)

    def on_bound(address: Address) -> None:
        settings = loaded.settings
        reads = f", reads {settings.kafka_topic} from {settings.kafka_bootstrap}" if settings.kafka_bootstrap else ""
        note(f"collector listens on {address.url}, stores into {settings.store}{reads}")
        if address_file is not None:
            write_whole(address_file, address.url)

    serve(loaded.settings, on_bound=on_bound, sources=loaded.sources)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds it whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
