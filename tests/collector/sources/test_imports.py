"""Who loads the Kafka client: a transport, a source, orders by topic, and what closes it; each in a file of its own."""

import subprocess
import sys

import pytest

from tests.packages import PACKAGE_ROOTS, ROOT, imports_of, modules_of

MAY = {
    "agent/kvtrail_agent/attach/lmcache_kafka.py",
    "agent/kvtrail_agent/degrade/topic.py",
    "agent/kvtrail_agent/transports/kafka.py",
    "cli/kvtrail_cli/bench/kafka_load.py",
    "collector/kvtrail_collector/alerts/post_topic.py",
    "collector/kvtrail_collector/sources/kafka.py",
    "collector/kvtrail_collector/sources/kafka_dead_letters.py",
    "collector/kvtrail_collector/sources/kafka_errors.py",
    "collector/kvtrail_collector/sources/kafka_topic.py",
    "schema/kvtrail_schema/kafka_network.py",
}


def test_the_client_is_loaded_in_few_places() -> None:
    """Whoever changes the client, or its errors, knows where to look."""
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGE_ROOTS
        for path in modules_of(package)
        for _, name in imports_of(path)
        if name.partition(".")[0] in {"kafka", "crc32c"}
    }

    assert found == MAY


@pytest.mark.parametrize("module", ["kvtrail_collector.serve", "kvtrail_cli.main", "kvtrail_agent.recorder"])
def test_nobody_pays_for_a_client_that_is_not_used(module: str) -> None:
    """A collector, a command and an engine without Kafka load nothing of it, and run where it is not installed."""
    program = f"import sys, {module}; print('kafka' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
