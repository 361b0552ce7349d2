"""Runs the steps on the connection that the caller put into the configuration's attributes; asks for no URL of its own.

The collector opens the one DuckDB connection that may write, so migrations have to come to it.
"""

from alembic import context
from alembic.ddl.impl import DefaultImpl
from sqlalchemy.engine import Connection


class DuckDBImpl(DefaultImpl):
    """Tells Alembic that DuckDB changes tables inside transactions."""

    __dialect__ = "duckdb"
    transactional_ddl = True


def run() -> None:
    """Apply the steps asked for, all in one transaction."""
    connection = context.config.attributes.get("connection")
    if not isinstance(connection, Connection):
        message = "migrations run on a connection in config.attributes['connection']: start the collector, or see CONTRIBUTING"
        raise TypeError(message)
    context.configure(connection=connection, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


run()
