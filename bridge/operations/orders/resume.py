"""Sending an order to a pause. The tree's workflow decides on it; if no worker answers, the store's rows do (rulings
F4, F5, F6).

The order is a `ResumeOrder` all the way from the caller to the tree.
"""

import asyncio
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import WorkflowHandle

from activities.redaction.redact import redact_text
from activities.stations.hook import reach
from activities.store import event_rows, job_rows
from activities.temporal import RPC_TIMEOUT
from bridge.operations.jobs import jobs, rounds
from bridge.operations.service import Service
from bridge.operations.temporal import (
    CATCHES_UP,
    NoWorkerError,
    NoWorkflowError,
    OrderDeclinedError,
    client_of,
    settle,
    translate_errors,
)
from workflows.contract.faults import nearest
from workflows.contract.size_limits import cut_to_bound
from workflows.contract.storable import short_line
from workflows.github.facts import COMMENT
from workflows.model.errors import Commands, NotFoundError, RefusedError, UsageError
from workflows.model.event_kinds import EventKind
from workflows.model.orders import ResumeOrder
from workflows.model.refusals import ResumeFault
from workflows.model.rows import RoundRecord
from workflows.policy.answers import SHOWN, SHOWS_REFUSALS, TAKES, Verb, clean, refuse_length, refuse_order
from workflows.temporal.delegation_tree import DelegationTree
from workflows.text.durations import abbreviate
from workflows.tree.commands import CloseTree

PATIENCE = timedelta(seconds=4)
"""Seconds to wait for the tree's verdict before the order is left to Temporal."""


@dataclass(frozen=True)
class ResumeOutcome:
    """The outcome of an order."""

    message: str
    applied: bool
    """False if no worker took the order in time: Temporal keeps it until a worker does."""


async def resume(service: Service, order: ResumeOrder) -> ResumeOutcome:
    """Send an order to a pause; return the verdict at once if a worker can give it."""
    if order.verb not in list(Verb):
        near = nearest(order.verb, list(Verb))
        hint = f"service resume {order.job_id} {f'{near} {_words(order)}' if near else ''}".rstrip()
        raise UsageError(f"{short_line(redact_text(order.verb))!r} is not a verb; use one of {', '.join(Verb)}", hint)
    if order.verb == Verb.EXTEND:
        order = order.model_copy(update={"text": abbreviate(order.text)})
    root = jobs.get(service, order.job_id).root_job_id
    if taken := _taken_before(service, root, order):
        return taken
    if refusal := refuse_length(order.text):
        raise RefusedError(refusal.message, f"service job tree {order.job_id}")
    if not rounds.open_of(service, root) and (task := job_rows.task_of(service.store, root)) and task.state.has_ended:
        raise _too_late(service, root, order)
    by = order.request_id or f"{order.channel}-{int(time.time())}-{uuid4().hex[:12]}"
    return await _carry_out(service, root, order.model_copy(update={"request_id": by, "text": clean(order.text)}))


def _words(order: ResumeOrder) -> str:
    """Return the words to type behind the verb; none if they are long."""
    lines = redact_text(order.text).splitlines() if len(order.text) <= SHOWN else []
    return lines[0] if order.channel == COMMENT and len(lines) == 1 else shlex.join(lines)


def _taken_before(service: Service, root: str, order: ResumeOrder) -> ResumeOutcome | None:
    """Return the verdict of an earlier order with this request id, whose sender may not have received it."""
    if not order.request_id:
        return None
    accepted = event_rows.of_tree(service.store, root, kind=EventKind.RESUME_ACCEPTED)
    request = cut_to_bound("request", order.request_id)
    return next(
        (ResumeOutcome(row.message, applied=True) for row in accepted if row.data.get("request") == request), None
    )


def _refuse_by_rows(order: ResumeOrder, waiting: list[RoundRecord]) -> None:
    """Check an order against the store's rows, and refuse what the tree would refuse. Without a worker, the tree can't
    check it before Temporal keeps the order (F4).
    """
    mine = rounds.meant_by(order.job_id, waiting)
    if len(mine) != 1:
        names = ", ".join(row.coordinator_id for row in mine)
        many, none = "several jobs need an answer, name one of them", "needs no answer"
        raise RefusedError(f"{many}: {names}" if mine else f"{order.job_id} {none}", "service attention")
    meant = mine[0]
    name = f"round {meant.number} of {meant.coordinator_id}"
    if order.round not in (None, meant.number) or not meant.digest.startswith(order.digest):
        raise RefusedError(f"{name} is open now: look again", f"service job show {meant.coordinator_id}")
    if order.verb not in meant.verbs and order.verb in TAKES[meant.kind] and order.verb != Verb.ANSWER:
        takes = f"{name} takes {', '.join(meant.verbs)} now, not {order.verb}"
        raise RefusedError(takes, Commands(*meant.commands))
    if order.verb not in meant.verbs or order.verb in TAKES[meant.kind]:  # one of 0.2.0 may take an abort
        asks = {question.id: question.choices for question in meant.questions}
        whole = order.channel in SHOWS_REFUSALS
        if refusal := refuse_order(order, meant.kind, asks, meant.coordinator_id, name, whole=whole):
            raise _refusal(refusal.message, refusal.data, order.job_id)


async def _carry_out(service: Service, root: str, order: ResumeOrder) -> ResumeOutcome:
    """Send the order and return the tree's verdict; without a worker, return that the order is kept."""
    client, until = await client_of(service), time.monotonic() + CATCHES_UP
    while True:
        try:
            return await _send(service, client.get_workflow_handle(root), root, order)
        except OrderDeclinedError as no:
            if no.kind == ResumeFault.NO_OPEN_ROUND and rounds.open_of(service, root) and time.monotonic() < until:
                await asyncio.sleep(0.2)
                continue
            if no.kind == ResumeFault.UNKNOWN_JOB:
                raise NotFoundError(no.message, f"service job tree {order.job_id}") from None
            raise _refusal(no.message, no.data, order.job_id) from None
        except NoWorkflowError:
            await settle(service, client, root)
            if taken := _taken_before(service, root, order):
                return taken
            raise _too_late(service, root, order) from None


async def _send(
    service: Service, handle: WorkflowHandle[DelegationTree, CloseTree], root: str, order: ResumeOrder
) -> ResumeOutcome:
    """Send the order as an update; as a signal if no worker answers and the store's rows allow it."""
    try:
        with translate_errors():
            answer: Any = await handle.execute_update(
                "resume", order, id=order.request_id, result_type=str, rpc_timeout=PATIENCE
            )
        reach("answer taken", order.job_id)
        return ResumeOutcome(str(answer), applied=True)
    except NoWorkerError:
        if taken := _taken_before(service, root, order):  # its worker died when it had written that
            return taken
        _refuse_by_rows(order, rounds.open_of(service, root))
        # Both carry one request id: the tree acts once, whichever arrives.
        with translate_errors():
            await handle.signal("resume", order, rpc_timeout=RPC_TIMEOUT)
    kept = f"{order.verb} {short_line(redact_text(order.text), 300)}".strip()
    return ResumeOutcome(
        f"no worker has taken it yet; it is kept, and takes effect when one does: {kept}", applied=False
    )


def _too_late(service: Service, root: str, order: ResumeOrder) -> RefusedError:
    """Return the error for an order that came after the tree's end: who ended the round, how and when (ruling F4)."""
    task = job_rows.task_of(service.store, root)
    ended = f"the task {root} has ended ({task.state})" if task else f"the task {root} has ended"
    over = rounds.end_in_words(service, root, order.job_id, order.round)
    way_on = task.next if task and task.next else f"service job tree {root}"
    return RefusedError(f"{ended}; {over or 'nothing in it waits'}", way_on)


def _refusal(message: str, data: Mapping[str, object], job_id: str) -> RefusedError:
    """Return a refusal without secrets, with the commands that its data suggests, else the one that shows the tree."""
    commands = data.get("commands")
    lines = commands if isinstance(commands, list) and commands else [f"service job tree {job_id}"]
    return RefusedError(redact_text(message), Commands(*(redact_text(str(line)) for line in lines)))
