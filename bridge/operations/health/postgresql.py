"""Checks of the PostgreSQL server with the store: rights to make tables, room for the hosts' connections."""

from collections.abc import Iterator

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from activities.store import connections
from bridge.operations.health.findings import Finding, Level

_RIGHTS = "SELECT current_user, current_database(), current_schema(), has_schema_privilege(current_schema(), 'CREATE')"
_USED = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
_HOSTS = "SELECT count(*) FROM hosts WHERE stopped_at IS NULL"


def findings(connection: Connection, pool: int) -> Iterator[Finding]:
    """Check rights and limits, without changing anything."""
    user, database, schema, makes = connection.execute(text(_RIGHTS)).one()
    if not makes:
        says = f"the account {user} may not make tables in the schema {schema} of the database {database}"
        grant = f'GRANT CREATE, USAGE ON SCHEMA "{schema}" TO "{user}"'
        yield Finding("store", Level.WRONG, says, f"as the database's owner: psql -d {database} -c '{grant}'")
    used = connection.execute(text(_USED)).scalar_one()
    seen = connections.capacity(connection, _hosts(connection), pool)
    hosts = "1 host needs" if seen.hosts == 1 else f"{seen.hosts} hosts need"
    says = f"PostgreSQL allows {seen.usable} connections, and {used} are open; {hosts} {seen.needed}"
    if not seen.lacking:
        yield Finding("store", Level.OK, says)
        return
    most = connection.execute(text("SHOW max_connections")).scalar_one()
    fix = f"psql -c 'ALTER SYSTEM SET max_connections = {int(most) + seen.lacking}', then restart it"
    if seen.fitting_pool:
        fix += f"; or pool = {seen.fitting_pool} in [store] of every host"
    yield Finding("store", Level.WARNING, says, fix)


def _hosts(connection: Connection) -> int:
    try:
        return int(connection.execute(text(_HOSTS)).scalar_one())
    except DBAPIError:  # the tables are not made yet
        connection.rollback()
        return 0
