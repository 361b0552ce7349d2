"""What commands and API answer, as JSON Schema: one definition a shape, made from the structs themselves."""

import json

import msgspec
from kvtrail_cli.bench.dashboard_shapes import DashboardBench
from kvtrail_cli.bench.engine_shapes import EngineBench
from kvtrail_cli.bench.query_shapes import QueryBench
from kvtrail_cli.bench.shapes import IngestBench
from kvtrail_cli.commands.agent import AgentRecover
from kvtrail_cli.commands.agent_poll import AgentFollowed
from kvtrail_cli.commands.agent_relay import AgentRelay
from kvtrail_cli.commands.engine import EngineRun
from kvtrail_cli.compare.shapes import Compare
from kvtrail_cli.demo.shapes import Demo
from kvtrail_cli.drill.gate_shapes import GateDrill
from kvtrail_cli.drill.safety_shapes import SafetyDrills
from kvtrail_cli.drill.shapes import Accuracy
from kvtrail_cli.drill.storm_shapes import Storms
from kvtrail_cli.importing.shapes import Imported
from kvtrail_collector.alerts.shapes import ActionAnswer, Alerts
from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.block_life import BlockLife
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.doctor_shapes import Diagnosis
from kvtrail_collector.engine_shapes import Engines
from kvtrail_collector.gate_shapes import Gate
from kvtrail_collector.loss_shapes import Loss
from kvtrail_collector.prefetch_shapes import PrefetchAccount
from kvtrail_collector.questions.latency import Latency
from kvtrail_collector.questions.one_event import OneEvent
from kvtrail_collector.questions.prefetch_flow import PrefetchFlow
from kvtrail_collector.questions.pressure import Pressure
from kvtrail_collector.questions.recorder import Recorder
from kvtrail_collector.questions.spikes import Spikes
from kvtrail_collector.questions.tenant_accounts import Tenants
from kvtrail_collector.questions.tier_moves import Tiers
from kvtrail_collector.rebuild_shapes import Rebuilt
from kvtrail_collector.sql_shapes import SqlAnswer
from kvtrail_collector.why import Why

ANSWERS = {
    "demo": Demo,
    "attribute": Attribution,
    "why": Why,
    "block": BlockLife,
    "diagnose": Verdicts,
    "loss": Loss,
    "sql": SqlAnswer,
    "gate": Gate,
    "doctor": Diagnosis,
    "rebuild": Rebuilt,
    "import": Imported,
    "engine run": EngineRun,
    "agent recover": AgentRecover,
    "agent relay": AgentRelay,
    "agent trtllm": AgentFollowed,
    "agent lmcache": AgentFollowed,
    "alerts show": Alerts,
    "alerts request": ActionAnswer,
    "alerts release": ActionAnswer,
    "compare": Compare,
    "drill accuracy": Accuracy,
    "drill all": SafetyDrills,
    "drill storm": Storms,
    "drill gate": GateDrill,
    "bench dashboard": DashboardBench,
    "bench engine": EngineBench,
    "bench ingest": IngestBench,
    "bench query": QueryBench,
}
"""Each verb with `--json`, and what it answers."""

ROUTES = {
    "/v1/engines": Engines,
    "/v1/event": OneEvent,
    "/v1/latency": Latency,
    "/v1/prefetch": PrefetchAccount,
    "/v1/prefetch/flow": PrefetchFlow,
    "/v1/pressure": Pressure,
    "/v1/recorder": Recorder,
    "/v1/spikes": Spikes,
    "/v1/tenants": Tenants,
    "/v1/tiers": Tiers,
}
"""Each path that no verb asks, and what it answers."""


def outputs_schema() -> str:
    """One JSON Schema with a definition a shape; `answers` says which one is whose."""
    _, definitions = msgspec.json.schema_components([*ANSWERS.values(), *ROUTES.values()], ref_template="#/$defs/{name}")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the commands of kvtrail answer with --json",
        "answers": {verb: {"$ref": f"#/$defs/{shape.__name__}"} for verb, shape in ANSWERS.items()},
        "routes": {path: {"$ref": f"#/$defs/{shape.__name__}"} for path, shape in ROUTES.items()},
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2) + "\n"
