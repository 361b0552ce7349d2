"""Settings: a token goes nowhere but to the collector, and never in clear to another host."""

import os
from pathlib import Path

import pytest
from kvtrail_dashboards.errors import SettingsUnusable
from kvtrail_dashboards.settings import COLLECTOR_URL, DEFAULT_URL, READ_TOKEN_FILE, Settings, load_settings


@pytest.fixture
def token_file(private_dir: Path) -> Path:
    """A token that only its owner can read."""
    path = private_dir / "read.token"
    path.write_text("a-token-for-reading\n")
    path.chmod(0o600)
    return path


def test_without_variables_the_collector_is_on_this_machine() -> None:
    """The default is loopback, without a token."""
    assert Settings(DEFAULT_URL) == load_settings({})


def test_the_token_comes_from_its_file_and_is_not_shown(token_file: Path) -> None:
    """A repr, as logs have it, does not tell the token."""
    settings = load_settings({COLLECTOR_URL: "https://collector.example/", READ_TOKEN_FILE: str(token_file)})

    assert (settings.collector_url, settings.read_token) == ("https://collector.example", "a-token-for-reading")
    assert "a-token" not in repr(settings)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "127.0.0.1:4750", "http://", "http://user:secret@127.0.0.1", "nonsense"])
def test_an_address_that_is_none_is_refused_by_name(url: str) -> None:
    """The error names the variable to mend."""
    with pytest.raises(SettingsUnusable, match=COLLECTOR_URL):
        load_settings({COLLECTOR_URL: url})


def test_a_token_never_travels_in_clear_to_another_host(token_file: Path) -> None:
    """Http is for loopback alone once there is a token."""
    environ = {READ_TOKEN_FILE: str(token_file)}

    assert load_settings(environ | {COLLECTOR_URL: "http://localhost:1"}).read_token is not None
    with pytest.raises(SettingsUnusable, match="in clear"):
        load_settings(environ | {COLLECTOR_URL: "http://collector.example:4750"})


def test_a_token_that_others_can_read_is_refused(token_file: Path) -> None:
    """The error says the command that mends it."""
    token_file.chmod(0o644)

    with pytest.raises(SettingsUnusable, match="chmod 600"):
        load_settings({READ_TOKEN_FILE: str(token_file)})


@pytest.mark.parametrize("content", ["", "two\nlines", "tökén"])
def test_a_token_that_cannot_stand_in_a_header_is_refused(token_file: Path, content: str) -> None:
    """A broken file is told at once, not as a failed question."""
    token_file.write_text(content)

    with pytest.raises(SettingsUnusable, match=str(token_file)):
        load_settings({READ_TOKEN_FILE: str(token_file)})


def test_a_missing_token_file_is_told(private_dir: Path) -> None:
    """The error names the path."""
    with pytest.raises(SettingsUnusable, match="gone"):
        load_settings({READ_TOKEN_FILE: os.fspath(private_dir / "gone")})
