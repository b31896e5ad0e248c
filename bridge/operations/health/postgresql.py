"""Checks of a PostgreSQL that keeps the store: may this account make tables, and do the hosts' connections fit?"""

from collections.abc import Iterator

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from activities.store.database import most_connections
from bridge.operations.health.findings import Finding, Level

_RIGHTS = "SELECT current_user, current_database(), current_schema(), has_schema_privilege(current_schema(), 'CREATE')"
_LIMITS = """SELECT sum(setting::int) FILTER (WHERE name = 'max_connections')
 - coalesce(sum(setting::int) FILTER (WHERE name <> 'max_connections'), 0),
 sum(setting::int) FILTER (WHERE name = 'max_connections')
 FROM pg_settings WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')"""
_USED = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
_HOSTS = "SELECT count(*) FROM hosts WHERE stopped_at IS NULL"


def findings(connection: Connection) -> Iterator[Finding]:
    """Check rights and limits; nothing is changed."""
    user, database, schema, makes = connection.execute(text(_RIGHTS)).one()
    if not makes:
        says = f"the account {user} may make no tables in the schema {schema} of the database {database}"
        grant = f'GRANT CREATE, USAGE ON SCHEMA "{schema}" TO "{user}"'
        yield Finding("store", Level.WRONG, says, f"as the database's owner: psql -d {database} -c '{grant}'")
    usable, most = connection.execute(text(_LIMITS)).one()
    used = connection.execute(text(_USED)).scalar_one()
    hosts = max(1, _hosts(connection))
    needed = hosts * most_connections()
    says = f"{usable} connections of PostgreSQL, of which {used} are open; {hosts} hosts open {needed} at most"
    if needed <= usable:
        yield Finding("store", Level.OK, says)
        return
    wanted = most - usable + needed + needed // 5
    yield Finding(
        "store", Level.WARNING, says, f"psql -c 'ALTER SYSTEM SET max_connections = {wanted}', then restart it"
    )


def _hosts(connection: Connection) -> int:
    try:
        return int(connection.execute(text(_HOSTS)).scalar_one())
    except DBAPIError:  # the tables are not made yet
        connection.rollback()
        return 0
