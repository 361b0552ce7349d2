"""What commands and API answer, as JSON Schema: one definition a shape, made from the structs themselves."""

import json

import msgspec
from kvtrail_cli.bench.engine_shapes import EngineBench
from kvtrail_cli.bench.shapes import IngestBench
from kvtrail_cli.commands.agent import AgentRecover
from kvtrail_cli.commands.engine import EngineRun
from kvtrail_cli.compare.shapes import Compare
from kvtrail_cli.demo.shapes import Demo
from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.doctor_shapes import Diagnosis
from kvtrail_collector.loss_shapes import Loss
from kvtrail_collector.why import Why

ANSWERS = {
    "demo": Demo,
    "attribute": Attribution,
    "why": Why,
    "loss": Loss,
    "doctor": Diagnosis,
    "engine run": EngineRun,
    "agent recover": AgentRecover,
    "compare": Compare,
    "bench engine": EngineBench,
    "bench ingest": IngestBench,
}
"""Each verb with `--json`, and what it answers."""


def outputs_schema() -> str:
    """One JSON Schema with a definition a shape; `answers` says which one is whose."""
    _, definitions = msgspec.json.schema_components(ANSWERS.values(), ref_template="#/$defs/{name}")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the commands of kvtrail answer with --json",
        "answers": {verb: {"$ref": f"#/$defs/{shape.__name__}"} for verb, shape in ANSWERS.items()},
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2) + "\n"
