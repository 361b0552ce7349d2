"""The command line of the dashboard: loopback only, no telemetry, no secret."""

import itertools

from kvtrail_dashboards.serve import SCRIPT, address, command


def _flags(words: list[str]) -> dict[str, str]:
    """The flags of a command."""
    return {name: value for name, value in itertools.pairwise(words) if name.startswith("--")}


def test_it_listens_on_loopback_alone_and_reports_to_nobody() -> None:
    """Safe by default: address, statistics and file watcher are set, whatever a configuration file says."""
    flags = _flags(command(8501, "http://127.0.0.1:4750"))

    assert flags["--server.address"] == "127.0.0.1"
    assert flags["--server.port"] == "8501"
    assert flags["--browser.gatherUsageStats"] == "false"
    assert flags["--server.enableCORS"] == "true"
    assert flags["--server.fileWatcherType"] == "none"
    assert flags["--server.headless"] == "true"


def test_it_names_the_token_file_only_where_there_is_one() -> None:
    """The process learns where the token lies; the token itself is on no command line."""
    with_token = command(1, "http://127.0.0.1:2", "/keys/read.token")

    assert "KVTRAIL_READ_TOKEN_FILE=/keys/read.token" in with_token
    assert "KVTRAIL_COLLECTOR_URL=http://127.0.0.1:2" in with_token
    assert not [word for word in command(1, "http://127.0.0.1:2") if "TOKEN" in word]


def test_it_runs_the_app_that_is_there() -> None:
    """The script that Streamlit is told to run exists, and its address can be printed before it runs."""
    assert str(SCRIPT) in command(1, "http://127.0.0.1:2")
    assert SCRIPT.is_file()
    assert address(8501) == "http://127.0.0.1:8501"
