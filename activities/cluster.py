"""What the service needs on a Temporal server that it doesn't run itself: a namespace, and search attributes of the
right type.

`survey` lists the missing parts, `require` raises with them, `make` creates them if the caller has the right.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from activities.cluster_commands import ServerNamespace, commands, removal
from activities.temporal import RPC_TIMEOUT
from workflows.model.errors import ServiceError, UnreachableError
from workflows.temporal import search
from workflows.text.durations import format_duration

if TYPE_CHECKING:
    from temporalio.api.workflowservice.v1 import DescribeNamespaceResponse
    from temporalio.client import Client
    from temporalio.service import RPCError, RPCStatusCode

RETENTION = timedelta(days=30)
SETTLE_SECONDS = 60.0
"""Time limit for a server until all of it knows a new namespace or search attribute."""

PROBES = 8
"""Number of workflow ids to ask for, so that several hosts of the history service are reached."""

Waits = Callable[[str], None]
"""A callback that gets a description of what `make` waits for."""

_PAUSE = 0.5
_TYPE = "INDEXED_VALUE_TYPE_"


class NotPreparedError(UnreachableError):
    """The server answers, but lacks a namespace or search attributes that the service needs. Nothing was recorded."""

    code = "cluster_not_prepared"


@dataclass(frozen=True)
class Survey:
    """The parts that a server has and lacks."""

    server: ServerNamespace
    there: bool
    """True if the namespace exists."""
    retention: timedelta = timedelta()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Missing search attributes and their required types."""
    wrong: Mapping[str, str] = field(default_factory=dict)
    """Search attributes of another type, with that type."""

    @property
    def faults(self) -> tuple[str, ...]:
        """Return a sentence for each fault."""
        namespace = self.server.namespace
        return (
            *(() if self.there else (f"the namespace {namespace} does not exist at {self.server.address}",)),
            *((f"the search attributes {', '.join(self.missing)} are missing",) if self.there and self.missing else ()),
            *(
                f"the search attribute {name} is {kind} there and must be {search.NAMES[name]}"
                for name, kind in self.wrong.items()
            ),
        )

    @property
    def fix(self) -> str:
        """Return the command that repairs the first fault."""
        return removal(self.server, tuple(self.wrong)) if self.wrong else "service cluster init"


@dataclass(frozen=True)
class Made:
    """The parts that were made or existed, and commands for those that this caller may not make."""

    said: tuple[str, ...]
    by_hand: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the report as text: what was made, then the commands."""
        return *self.said, *(("by hand:", *(f"  {line}" for line in self.by_hand)) if self.by_hand else ())


async def sends_cancellations(client: "Client") -> bool:
    """Return whether the server announces that it sends commands, such as an activity's cancellation, to workers.

    A second setting, which the server doesn't show, must be on too. Without it, workers learn of cancellations from
    heartbeats.
    """
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

    request = DescribeNamespaceRequest(namespace=client.namespace)
    described = await client.workflow_service.describe_namespace(request, timeout=RPC_TIMEOUT)
    return described.namespace_info.capabilities.worker_commands


async def survey(client: "Client") -> Survey:
    """Query what the server has and lacks; change nothing."""
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
    from temporalio.service import RPCError, RPCStatusCode

    server = ServerNamespace(client.service_client.config.target_host, client.namespace)
    try:
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=server.namespace), timeout=RPC_TIMEOUT
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return Survey(server, there=False, missing=search.NAMES)
        raise UnreachableError(
            f"the namespace {server.namespace} cannot be looked up at {server.address}: {error.message}",
            "check the API key or certificate in the TEMPORAL_* variables or the profile",
        ) from None
    kinds = await _kinds(client, described)
    return Survey(
        server,
        there=True,
        retention=described.config.workflow_execution_retention_ttl.ToTimedelta(),
        missing={name: kind for name, kind in search.NAMES.items() if name not in kinds},
        wrong={name: kinds[name] for name, kind in search.NAMES.items() if kinds.get(name, kind) != kind},
    )


async def require(client: "Client") -> Survey:
    """Return the survey; raise NotPreparedError with the command to type if anything is missing."""
    seen = await survey(client)
    if seen.faults:
        raise NotPreparedError("; ".join(seen.faults), seen.fix)
    return seen


async def probe(client: "Client") -> None:
    """Raise UnreachableError unless the services behind the server's frontend answer.

    Workflows are spread over the hosts of the history service by their ids, so several ids of missing workflows are
    asked for.
    """
    from temporalio.api.common.v1 import WorkflowExecution
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeWorkflowExecutionRequest

    service, namespace = client.workflow_service, client.namespace
    await asyncio.gather(
        *(
            _answers(
                client,
                "history",
                service.describe_workflow_execution(
                    DescribeWorkflowExecutionRequest(
                        namespace=namespace, execution=WorkflowExecution(workflow_id=f"service-doctor-{number}")
                    ),
                    timeout=RPC_TIMEOUT,
                ),
            )
            for number in range(PROBES)
        ),
        _answers(
            client,
            "matching",
            service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=namespace,
                    task_queue=TaskQueue(name="service-doctor"),
                    task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
                ),
                timeout=RPC_TIMEOUT,
            ),
        ),
        _answers(
            client, "visibility", client.count_workflows("WorkflowId = 'service-doctor'", rpc_timeout=RPC_TIMEOUT)
        ),
    )


async def _answers(client: "Client", what: str, call: Awaitable[object]) -> None:
    """Raise if a call fails because a service of the server is down. "Not found" and "permission denied" count as
    answers.
    """
    from temporalio.service import RPCError, RPCStatusCode

    try:
        await call
    except RPCError as error:
        if error.status in {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.INTERNAL}:
            address = client.service_client.config.target_host
            says = f"{address} takes calls, but its {what} service does not answer: {error.message}"
            raise UnreachableError(says, "look at the logs of that Temporal server") from None


async def refusal_of(client: "Client", error: Exception, what: str) -> ServiceError:
    """Return the reason why Temporal refused a call: the server's missing parts, or else its own words."""
    try:
        await require(client)
    except ServiceError as lacking:
        return lacking
    return UnreachableError(f"Temporal did not accept {what}: {error}", "service daemon status")


async def make(client: "Client", retention: timedelta | None, waits: Waits = lambda _: None) -> Made:
    """Make the missing parts. Idempotent. An existing retention stays unless another one is requested."""
    from temporalio.service import RPCError

    seen, steps = await survey(client), list[str]()
    try:
        steps.append(await _make_namespace(client, seen, retention))
        steps += await _make_attributes(client, seen, waits)
    except RPCError as error:
        if not _may_not(error):
            raise UnreachableError(
                f"{seen.server.address} failed to do it: {error.message}", "service doctor"
            ) from None
        steps.append(f"this account may create nothing more at {seen.server.address}: {error.message}")
        return Made(tuple(steps), commands(await survey(client), retention or RETENTION))
    wrong = removal(seen.server, tuple(seen.wrong)) if seen.wrong else ""
    return Made((*steps, *(await survey(client)).faults), (wrong, "service cluster init") if wrong else ())


async def _make_namespace(client: "Client", seen: Survey, wanted: timedelta | None) -> str:
    from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest, UpdateNamespaceRequest

    name, length = seen.server.namespace, wanted or RETENTION
    if not seen.there:
        request = RegisterNamespaceRequest(namespace=name)
        request.workflow_execution_retention_period.FromTimedelta(length)
        await client.workflow_service.register_namespace(request, timeout=RPC_TIMEOUT)
        return f"created the namespace {name}, which keeps ended workflows for {_days(length)}"
    if wanted is None or wanted == seen.retention:
        return f"the namespace {name} existed; it keeps ended workflows for {_days(seen.retention)}"
    change = UpdateNamespaceRequest(namespace=name)
    change.config.workflow_execution_retention_ttl.FromTimedelta(wanted)
    await client.workflow_service.update_namespace(change, timeout=RPC_TIMEOUT)
    before = f"{_days(seen.retention)} before"
    return f"the namespace {name} existed; it keeps ended workflows for {_days(wanted)} now, {before}"


async def _make_attributes(client: "Client", seen: Survey, waits: Waits) -> list[str]:
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
    from temporalio.service import RPCStatusCode

    had = [name for name in search.NAMES if name not in seen.missing and name not in seen.wrong]
    steps = [f"{len(had)} search attributes existed: {', '.join(had)}"] if had else []
    if not seen.missing:
        return steps
    kinds = {name: IndexedValueType.Value(_TYPE + kind.upper()) for name, kind in seen.missing.items()}
    request = AddSearchAttributesRequest(namespace=seen.server.namespace, search_attributes=kinds)
    settling, server = RPCStatusCode.NOT_FOUND, seen.server
    waits(f"waiting until {server.address} knows the namespace {server.namespace}")
    await _settle(lambda: client.operator_service.add_search_attributes(request, timeout=RPC_TIMEOUT), settling)
    # A query with all of them is refused until they can be used.
    query = " AND ".join(f"{name} IS NULL" for name in kinds)
    settling = RPCStatusCode.INVALID_ARGUMENT
    waits(f"waiting until {server.address} can search by {len(kinds)} new attributes")
    await _settle(lambda: client.count_workflows(query, rpc_timeout=RPC_TIMEOUT), settling)
    return [*steps, f"created {len(kinds)} search attributes: {', '.join(kinds)}"]


async def _settle(call: Callable[[], Awaitable[object]], settling: "RPCStatusCode") -> None:
    from temporalio.service import RPCError

    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            await call()
        except RPCError as error:
            if error.status is not settling or time.monotonic() > deadline:
                raise
        else:
            return
        await asyncio.sleep(_PAUSE)


async def _kinds(client: "Client", described: "DescribeNamespaceResponse") -> dict[str, str]:
    """Return the name and type of every search attribute. Fall back to the namespace's aliases if this client may not
    list search attributes, or if the server does not know a new namespace yet.
    """
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
    from temporalio.service import RPCError, RPCStatusCode

    try:
        listing = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
        )
    except RPCError as error:
        # A new namespace may not be known yet by all of the server.
        if error.status is not RPCStatusCode.NOT_FOUND and not _may_not(error):
            raise UnreachableError(
                f"its search attributes cannot be listed: {error.message}", "service doctor"
            ) from None
        aliases = described.config.custom_search_attribute_aliases
        return {name: column.rstrip("0123456789") for column, name in aliases.items()}
    constants = {name: IndexedValueType.Name(kind) for name, kind in listing.custom_attributes.items()}
    # Types as the `temporal` program names them: `KeywordList`.
    return {name: kind.removeprefix(_TYPE).title().replace("_", "") for name, kind in constants.items()}


def _may_not(error: "RPCError") -> bool:
    """Return whether the caller lacks permission, as on Temporal Cloud and on servers with an authorizer."""
    from temporalio.service import RPCStatusCode

    refusals = {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED}
    return error.status in refusals


def _days(length: timedelta) -> str:
    return format_duration(length.total_seconds())
