"""One command of a comment, carried out by the operation that every other surface uses (rulings F6, L4).

It is judged by the pauses that were open when the comment was written: services on one thread act at different times,
and if each went by its own time, one could take an answer as its own that another refused.
"""

import asyncio
import re
from collections.abc import Awaitable
from dataclasses import dataclass

from activities.github import api
from activities.github.models import Comment as ReadComment
from activities.store import job_rows
from activities.store.github import threads
from activities.store.github.threads import CommentRow, Thread
from activities.store.registry import repo_rows
from bridge.github.session import Session
from bridge.operations.jobs import rounds
from bridge.operations.orders import new_jobs, trees
from bridge.operations.orders.new_jobs import NewJob
from bridge.operations.orders.resume import resume
from workflows.contract.models import Action
from workflows.github.commands import Kill, Resume, Retry, Said, Start, Status, Unknown
from workflows.github.comment import Comment, task_from_comment
from workflows.github.facts import COMMENT, fact_of, marked, pause_id
from workflows.model import ids
from workflows.model.errors import NotFoundError, RefusedError, ServiceError
from workflows.model.orders import ResumeOrder, signed
from workflows.model.rows import RoundRecord
from workflows.policy.answers import Meant, Verb, line_to_type, refuse_duration

_PAUSE = re.compile(r"(job-[0-9a-z]++).*-r[0-9]+-pause")
"""The marker of a pause comment; while the pause is open, the comment says which command to write."""

SECOND = 1.0
"""GitHub rounds times down to whole seconds."""


class NotOursError(Exception):
    """The command addresses another service that works on this repository."""


@dataclass(frozen=True)
class Asked:
    """The comment that contains a command, and the command's idempotency key."""

    row: CommentRow
    comment: Comment
    request_id: str


@dataclass(frozen=True)
class Did:
    """The result of a command."""

    says: str
    job_id: str | None = None
    report: str = ""
    """The root ids that a status reports on, one a line."""


@dataclass(frozen=True)
class _Pauses:
    """The rounds that a comment can mean."""

    mine: tuple[RoundRecord, ...]
    others: frozenset[str]
    """The roots of other services' trees."""
    now: tuple[RoundRecord, ...]
    """Our rounds that are open now: the refusal suggests their commands."""

    @property
    def lines(self) -> str:
        """The corrected commands to suggest, each with its job."""
        return "\n".join(each.commands[0] for each in self.now if each.commands)

    def lines_for(self, said: Resume) -> str:
        """Return the commands that keep what is right in an order which lacks only the job."""
        return "\n".join(_line(each, said) for each in self.now if each.commands)


def carry_out(session: Session, asked: Asked, said: Said) -> Awaitable[Did]:
    """Carry out a command. Raise ServiceError with the reason if it is refused."""
    match said:
        case Resume():
            return _resume(session, asked, said)
        case Kill():
            return _kill(session, asked, said)
        case Retry():
            return _retry(session, asked, said)
        case Start():
            return _start(session, asked, said)
        case Status():
            return _status(session, asked)
        case Unknown():
            raise ValueError("an unknown command is refused before")


async def is_for_us(session: Session, asked: Asked, said: Said) -> bool:
    """Return whether the command addresses this service, by its job, its thread or its repository."""
    try:
        match said:
            case Resume(job=job) | Kill(job=job) | Retry(job=job) if job:
                await _job(session, asked, job)
            case Resume() | Kill() | Retry() | Status():
                return bool(await asyncio.to_thread(_threads, session, asked.row))
            case Start():
                await asyncio.to_thread(_repo_of, session, asked.row.github)
            case Unknown():
                pass
    except NotOursError:
        return False
    except ServiceError:
        pass
    return True


async def _resume(session: Session, asked: Asked, said: Resume) -> Did:
    job, number = await _meant(session, asked, said)
    order = ResumeOrder(
        actor=asked.comment.author,
        channel=COMMENT,
        job_id=job,
        verb=said.verb,
        text=said.text,
        round=number,
        partial=said.partial,
        other=said.other,
        request_id=asked.request_id,
    )
    verdict = await resume(session.service, order)
    return Did(verdict.message, job)


async def _meant(session: Session, asked: Asked, said: Resume) -> tuple[str, int | None]:
    """Return the job that a command means, and the number of its round that was open when the comment was written."""
    if said.job:
        job = await _job(session, asked, said.job)
        found = await _open_then(session, asked.row, [ids.root_of(job) or job])
        return job, _round_of(job, found)
    here = await asyncio.to_thread(_threads, session, asked.row)
    if not here:
        raise NotOursError
    roots = [thread.root_job_id for thread in here]
    found = await _open_then(session, asked.row, roots)
    tasks = await asyncio.to_thread(job_rows.tasks_of, session.store, roots)
    if not (found.mine or found.others) and tasks and all(task.state.closed for task in tasks.values()):
        over = ", ".join(f"{root} is {task.state}" for root, task in tasks.items())
        raise RefusedError(f"nothing on #{asked.row.number} waits for a person any more: {over}")
    only = _only_round(asked, said, found)
    return only.coordinator_id, only.number


async def _kill(session: Session, asked: Asked, said: Kill) -> Did:
    job = await _job(session, asked, said.job) if said.job else await _only_tree(session, asked)
    killed = await trees.kill(session.service, job, actor=signed(asked.comment.author, COMMENT), immediate=False)
    return Did(f"{killed.root_job_id} is being ended", job)


async def _retry(session: Session, asked: Asked, said: Retry) -> Did:
    job, by = await _job(session, asked, said.job), signed(asked.comment.author, COMMENT)
    retried = await trees.retry(session.service, job, actor=by, request_id=asked.request_id)
    return Did(f"{retried.job_id} runs again", job)


async def _start(session: Session, asked: Asked, said: Start) -> Did:
    """Start a tree under an id that is reserved first: a retry finds the tree of the first attempt."""
    row, store = asked.row, session.store
    repo = await asyncio.to_thread(_repo_of, session, row.github)
    root = await asyncio.to_thread(threads.reserve_job, store, row.comment_id, trees.new_root_id())
    thread = await api.issue(session.client, row.github, row.number)
    on_pull = thread.pull_request is not None
    by = asked.comment.author
    caveat = f"#{row.number} was closed on GitHub when {by} ordered this there" if thread.state == "closed" else ""
    new = NewJob(
        agent=said.agent,
        action=said.action.value,
        message=task_from_comment(asked.comment, said.text, repo),
        repo=repo,
        pull_request=row.number if on_pull else None,
        issue=None if on_pull else row.number,
        goal=said.text,
        read_only=Action.IMPLEMENT not in session.service.settings.github.commands,
        caveat=caveat,
    )
    started = f"{await new_jobs.start(session.service, new, root, session.client.token)} is started"
    return Did(f"{started}; {caveat}" if caveat else started, root)


async def _status(session: Session, asked: Asked) -> Did:
    found = await asyncio.to_thread(_threads, session, asked.row)
    if not found:
        raise NotOursError
    return Did("the status was given", report="\n".join(each.root_job_id for each in found))


async def _job(session: Session, asked: Asked, job_id: str) -> str:
    """Return the named job if its tree is discussed on this thread."""
    root = ids.root_of(job_id)
    here = {each.root_job_id for each in await asyncio.to_thread(_threads, session, asked.row)}
    if root in here:
        return job_id
    task = await asyncio.to_thread(job_rows.task_of, session.store, root) if root else None
    if task is not None:
        raise RefusedError(f"{job_id} is discussed elsewhere, not on #{asked.row.number}")
    if root and await _is_anothers(session, asked, root):
        raise NotOursError
    known = ", ".join(sorted(here))
    raise NotFoundError(f"there is no job of that name here; discussed here: {known or 'none'}")


async def _is_anothers(session: Session, asked: Asked, root: str) -> bool:
    """Return whether another service has written about this tree on the thread."""
    thread = await api.comments_of(session.client, asked.row.github, asked.row.number, 0.0)
    return any((marked(each.body) or "").startswith(root) for each in thread)


def _only_round(asked: Asked, said: Resume, found: _Pauses) -> RoundRecord:
    """Return the only round that was open on this thread."""
    if len(found.mine) == 1 and not found.others:
        return found.mine[0]
    if found.mine:
        raise RefusedError("several pauses were open here when this was written: name the job", found.lines_for(said))
    if found.others:
        raise NotOursError
    raise RefusedError(f"nothing on #{asked.row.number} waited for a person when this was written", found.lines)


def _round_of(job_id: str, found: _Pauses) -> int | None:
    """Return the number of the open round that a job id means; None if ambiguous, so that the tree refuses with the
    reason.
    """
    mine = rounds.meant_by(job_id, list(found.mine))
    if not mine and found.now:
        raise RefusedError(f"nothing of {job_id} waited for a person when this was written", found.lines)
    return mine[0].number if len(mine) == 1 else None


async def _only_tree(session: Session, asked: Asked) -> str:
    """Return the only tree on this thread that is still running."""
    here = await asyncio.to_thread(_threads, session, asked.row)
    if not here:
        raise NotOursError
    tasks = await asyncio.to_thread(job_rows.tasks_of, session.store, [each.root_job_id for each in here])
    going_on = [root for root, task in tasks.items() if not task.state.closed]
    if len(going_on) == 1:
        return going_on[0]
    if not going_on:
        raise RefusedError("nothing that is discussed here goes on: there is nothing to end")
    raise RefusedError(f"several trees go on here: name one of {', '.join(going_on)}")


def _threads(session: Session, row: CommentRow) -> list[Thread]:
    """Return the trees discussed on a thread that existed when the comment was written."""
    found = threads.discussed(session.store, row.github, row.number)
    return [each for each in found if each.bound_at < row.created_at + 1]


def _repo_of(session: Session, github: str) -> str:
    served = session.settings.repos
    found = [each.name for each in repo_rows.every(session.store) if each.github == github]
    found = [name for name in found if not served or name in served]
    if not found:
        raise NotOursError
    return found[0]


def _line(row: RoundRecord, said: Resume) -> str:
    """Return the command for a round that keeps the order's verb and words where the round takes them."""
    if said.verb not in row.verbs or (said.verb == Verb.EXTEND and refuse_duration(said.text)):
        return row.commands[0]
    if said.verb == Verb.ANSWER:
        asks = {question.id: question.choices for question in row.questions}
        return line_to_type(said.text, asks, Meant(said.partial, said.other), row.coordinator_id)
    return f"service resume {row.coordinator_id} {said.verb} {said.text}".rstrip()


async def _open_then(session: Session, row: CommentRow, roots: list[str]) -> _Pauses:
    """Return the pauses of these trees, and of other services, that were open when the comment was written.

    If any of them was announced on the thread by then, return only those: people answer what they have read.
    """
    thread = await api.comments_of(session.client, row.github, row.number, 0.0)
    told = {fact_of(mark): each for each in thread if (mark := marked(each.body)) and each.created_at <= row.created_at}
    return await asyncio.to_thread(_judged, session, row, roots, told)


def _judged(session: Session, row: CommentRow, roots: list[str], told: dict[str, ReadComment]) -> _Pauses:
    every = [each for root in roots for each in rounds.of_tree(session.service, root)]
    mine = [each for each in every if _was_open(each, row, told)]
    others = frozenset(
        found[1]
        for mark, comment in told.items()
        if (found := _PAUSE.fullmatch(mark)) and _told_as_open(found[1], comment, row)
        if job_rows.task_of(session.store, found[1]) is None
    )
    read = [each for each in mine if pause_id(each.round_id) in told]
    now = tuple(each for each in every if each.end is None)
    return _Pauses(tuple(read if read or others else mine), others, now)


def _was_open(each: RoundRecord, row: CommentRow, told: dict[str, ReadComment]) -> bool:
    begun = each.opened_at < row.created_at + SECOND or pause_id(each.round_id) in told
    return begun and (each.closed_at is None or each.closed_at > row.created_at)


def _told_as_open(root: str, comment: ReadComment, row: CommentRow) -> bool:
    """Return whether the service's comment asks for a resume, or was edited since and may have asked for one."""
    return f"/service resume {root}" in comment.body or comment.updated_at > row.created_at
