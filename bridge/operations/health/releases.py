"""Doctor's checks of a fleet: PostgreSQL, the hosts' releases, trees that an older release handles (ruling Q8)."""

import asyncio
from collections.abc import Iterator

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from temporalio.client import Client

from activities import worker_releases
from activities.store import connections
from activities.store.registry.host_rows import HostRow
from activities.temporal import RPC_TIMEOUT, connect_to_look
from activities.worker_releases import NoDeploymentsError
from bridge.operations.health.findings import Finding, Level
from bridge.operations.jobs import hosts
from bridge.operations.service import Service
from bridge.operations.temporal import translate_errors
from workflows.model.errors import UnreachableError
from workflows.policy.releases import is_newer
from workflows.text.plurals import quantity

_RIGHTS = "SELECT current_user, current_database(), current_schema(), has_schema_privilege(current_schema(), 'CREATE')"
_USED = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
_HOSTS = "SELECT count(*) FROM hosts WHERE stopped_at IS NULL"


NAME = "releases"
MOST, MOST_NAMED = 100, 3


def of_releases(service: Service) -> Iterator[Finding]:
    """Compare the running hosts' releases with the current one, which runs the trees' workflows, and count trees of
    other releases.
    """
    living = [host for host in hosts.every(service) if host.has_worker]
    try:
        current, behind = asyncio.run(_look(service))
    except UnreachableError:  # another check reports it
        return
    except NoDeploymentsError as error:
        says = f"this Temporal server has no Worker Deployments ({error}): hosts of all releases share the trees' steps"
        yield Finding(NAME, Level.WARNING, says, "upgrade all hosts together, or Temporal's server to 1.28 or newer")
        return
    if not current:
        yield Finding(NAME, Level.OK, "the first worker that starts chooses the release for all trees")
        return
    if living and current not in {host.version for host in living}:
        says = f"trees wait for release {current}, which no running host has"
        fix = f"wait a minute, or on a host: pip install delegation-service=={current}"
        yield Finding(NAME, Level.WRONG, says, fix)
    for host in living:
        yield from _of(host, current)
    says = f"{current} takes the steps of all trees"
    if behind:
        more = " or more" if len(behind) == MOST else ""
        some = f"{', '.join(behind[:MOST_NAMED])}{' and more' if len(behind) > MOST_NAMED else ''}"
        says += f"; on another until their next step: {quantity(len(behind), 'tree')}{more} ({some})"
    yield Finding(NAME, Level.OK, says)


def _of(host: HostRow, current: str) -> Iterator[Finding]:
    if host.version == current:
        return
    says = f"{host.name} runs release {host.version}, so it runs its jobs and takes no steps of trees"
    newer = f"upgrade another host: {host.version} takes the steps of trees once two hosts run it"
    older = f"on {host.name}: pip install -U delegation-service=={current}; service daemon stop; service daemon start"
    yield Finding(NAME, Level.WARNING, says, newer if is_newer(host.version, current) else older)


async def _look(service: Service) -> tuple[str, list[str]]:
    """Return the current release, and the trees whose last workflow step another release ran."""
    client = await connect_to_look(service.home, service.settings)
    with translate_errors("Temporal cannot say which release is current"):
        known = await worker_releases.deployment(client, service.settings)
        return known.current, await _behind(client, service, known.name, known.current) if known.current else []


async def _behind(client: Client, service: Service, name: str, current: str) -> list[str]:
    queue = service.settings.temporal.task_queue
    query = f"ExecutionStatus = 'Running' AND TaskQueue = '{queue}' AND ParentWorkflowId IS NULL"
    query += f" AND TemporalWorkerDeploymentVersion != '{name}:{current}'"
    return [each.id async for each in client.list_workflows(query, limit=MOST, rpc_timeout=RPC_TIMEOUT)]


def of_postgresql(connection: Connection, pool: int) -> Iterator[Finding]:
    """Check PostgreSQL's permissions and limits, without changing anything."""
    user, database, schema, makes = connection.execute(text(_RIGHTS)).one()
    if not makes:
        says = f"the account {user} may not make tables in the schema {schema} of the database {database}"
        grant = f'GRANT CREATE, USAGE ON SCHEMA "{schema}" TO "{user}"'
        yield Finding("store", Level.WRONG, says, f"as the database's owner: psql -d {database} -c '{grant}'")
    used = connection.execute(text(_USED)).scalar_one()
    seen = connections.capacity(connection, _hosts(connection), pool)
    hosts = "1 host needs" if seen.hosts == 1 else f"{seen.hosts} hosts need"
    says = f"PostgreSQL allows {seen.usable} connections, and {used} are open; {hosts} {seen.demand}"
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
