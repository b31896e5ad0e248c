"""Outages of the service's parts: the store, Temporal, the worker. Every page shows them (ruling M5)."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from activities.settings import ready
from bridge.operations.service import Service
from bridge.operations.temporal import client_of
from workflows.model.errors import ServiceError, UnreachableError


@dataclass(frozen=True)
class Outage:
    """An unreachable part, the consequence for the viewer of a page, and the command to type."""

    what: str
    means: str
    fix: str


async def find_outages(service: Service) -> tuple[Outage, ...]:
    """Return every part of the service that cannot be reached now."""
    missing = []
    try:
        with service.store.connect() as connection:
            connection.execute(text("SELECT 1"))
    except DBAPIError:
        missing.append(Outage("The store cannot be reached", "Nothing can be shown or recorded.", "service doctor"))
    try:
        await client_of(service)
    except ServiceError as error:
        means = "What is shown is what was recorded last; what you order now is refused."
        what = "Temporal does not answer" if isinstance(error, UnreachableError) else error.message
        missing.append(Outage(what, means, error.hint))
    worker = ready.read(service.home.worker_ready)
    if worker is None or not worker.alive:
        means = "Nothing moves on; what you answer is kept and takes effect when it is back."
        missing.append(Outage("No worker runs on this machine", means, "service daemon start"))
    return tuple(missing)
