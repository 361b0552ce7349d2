"""The references that are one table each: settings, metrics."""

from collections.abc import Sequence
from typing import get_args

from kvtrail_agent.settings import setting_docs as agent_settings
from kvtrail_collector.metric_names import HELP, CounterName, GaugeName, HistogramName
from kvtrail_collector.settings import setting_docs as collector_settings
from kvtrail_schema.kafka_options import options_docs

NOTE = "Generated from the code by `make generate`; do not edit.\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Every setting of collector and agent: name, variable, default, meaning."""
    collector = [(f"`{doc.name}`", f"`{doc.variable}`", f"`{doc.default}`", doc.help) for doc in collector_settings()]
    agent = [(f"`{name}`", f"`{default}`" if default else "required", text) for name, default, text in agent_settings()]
    return (
        f"# Settings\n\n{NOTE}\n## Collector\n\n"
        "Sources, each over the one before: defaults, the table `[collector]` of a TOML file (`--config`), variables, flags.\n"
        "`kvtrail doctor` prints what is in force and where each value came from.\n\n"
        + _table(("name", "variable", "default", "meaning"), collector)
        + "\n## Agent\n\nGiven in code, as `AgentSettings`; `kvtrail engine run` has flags for those that matter there.\n\n"
        + _table(("name", "default", "meaning"), agent)
        + _kafka_options()
    )


def _kafka_options() -> str:
    """Every line that a file of options for Kafka may have."""
    rows = [(f"`{name}`", f"`{value}`" if value else "none", text) for name, value, text in options_docs()]
    return (
        "\n## Kafka options\n\nLines of the TOML file that `kafka_options_file` names, for collector and agent alike; its\n"
        "owner alone may read it.\n\n" + _table(("name", "default", "meaning"), rows)
    )


def metrics_page() -> str:
    """Every metric of the collector's `/metrics`."""
    kinds = {"counter": CounterName, "gauge": GaugeName, "histogram": HistogramName}
    rows = [(f"`{name}`", kind, HELP[name]) for kind, names in kinds.items() for name in get_args(names)]
    return f"# Metrics\n\n{NOTE}\n`GET /metrics` of the collector, in Prometheus' text form.\n\n" + _table(
        ("name", "kind", "meaning"), rows
    )
