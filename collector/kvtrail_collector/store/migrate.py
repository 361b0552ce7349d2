"""Brings a store to this version's tables when it is opened, and refuses one that a newer version wrote."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import duckdb
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from duckdb_engine import ConnectionWrapper
from sqlalchemy.pool import StaticPool

from kvtrail_collector.errors import StoreNewer

_STEPS: Final = "kvtrail_migrations"
_HEAD: Final = "head"
_REVISION: Final = "SELECT version_num FROM alembic_version"
_HAS_REVISION: Final = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'alembic_version'"


def migrate(connection: duckdb.DuckDBPyConnection, *, where: str, steps: Path | None = None) -> None:
    """Apply the missing steps in one transaction. Runs while the store is opened, before anything else uses it.

    Args:
        connection: the one that owns the file.
        where: the file, for errors.
        steps: the folder with the steps; absent, ours.

    Raises:
        StoreNewer: the file's revision is not among ours; nothing was changed.
    """
    config = _config(steps)
    script = ScriptDirectory.from_config(config)
    found = revision_of(connection)
    if found == script.get_current_head():
        return
    if found is not None and found not in {step.revision for step in script.walk_revisions()}:
        raise _newer(found, script.get_current_head(), where)
    _upgrade(connection, config)


def newest_revision() -> str | None:
    """The revision that our steps lead to."""
    return ScriptDirectory.from_config(_config(None)).get_current_head()


def revision_of(connection: duckdb.DuckDBPyConnection) -> str | None:
    """The revision that stands in a store; None in an empty one."""
    known = connection.execute(_HAS_REVISION).fetchone()
    if not known or not known[0]:
        return None
    row = connection.execute(_REVISION).fetchone()
    return str(row[0]) if row else None


def _upgrade(connection: duckdb.DuckDBPyConnection, config: Config) -> None:
    """Run the steps on a connection that stays ours."""
    engine = sa.create_engine("duckdb://", creator=lambda: ConnectionWrapper(connection), poolclass=StaticPool)
    with engine.connect() as speaking:
        config.attributes["connection"] = speaking
        command.upgrade(config, _HEAD)
        speaking.commit()


def _config(steps: Path | None) -> Config:
    """Alembic's configuration without its file: where the steps lie."""
    config = Config()
    config.set_main_option("script_location", str(steps or files(_STEPS)))
    return config


def _newer(found: str, own: str | None, where: str) -> StoreNewer:
    """The refusal of a file from the future."""
    return StoreNewer(
        f"the file has revision {found}, this kvtrail knows revisions up to {own}",
        where=where,
        do="start the kvtrail that wrote it, or choose another file; nothing in it was changed",
    )
