"""Ending a pause: checks that need no Temporal come first, then the tree decides (rulings F4, F5, F6).

The order is one value from the surface to the tree: `ResumeOrder`.
"""

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import WorkflowHandle

from activities.redaction.redact import redacted
from activities.store import events
from activities.store import jobs as stored_jobs
from activities.temporal import RPC_TIMEOUT
from bridge.operations.jobs import jobs, rounds
from bridge.operations.service import Service
from bridge.operations.temporal import (
    DeclinedError,
    NoWorkerError,
    NoWorkflowError,
    client_of,
    settled,
    translated,
)
from workflows.contract.faults import nearest
from workflows.contract.size_limits import fitted, short_line
from workflows.github.facts import COMMENT
from workflows.model.errors import Commands, NotFoundError, RefusedError, UsageError
from workflows.model.event_kinds import EventKind
from workflows.model.orders import ResumeOrder
from workflows.model.refusals import Refusal, ResumeFault
from workflows.model.rows import RoundRecord
from workflows.policy.answers import ASKS_BACK, SHOWN, TAKES, Verb, clean, refuse_length, refuse_order
from workflows.temporal.delegation_tree import DelegationTree
from workflows.text.durations import abbreviated
from workflows.tree.commands import CloseTree

PATIENCE = timedelta(seconds=4)
"""Seconds to wait for the tree's verdict before the order is left to Temporal."""

CATCHES_UP = 15.0
"""Seconds until a tree whose worker died while it wrote a round's rows has opened that round again."""

_ASKS_BACK = ASKS_BACK | {COMMENT}
"""The channels whose answers are checked here. Trees accept any comment, for old histories need that."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of an order."""

    message: str
    applied: bool
    """False if no worker took it in time: Temporal keeps the order, and it takes effect when a worker takes it."""


async def resume(service: Service, order: ResumeOrder) -> Verdict:
    """Send an order to a pause; return the verdict at once if a worker can give it."""
    if order.verb not in list(Verb):
        near = nearest(order.verb, list(Verb))
        hint = f"service resume {order.job_id} {f'{near} {_words(order)}' if near else ''}".rstrip()
        raise UsageError(f"{short_line(redacted(order.verb))!r} is not a verb; use one of {', '.join(Verb)}", hint)
    if order.verb == Verb.EXTEND:
        order = order.model_copy(update={"text": abbreviated(order.text)})
    root = jobs.get(service, order.job_id).root_job_id
    if taken := _taken_before(service, root, order):
        return taken
    if refusal := refuse_length(order.text):
        raise RefusedError(refusal.message, f"service job tree {order.job_id}")
    found = rounds.open_of(service, root)
    if not found and (task := stored_jobs.task_of(service.store, root)) and task.state.ended:
        raise _too_late(service, root, order)
    _check_answer(order, found)
    by = order.request_id or f"{order.channel}-{int(time.time())}-{uuid4().hex[:12]}"
    return await _carried(service, root, order.model_copy(update={"request_id": by, "text": clean(order.text)}))


def _words(order: ResumeOrder) -> str:
    """Return the words behind a verb as they are typed; nothing for long ones."""
    lines = redacted(order.text).splitlines() if len(order.text) <= SHOWN else []
    return lines[0] if order.channel == COMMENT and len(lines) == 1 else shlex.join(lines)


def _taken_before(service: Service, root: str, order: ResumeOrder) -> Verdict | None:
    """Return the verdict of an earlier order with this request id, whose sender may not have received it."""
    accepted = events.of_tree(service.store, root, kind=EventKind.RESUME_ACCEPTED) if order.request_id else []
    request = fitted("request", order.request_id)
    return next((Verdict(each.message, applied=True) for each in accepted if each.data.get("request") == request), None)


def _check_answer(order: ResumeOrder, found: list[RoundRecord]) -> None:
    """Check an answer before it is sent (ruling F5). All else about an order the tree says first, if it can."""
    mine = rounds.meant_by(order.job_id, found)
    if order.verb != Verb.ANSWER or order.channel not in _ASKS_BACK or len(mine) != 1:
        return
    if mine[0].questions and _is_meant(mine[0], order):
        _check_words(order, mine[0])


def _check_kept(order: ResumeOrder, found: list[RoundRecord]) -> None:
    """Refuse by the rows what the tree will refuse: without a worker it can't say so before the order is kept (F4)."""
    mine = rounds.meant_by(order.job_id, found)
    if len(mine) != 1:
        names = ", ".join(row.coordinator_id for row in mine)
        many, none = "several coordinators wait for a person, name one of them", "does not wait for a person"
        raise RefusedError(f"{many}: {names}" if mine else f"{order.job_id} {none}", "service attention")
    meant = mine[0]
    if not _is_meant(meant, order):
        raise RefusedError(f"{_named(meant)} is open now: look again", f"service job show {meant.coordinator_id}")
    if order.verb not in meant.verbs and order.verb in TAKES[meant.kind] and order.verb != Verb.ANSWER:
        takes = f"{_named(meant)} takes {', '.join(meant.verbs)} now, not {order.verb}"
        raise RefusedError(takes, Commands(*meant.commands))
    if order.verb not in meant.verbs or order.verb in TAKES[meant.kind]:  # one of 0.2.0 may take an abort
        _check_words(order, meant)


def _is_meant(row: RoundRecord, order: ResumeOrder) -> bool:
    return order.round in (None, row.number) and row.digest.startswith(order.digest)


def _named(row: RoundRecord) -> str:
    return f"round {row.number} of {row.coordinator_id}"


def _check_words(order: ResumeOrder, meant: RoundRecord) -> None:
    """Refuse a verb of the other kind of round, and an answer that the tree would not take completely."""
    asks, whole = {question.id: question.choices for question in meant.questions}, order.channel in _ASKS_BACK

    def refusal_of(text: str) -> Refusal | None:
        said = order.model_copy(update={"text": text})
        return refuse_order(said, meant.kind, asks, meant.coordinator_id, _named(meant), whole=whole)

    if refusal := refusal_of(order.text):
        # A refusal quotes the beginning of a long text, and half a secret would not be recognized: redact first.
        refusal = refusal_of(redacted(order.text)) or refusal
        raise RefusedError(refusal.message, _lines_to_type(refusal.data, order.job_id))


async def _carried(service: Service, root: str, order: ResumeOrder) -> Verdict:
    """Send the order and return the tree's verdict; without a worker, return that the order is kept."""
    client, until = await client_of(service), time.monotonic() + CATCHES_UP
    while True:
        try:
            return await _asked(client.get_workflow_handle(root), order, lambda: rounds.open_of(service, root))
        except DeclinedError as no:
            if no.kind == ResumeFault.NO_OPEN_ROUND and rounds.open_of(service, root) and time.monotonic() < until:
                await asyncio.sleep(0.2)
                continue
            if no.kind == ResumeFault.UNKNOWN_JOB:
                raise NotFoundError(no.message, f"service job tree {order.job_id}") from None
            raise RefusedError(no.message, _lines_to_type(no.data, order.job_id)) from None
        except NoWorkflowError:
            await settled(service, client, root)
            break
    raise _too_late(service, root, order)


async def _asked(
    handle: WorkflowHandle[DelegationTree, CloseTree], order: ResumeOrder, waiting: Callable[[], list[RoundRecord]]
) -> Verdict:
    """Send the order as an update; as a signal if no worker answers and the rows don't speak against it."""
    try:
        with translated():
            answer: Any = await handle.execute_update(
                "resume", order, id=order.request_id, result_type=str, rpc_timeout=PATIENCE
            )
        return Verdict(str(answer), applied=True)
    except NoWorkerError:
        _check_kept(order, waiting())
        # Both carry one request id: the tree acts once, whichever arrives.
        with translated():
            await handle.signal("resume", order, rpc_timeout=RPC_TIMEOUT)
    kept = f"{order.verb} {short_line(redacted(order.text), 300)}".strip()
    return Verdict(f"no worker has taken it yet; it is kept, and takes effect when one does: {kept}", applied=False)


def _too_late(service: Service, root: str, order: ResumeOrder) -> RefusedError:
    """Return the error for an order that came after the tree's end: who ended the round, how and when (ruling F4)."""
    task = stored_jobs.task_of(service.store, root)
    ended = f"the tree {root} has ended ({task.state})" if task else f"the tree {root} has ended"
    over = rounds.last_words(service, root, order.job_id, order.round)
    way_on = task.next if task and task.next else f"service job tree {root}"
    return RefusedError(f"{ended}; {over or 'nothing in it waits'}", way_on)


def _lines_to_type(data: Mapping[str, object], job_id: str) -> str:
    """Return the commands that a refusal's data suggests, else the one that shows the tree."""
    lines = data.get("commands")
    return Commands(*map(str, lines)) if isinstance(lines, list) and lines else f"service job tree {job_id}"
