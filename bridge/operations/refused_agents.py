"""Refusing agents' orders that only people may give. Each attempt is recorded as an event of the agent's tree (ruling
N5).
"""

import time
from contextlib import suppress
from hashlib import sha256
from typing import NoReturn

from sqlalchemy.exc import SQLAlchemyError

from activities.runs.ancestry import AgentProcess
from activities.settings.home import Home
from activities.store import event_rows, job_rows
from bridge.operations.service import Service
from workflows.model.errors import RefusedError, ServiceError
from workflows.model.event_kinds import EventKind
from workflows.model.ids import root_of
from workflows.model.rows import EventRecord


class ForPeopleError(RefusedError):
    """An agent called what only people may call."""

    code = "for_people"
    status = 403


class UnknownCallerError(RefusedError):
    """The caller is unknown, and may be an agent that runs here."""

    code = "unknown_caller"
    status = 403


def refuse(agent: AgentProcess, what: str, instead: str, home: Service) -> NoReturn:
    """Refuse an agent's order, and say what it can do instead; record the event once per job and order.

    The event is recorded in the home of the agent's job, even if the agent's environment names another home.
    """
    refusal = f"{what} is for people, and {agent} has called it"
    if agent.job_id is not None:
        of_job = Service(Home(agent.home)) if agent.home else home
        with suppress(SQLAlchemyError, OSError, ServiceError):  # it is refused even if that cannot be recorded
            _record(of_job, agent.job_id, what, f"{refusal}; it was refused")
    raise ForPeopleError(refusal, instead)


def _record(service: Service, job_id: str, what: str, message: str) -> None:
    if job_rows.get(service.store, job_id) is None:
        return
    event_rows.tell(service.store, [event_of(job_id, what, message, time.time())])


def event_of(job_id: str, what: str, message: str, now: float) -> EventRecord:
    """Build the event of a refused order; a repetition by the same job gets the same event id."""
    kind = EventKind.AGENT_REFUSED
    return EventRecord(
        event_id=f"{job_id}-{kind}-{sha256(what.encode()).hexdigest()[:8]}",
        job_id=job_id,
        root_job_id=root_of(job_id) or job_id,
        kind=kind.value,
        at=now,
        message=message,
        data={"job_id": job_id, "order": what},
    )
