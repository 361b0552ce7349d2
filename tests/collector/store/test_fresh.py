"""Promises of a start that fails: it leaves no file and no folder that was not there, and harms none that was."""

import socket
from pathlib import Path

import pytest
from kvtrail_collector.errors import SettingsInvalid, StoreError
from kvtrail_collector.serve import serve
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import Store, store

from tests.collector.frames import batch, span


def test_a_port_that_is_taken_leaves_nothing(private_dir: Path) -> None:
    """A collector that cannot listen removes the store that it had just made, and the folders for it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        own = Settings(store=str(private_dir / "new/deep/events.duckdb"), port=taken.getsockname()[1])
        with pytest.raises(SettingsInvalid, match="KVTRAIL_PORT"):
            serve(own, on_bound=lambda _: None)

    assert list(private_dir.iterdir()) == []


def test_a_store_that_was_there_stays(private_dir: Path) -> None:
    """The same start on a store that has events leaves it as it is."""
    path = private_dir / "events.duckdb"
    with Store.open(str(path)) as before:
        before.submit(batch(span(1, 8))).result()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingsInvalid):
        serve(Settings(store=str(path), port=taken.getsockname()[1]), on_bound=lambda _: None)
    with Store.open(str(path)) as after:
        assert [8] == [account.stored.size for account in after.accounts().values()]


def test_an_opening_that_fails_leaves_nothing(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store whose tables cannot be made is not there afterwards; what else lies in its folder stays."""

    def fails(*_: object, **__: object) -> None:
        raise StoreError("injected", where="here", do="nothing")

    (private_dir / "mine").write_text("mine")
    monkeypatch.setattr(store, "migrate", fails)
    with pytest.raises(StoreError, match="injected"):
        Store.open(str(private_dir / "events.duckdb"))

    assert [private_dir / "mine"] == list(private_dir.iterdir())


def test_a_folder_that_is_made_is_told(private_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A path that was mistyped is seen: the folder that was made for it is named, once."""
    path = private_dir / "new/events.duckdb"
    for _ in range(2):
        Store.open(str(path)).close()

    assert [f"made the folder {path.parent}, which was not there"] == caplog.messages
    assert 0o700 == path.parent.stat().st_mode & 0o777
