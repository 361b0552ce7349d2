"""The compose file: it is one, and every command, setting and file that it names exists."""

import re
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
import yaml
from kvtrail_cli.demo.broker import KAFKA_VERSION
from kvtrail_collector.settings import load_settings
from kvtrail_collector.sources.kafka_settings import kafka_settings

from tests.broker import jars
from tests.packages import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if service["image"].startswith("kvtrail:"))

_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_DURATION = {"type": "string", "pattern": r"^([0-9]+(h|m|s|ms|us))+$"}
_SERVICE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["image", "restart", "network_mode"],
    "properties": {
        "image": {"type": "string", "pattern": r"^[a-z0-9-]+(/[a-z0-9-]+)?:[A-Za-z0-9._-]+$"},
        "build": {"const": "."},
        "command": _TEXTS,
        "network_mode": {"enum": ["host", "bridge", "none"]},
        "restart": {"type": "string", "pattern": "^(no|always|on-failure(:[0-9]+)?|unless-stopped)$"},
        "environment": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"pattern": "^[A-Z][A-Z0-9_]*$"},
        },
        "volumes": {"type": "array", "items": {"type": "string", "pattern": "^(\\./)?[a-zA-Z0-9._/-]+:/[^:]+(:ro|:rw)?$"}},
        "depends_on": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": ["condition"],
                "properties": {"condition": {"enum": ["service_started", "service_healthy", "service_completed_successfully"]}},
            },
        },
        "healthcheck": {
            "type": "object",
            "additionalProperties": False,
            "required": ["test"],
            "properties": {
                "test": {**_TEXTS, "prefixItems": [{"enum": ["CMD", "CMD-SHELL"]}]},
                "interval": _DURATION,
                "timeout": _DURATION,
                "start_period": _DURATION,
                "retries": {"type": "integer", "minimum": 1},
            },
        },
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["services"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$"},
        "services": {"type": "object", "additionalProperties": _SERVICE},
        "volumes": {"type": "object", "additionalProperties": {"type": "null"}},
    },
}
"""The part of the Compose Specification's schema that the file uses: what it says beyond is an error until it is here."""


def test_it_is_a_compose_file() -> None:
    """Names, types and values are those of the Compose Specification; no image is named with a registry."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(COMPOSE, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_everything_stays_on_loopback() -> None:
    """Nothing that is started here stands open to another host."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    addresses = re.findall(r"\d+\.\d+\.\d+\.\d+", text)

    assert {"127.0.0.1"} == set(addresses)
    assert not re.search(r"(LISTENERS|HOST): [^\n]*://:", text)


def test_services_and_volumes_that_are_named_are_there() -> None:
    """Who depends on something, or mounts something, finds it."""
    needed = {name for service in SERVICES.values() for name in service.get("depends_on", {})}
    mounted = [volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    healthy = [
        name
        for service in SERVICES.values()
        for name, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_healthy" and "healthcheck" not in SERVICES[name]
    ]

    assert needed <= set(SERVICES)
    assert [name for name in mounted if not name.startswith(".") and name not in COMPOSE["volumes"]] == []
    assert [name for name in mounted if name.startswith(".") and not (ROOT / name).is_file()] == []
    assert healthy == []


@pytest.mark.parametrize("name", OURS)
def test_commands_are_those_of_the_command_line(name: str) -> None:
    """Each verb and flag is one that `kvtrail` takes today."""
    words = SERVICES[name]["command"]
    done = subprocess.run(
        [sys.executable, "-m", "kvtrail_cli.main", *words, "--help"], capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("name", [name for name in OURS if "environment" in SERVICES[name]])
def test_settings_are_those_of_the_collector(name: str) -> None:
    """Each variable is a setting that there is, with a value that fits, and the brokers are those that are started."""
    environment = SERVICES[name]["environment"]
    loaded = load_settings(None, environment)
    kafka = kafka_settings(loaded.settings)
    used = {source for source in loaded.sources.values() if source != "default"}

    assert set(environment) == used
    assert kafka is not None
    assert kafka.servers[0] in SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_the_broker_is_the_one_that_tests_use() -> None:
    """What is tested is what is run."""
    assert f"apache/kafka:{KAFKA_VERSION}" == SERVICES["kafka"]["image"]


def test_settings_of_the_broker_are_those_of_kafka() -> None:
    """Each variable stands for a property that this version of Kafka has, as the broker itself lists them."""
    command = ["java", "-cp", f"{jars()}/*", "kafka.server.KafkaConfig"]
    known = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {name.removeprefix("KAFKA_").lower().replace("_", ".") for name in SERVICES["kafka"]["environment"]}

    assert {name for name in names if f'id="{name}"' not in known} == set()


def test_prometheus_asks_the_collector() -> None:
    """The target is where the collector listens, and the path is its own."""
    config = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]
    environment = SERVICES["collector"]["environment"]

    assert [f"{environment['KVTRAIL_HOST']}:{environment['KVTRAIL_PORT']}"] == job["static_configs"][0]["targets"]
    assert job["metrics_path"] == "/metrics"


def test_the_image_copies_what_is_there() -> None:
    """Each file that the Dockerfile takes from the repository exists, each extra is one of ours, and the entry is a script."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE)
    (extras,) = re.findall(r"whl\)\[([a-z,]+)\]", text)

    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [extra for extra in extras.split(",") if not re.search(rf"^{extra} = \[", project, re.MULTILINE)] == []
    assert 'ENTRYPOINT ["kvtrail"]' in text
    assert "kvtrail = " in project


def test_the_build_context_leaves_out_what_it_need_not_have() -> None:
    """No environment, cache or store of this checkout travels into an image."""
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()

    assert {".git", ".venv", ".parts", "*.duckdb"} <= set(left_out)
