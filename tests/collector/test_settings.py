"""Promises of the settings: one table, four sources in rising order, errors that name the source."""

from pathlib import Path

import pytest
from kvtrail_collector.errors import SettingsInvalid
from kvtrail_collector.settings import Settings, load_settings, setting_docs


def test_flags_beat_variables_beat_the_file_beat_defaults(private_dir: Path) -> None:
    """Each source wins over the one before, and the sources say so."""
    file = private_dir / "kvtrail.toml"
    file.write_text("[collector]\nport = 1\nuploads = 2\nqueue_batches = 3\n")
    loaded = load_settings(file, {"KVTRAIL_UPLOADS": "5", "KVTRAIL_QUEUE_BATCHES": "6"}, {"queue_batches": 9, "port": None})

    assert (loaded.settings.port, loaded.settings.uploads, loaded.settings.queue_batches) == (1, 5, 9)
    expected = {"port": str(file), "uploads": "KVTRAIL_UPLOADS", "queue_batches": "flag", "host": "default"}
    assert expected == {name: loaded.sources[name] for name in expected}


def test_text_becomes_what_the_setting_is() -> None:
    """Variables are text: numbers, truth and lists are read from it."""
    environ = {"KVTRAIL_TLS_IN_FRONT": "true", "KVTRAIL_ALLOWED_HOSTS": "a.example, b.example", "KVTRAIL_BODY_TIMEOUT_S": "2.5"}
    settings = load_settings(None, environ).settings

    assert (settings.tls_in_front, settings.allowed_hosts, settings.body_timeout_s) == (True, ("a.example", "b.example"), 2.5)


@pytest.mark.parametrize(
    ("environ", "overrides", "where"),
    [({"KVTRAIL_PORT": "many"}, {}, "KVTRAIL_PORT"), ({}, {"port": 70_000}, "flag"), ({}, {"prot": 1}, "flag")],
)
def test_what_does_not_fit_is_refused_by_name(environ: dict[str, str], overrides: dict[str, object], where: str) -> None:
    """The error says which source to mend."""
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(None, environ, overrides)

    assert where == caught.value.trouble.where


def test_a_name_that_is_none_in_the_file_is_refused(private_dir: Path) -> None:
    """A slip in the file is not silently without effect."""
    file = private_dir / "kvtrail.toml"
    file.write_text("[collector]\nprot = 1\n")

    with pytest.raises(SettingsInvalid, match="prot"):
        load_settings(file)


def test_other_parts_variables_are_left_alone() -> None:
    """Variables that name no setting of the collector are somebody else's."""
    assert Settings() == load_settings(None, {"KVTRAIL_ENGINE_NAME": "x", "PATH": "/bin"}).settings


def test_every_setting_is_documented() -> None:
    """The reference has a row with a help text for each setting."""
    docs = setting_docs()

    assert list(Settings.__struct_fields__) == [doc.name for doc in docs]
    assert [doc.name for doc in docs if not doc.help] == []
