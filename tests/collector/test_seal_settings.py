"""Promises of the settings of sealing: what they say is what the store does, and what it did can be seen."""

from pathlib import Path

import httpx
from kvtrail_collector.seal_settings import seal_policy
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import SealPolicy
from kvtrail_collector.testing import running_collector
from kvtrail_schema.batch import CONTENT_TYPE

from tests.collector.frames import frame, span

DAY_NS = 86_400_000_000_000


def test_settings_become_the_policy() -> None:
    """Seconds, days and bytes; zeros mean for ever and no bound."""
    bounded = Settings(store="/x/a.duckdb", seal_after_s=1.5, seal_dir="/y", retention_days=2, retention_bytes=7)
    expected = SealPolicy(Path("/y"), seal_after_ns=1_500_000_000, retention_ns=2 * DAY_NS, retention_bytes=7)

    assert expected == seal_policy(bounded)

    plain = seal_policy(Settings(store="/x/a.duckdb"))

    assert plain is not None
    assert (Path("/x/a.duckdb.sealed"), None, None) == (plain.folder, plain.retention_ns, plain.retention_bytes)


def test_never_is_longer_than_anybody_waits() -> None:
    """`seal_after_s` 0 seals nothing for a century, and its numbers still fit where they are compared."""
    never = seal_policy(Settings(store="/x/a.duckdb", seal_after_s=0))

    assert never is not None
    assert 36_000 * DAY_NS < never.seal_after_ns < 2**62


def test_a_store_in_memory_seals_nothing() -> None:
    """Without a file there is no folder beside it."""
    assert seal_policy(Settings(store=":memory:")) is None


def test_a_collector_seals_by_itself_and_says_so(private_dir: Path) -> None:
    """Old events leave the file without being asked to; metrics say how many, and requests are still found."""
    settings = Settings(store=str(private_dir / "events.duckdb"), port=0, seal_after_s=0.001)
    with running_collector(settings) as running, httpx.Client(base_url=running.url) as client:
        client.post("/v1/events", content=frame(span(1, 80)), headers={"content-type": CONTENT_TYPE}).raise_for_status()
        running.store.seal_now()
        lines = client.get("/metrics").text.splitlines()
        why = client.get("/v1/requests/r-3")

        assert "kvtrail_sealed_events 80.0" in lines
        assert why.status_code == 200
        assert [file.name for file in (private_dir / "events.duckdb.sealed").iterdir()] == ["events-00000001.parquet"]
