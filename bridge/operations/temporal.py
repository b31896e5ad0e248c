"""The operations' access to Temporal: translates its failures into the service's own errors (ruling K6)."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from temporalio.client import (
    Client,
    ScheduleAlreadyRunningError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities import ended_outside
from activities.cluster import refusal_of
from activities.host.admission import JoiningHost, check_key
from activities.settings import ready
from activities.temporal import connect, namespace_of
from bridge.operations.service import Service
from workflows.model.errors import RefusedError, UnreachableError
from workflows.model.rows import Records
from workflows.temporal.seals import UnsealedError

CATCHES_UP = 15.0
"""Seconds in which a tree comes again to where its rows are, if its worker died while it wrote them."""
NOT_TAKEN = "Temporal did not accept the order"
NOT_BELIEVED = "Temporal's answer has no valid seal: {why}; somebody else may have answered in the service's place"


class NoWorkflowError(UnreachableError):
    """No workflow or schedule has this id."""


class AlreadyStartedError(RefusedError):
    """A workflow of this id is running, or ran and may not run again."""


class InvalidError(UnreachableError):
    """The Temporal server rejects an argument; `why` is its reason."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message, "service daemon status")
        self.why = why


class NoWorkerError(UnreachableError):
    """No worker answered in time, and the order may still be carried out; or none has for so long that Temporal refused
    it at once.
    """


class OrderDeclinedError(RefusedError):
    """The workflow refuses an order. `kind` is the code of the reason; `data` may be shown beside the message."""

    def __init__(self, cause: BaseException) -> None:
        refusal = cause if isinstance(cause, ApplicationError) else None
        super().__init__(refusal.message if refusal else str(cause))
        self.kind = refusal.type if refusal else None
        self.data: Mapping[str, Any] = refusal.details[0] if refusal and refusal.details else {}


async def client_of(service: Service) -> Client:
    """Return this process's Temporal client. Raise if the server can't be reached, or if the fleet does not admit this
    host.
    """
    if service.settings.store.url:
        await asyncio.to_thread(check_key, candidate(service))
    return await connect(service.home, service.settings)


def candidate(service: Service) -> JoiningHost:
    """Return this host as a candidate for admission to the fleet."""
    namespace = namespace_of(service.home, service.settings)
    return JoiningHost(service.store, service.home, service.settings, namespace)


@contextmanager
def translate_errors(message: str = NOT_TAKEN) -> Iterator[None]:
    """Translate Temporal's errors into the service's own; `message` begins the message of an unexpected error."""
    try:
        yield
    except ScheduleAlreadyRunningError:
        raise AlreadyStartedError("it is scheduled already") from None
    except WorkflowUpdateFailedError as error:
        raise OrderDeclinedError(error.cause) from None
    except UnsealedError as error:
        raise UnreachableError(NOT_BELIEVED.format(why=error.message), "service doctor") from None
    except WorkflowUpdateRPCTimeoutOrCancelledError:
        raise NoWorkerError("no worker took the order in time; it may still be carried out") from None
    except RPCError as error:
        match error.status:
            case RPCStatusCode.NOT_FOUND:
                raise NoWorkflowError(f"{message}: {error}", "service daemon status") from None
            case RPCStatusCode.FAILED_PRECONDITION:
                raise NoWorkerError(f"{message}: {error}", "service daemon status") from None
            case RPCStatusCode.INVALID_ARGUMENT:
                raise InvalidError(f"{message}: {error}", str(error)) from None
            case _:
                raise UnreachableError(f"{message}: {error}", "service daemon status") from None


@asynccontextmanager
async def starting(client: Client, what: str) -> AsyncIterator[None]:
    """Translate errors of starting a workflow, and name what the server lacks if that is the cause."""
    try:
        yield
    except WorkflowAlreadyStartedError as error:
        raise AlreadyStartedError(f"{error.workflow_id} was started already") from None
    except (RPCError, RuntimeError, OSError) as error:
        raise await refusal_of(client, error, what) from None


async def settle(service: Service, client: Client, root: str) -> Records | None:
    """Run housekeeping's check of a tree without a workflow now. Return None if the tree has a workflow or has
    ended.
    """
    with translate_errors(f"Temporal cannot say how {root} ended"):
        return await ended_outside.settle(client, service.store, service.settings.temporal.task_queue, root)


def web_ui_details(service: Service, command: str, page: str, github: str = "") -> str:
    """Return the command, the dashboard's page if a bridge serves it, and the GitHub address if there is one."""
    address = ready.dashboard_url(service.home, service.settings.bridge)
    places = (
        f"In a terminal: `{command}`",
        f"On the page: {address}{page}" if address else "",
        f"On GitHub: {github}" if github else "",
    )
    return "\n\n".join(place for place in places if place)
