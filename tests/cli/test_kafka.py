"""The doctor and Kafka: it makes the topic as it is told, leaves one that is there alone, and says what is missing."""

import json
import os
import subprocess
import sys
import uuid

from kafka.admin import ConfigResource, ConfigResourceType
from kvtrail_collector.testing import RunningCollector

from tests.broker import admin

Done = subprocess.CompletedProcess[str]


def doctor(*words: str, **settings: str) -> Done:
    """Run the doctor under settings given as variables."""
    command = [sys.executable, "-m", "kvtrail_cli.main", "doctor", *words]
    variables = {f"KVTRAIL_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=os.environ | variables)


def check_of(done: Done) -> dict[str, object]:
    """What the doctor says of the topic."""
    checks = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "kafka topic"]
    (found,) = checks
    assert isinstance(found, dict)
    return found


def test_a_topic_is_made_as_told(bootstrap: str, collector: RunningCollector) -> None:
    """Partitions, retention and the largest record are those of the flags and of our batches."""
    topic = f"kvtrail-test-{uuid.uuid4().hex[:12]}"
    settings = {"kafka_bootstrap": bootstrap, "kafka_topic": topic, "kafka_dead_letter_topic": f"{topic}-dead"}
    flags = ("--create-topic", "--partitions", "4", "--replicas", "1", "--retention-hours", "5")
    done = doctor("--json", "--url", collector.url, *flags, **settings)
    again = doctor("--json", "--url", collector.url, *flags, **settings)
    with admin(bootstrap) as client:
        (found,) = client.describe_topics([topic])
        dead = f"{topic}-dead" in client.list_topics()
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        configs = str(client.describe_configs([resource], config_filter="all"))

    assert (0, 0) == (done.returncode, again.returncode)
    assert "made, 4 partitions" in done.stderr.replace("\n", " ")
    assert "was there already" in again.stderr.replace("\n", " ")
    assert {"ok": True, "fix": ""}.items() <= check_of(again).items()
    assert len(found["partitions"]) == 4
    assert dead
    assert "18000000" in configs
    assert str((16 << 20) + (64 << 10)) in configs


def test_a_missing_topic_is_said_with_its_remedy(bootstrap: str, collector: RunningCollector) -> None:
    """Whoever forgot the topic reads what to run."""
    done = doctor("--json", "--url", collector.url, kafka_bootstrap=bootstrap, kafka_topic="kvtrail-test-nobody-made-me")

    assert done.returncode == 1
    assert {"ok": False, "fix": "kvtrail doctor --create-topic"}.items() <= check_of(done).items()


def test_brokers_that_do_not_answer_are_said(free_port: int, collector: RunningCollector) -> None:
    """The check names the address, and the doctor goes on to its other checks."""
    done = doctor("--json", "--url", collector.url, kafka_bootstrap=f"127.0.0.1:{free_port}")

    assert done.returncode == 1
    assert str(free_port) in str(check_of(done)["detail"])


def test_a_topic_needs_brokers() -> None:
    """Without brokers there is nothing to make; the error says which setting to give."""
    done = doctor("--create-topic")

    assert done.returncode == 2
    assert "KVTRAIL_KAFKA_BOOTSTRAP" in done.stderr
