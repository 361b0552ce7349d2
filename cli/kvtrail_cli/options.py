"""Options that several verbs share, typed once."""

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str, typer.Option("--url", envvar="KVTRAIL_URL", help="Address of the collector.")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", envvar="KVTRAIL_READ_TOKEN_FILE", help="File (0600) with the token for reading.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
KafkaOptionsFile = Annotated[
    Path | None,
    typer.Option(envvar="KVTRAIL_KAFKA_OPTIONS_FILE", help="File (0600, TOML) with TLS and SASL options of Kafka."),
]
EngineName = Annotated[str | None, typer.Option("--engine", help="Only this engine.")]
