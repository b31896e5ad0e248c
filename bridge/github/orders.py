"""Carrying out one command of a comment, by the same operation that the terminal and HTTP use (rulings F6, L4).

The command applies to the pauses that were open when the comment was written. Otherwise two services that read a thread
at different times could disagree on whose pause an answer is for.
"""

import asyncio
import re
from collections.abc import Awaitable
from dataclasses import dataclass

from activities.github import api
from activities.github.models import IssueComment
from activities.store import job_rows
from activities.store.github import threads
from activities.store.github.threads import CommentRow, Thread
from activities.store.registry import repo_rows
from bridge.github.session import GithubSession
from bridge.operations.jobs import rounds
from bridge.operations.orders import new_jobs, trees
from bridge.operations.orders.new_jobs import NewJob
from bridge.operations.orders.resume import resume
from workflows.contract.models import Action
from workflows.github.commands import (
    CommentCommand,
    KillCommand,
    ResumeCommand,
    RetryCommand,
    StartCommand,
    StatusCommand,
    UnknownCommand,
)
from workflows.github.comment import Comment, task_from_comment
from workflows.github.facts import COMMENT, fact_in, fact_of, pause_id
from workflows.model import ids
from workflows.model.errors import NotFoundError, RefusedError, ServiceError
from workflows.model.orders import ResumeOrder, signature
from workflows.model.rows import RoundRecord
from workflows.policy.answers import Meant, Verb, line_to_type, refuse_duration

_PAUSE = re.compile(r"(job-[0-9a-z]++).*-r[0-9]+-pause")
"""The marker of a pause comment; while the pause is open, the comment says which command to write."""

SECOND = 1.0
"""One second: GitHub rounds times down to whole seconds."""


class NotOursError(Exception):
    """The command addresses another service that works on this repository."""


@dataclass(frozen=True)
class CommandSource:
    """The comment that contains a command, and the command's idempotency key."""

    row: CommentRow
    comment: Comment
    request_id: str


@dataclass(frozen=True)
class CommandResult:
    """The result of a command."""

    says: str
    job_id: str | None = None
    report: str = ""
    """The root ids that a status reports on, one a line."""


@dataclass(frozen=True)
class _Pauses:
    """The rounds of questions that a comment's command can be for."""

    mine: tuple[RoundRecord, ...]
    others: frozenset[str]
    """The roots of other services' trees."""
    now: tuple[RoundRecord, ...]
    """Our rounds that are open now: the refusal suggests their commands."""

    @property
    def lines(self) -> str:
        """The commands to suggest instead, each with its job."""
        return "\n".join(each.commands[0] for each in self.now if each.commands)

    def lines_for(self, command: ResumeCommand) -> str:
        """Return the person's command once for each possible job, if only the job is missing in it."""
        return "\n".join(_line(each, command) for each in self.now if each.commands)


def carry_out(session: GithubSession, source: CommandSource, command: CommentCommand) -> Awaitable[CommandResult]:
    """Carry out a command. Raise ServiceError with the reason if it is refused."""
    match command:
        case ResumeCommand():
            return _resume(session, source, command)
        case KillCommand():
            return _kill(session, source, command)
        case RetryCommand():
            return _retry(session, source, command)
        case StartCommand():
            return _start(session, source, command)
        case StatusCommand():
            return _status(session, source)
        case UnknownCommand():
            raise ValueError("an unknown command is refused before")


async def is_for_us(session: GithubSession, source: CommandSource, command: CommentCommand) -> bool:
    """Return whether the command is for this service, judged by its job, its thread or its repository."""
    try:
        match command:
            case ResumeCommand(job=job) | KillCommand(job=job) | RetryCommand(job=job) if job:
                await _job(session, source, job)
            case ResumeCommand() | KillCommand() | RetryCommand() | StatusCommand():
                return bool(await asyncio.to_thread(_threads, session, source.row))
            case StartCommand():
                await asyncio.to_thread(_repo_of, session, source.row.github)
            case UnknownCommand():
                pass
    except NotOursError:
        return False
    except ServiceError:
        pass
    return True


async def _resume(session: GithubSession, source: CommandSource, command: ResumeCommand) -> CommandResult:
    job, number = await _target(session, source, command)
    order = ResumeOrder(
        actor=source.comment.author,
        channel=COMMENT,
        job_id=job,
        verb=command.verb,
        text=command.text,
        round=number,
        partial=command.partial,
        other=command.other,
        request_id=source.request_id,
    )
    verdict = await resume(session.service, order)
    return CommandResult(verdict.message, job)


async def _target(session: GithubSession, source: CommandSource, command: ResumeCommand) -> tuple[str, int | None]:
    """Return the job that a command is for, and the number of the job's round that was open when the comment was
    written.
    """
    if command.job:
        job = await _job(session, source, command.job)
        pauses = await _open_then(session, source.row, [ids.root_of(job) or job])
        return job, _round_of(job, pauses)
    here = await asyncio.to_thread(_threads, session, source.row)
    if not here:
        raise NotOursError
    roots = [thread.root_job_id for thread in here]
    pauses = await _open_then(session, source.row, roots)
    tasks = await asyncio.to_thread(job_rows.tasks_of, session.store, roots)
    if not (pauses.mine or pauses.others) and tasks and all(task.state.is_closed for task in tasks.values()):
        over = ", ".join(f"{root} is {task.state}" for root, task in tasks.items())
        raise RefusedError(f"nothing on #{source.row.number} needs an answer any more: {over}")
    only = _only_round(source, command, pauses)
    return only.coordinator_id, only.number


async def _kill(session: GithubSession, source: CommandSource, command: KillCommand) -> CommandResult:
    job = await _job(session, source, command.job) if command.job else await _only_tree(session, source)
    killed = await trees.kill(session.service, job, actor=signature(source.comment.author, COMMENT), immediate=False)
    return CommandResult(f"{killed.root_job_id} is being ended", job)


async def _retry(session: GithubSession, source: CommandSource, command: RetryCommand) -> CommandResult:
    job, by = await _job(session, source, command.job), signature(source.comment.author, COMMENT)
    retried = await trees.retry(session.service, job, actor=by, request_id=source.request_id)
    return CommandResult(f"{retried.job_id} runs again", job)


async def _start(session: GithubSession, source: CommandSource, command: StartCommand) -> CommandResult:
    """Start a tree under an id that is reserved first: a retry finds the tree of the first attempt."""
    row, store = source.row, session.store
    repo = await asyncio.to_thread(_repo_of, session, row.github)
    root = await asyncio.to_thread(threads.reserve_job, store, row.comment_id, trees.new_root_id())
    thread = await api.issue(session.client, row.github, row.number)
    on_pull = thread.pull_request is not None
    by = source.comment.author
    caveat = f"#{row.number} was closed on GitHub when {by} ordered this there" if thread.state == "closed" else ""
    new = NewJob(
        agent=command.agent,
        action=command.action.value,
        message=task_from_comment(source.comment, command.text, repo),
        repo=repo,
        pull_request=row.number if on_pull else None,
        issue=None if on_pull else row.number,
        goal=command.text,
        read_only=Action.IMPLEMENT not in session.service.settings.github.commands,
        caveat=caveat,
    )
    started = f"{await new_jobs.start(session.service, new, root, session.client.token)} is started"
    return CommandResult(f"{started}; {caveat}" if caveat else started, root)


async def _status(session: GithubSession, source: CommandSource) -> CommandResult:
    here = await asyncio.to_thread(_threads, session, source.row)
    if not here:
        raise NotOursError
    return CommandResult("the status was given", report="\n".join(each.root_job_id for each in here))


async def _job(session: GithubSession, source: CommandSource, job_id: str) -> str:
    """Return the named job if its tree is discussed on this thread."""
    root = ids.root_of(job_id)
    here = {each.root_job_id for each in await asyncio.to_thread(_threads, session, source.row)}
    if root in here:
        return job_id
    task = await asyncio.to_thread(job_rows.task_of, session.store, root) if root else None
    if task is not None:
        raise RefusedError(f"{job_id} is discussed elsewhere, not on #{source.row.number}")
    if root and await _is_anothers(session, source, root):
        raise NotOursError
    known = ", ".join(sorted(here))
    raise NotFoundError(f"there is no job of that name here; discussed here: {known or 'none'}")


async def _is_anothers(session: GithubSession, source: CommandSource, root: str) -> bool:
    """Return whether another service has written about this tree on the thread."""
    thread = await api.comments_of(session.client, source.row.github, source.row.number, 0.0)
    return any((fact_in(each.body) or "").startswith(root) for each in thread)


def _only_round(source: CommandSource, command: ResumeCommand, pauses: _Pauses) -> RoundRecord:
    """Return the only round that was open on this thread."""
    if len(pauses.mine) == 1 and not pauses.others:
        return pauses.mine[0]
    if pauses.mine:
        raise RefusedError(
            "several pauses were open here when this was written: name the job", pauses.lines_for(command)
        )
    if pauses.others:
        raise NotOursError
    raise RefusedError(f"nothing on #{source.row.number} waited for a person when this was written", pauses.lines)


def _round_of(job_id: str, pauses: _Pauses) -> int | None:
    """Return the number of the open round that a job id means; None if ambiguous, so that the tree refuses with the
    reason.
    """
    mine = rounds.meant_by(job_id, list(pauses.mine))
    if not mine and pauses.now:
        raise RefusedError(f"nothing of {job_id} waited for a person when this was written", pauses.lines)
    return mine[0].number if len(mine) == 1 else None


async def _only_tree(session: GithubSession, source: CommandSource) -> str:
    """Return the only tree on this thread that is still running."""
    here = await asyncio.to_thread(_threads, session, source.row)
    if not here:
        raise NotOursError
    tasks = await asyncio.to_thread(job_rows.tasks_of, session.store, [each.root_job_id for each in here])
    going_on = [root for root, task in tasks.items() if not task.state.is_closed]
    if len(going_on) == 1:
        return going_on[0]
    if not going_on:
        raise RefusedError("nothing that is discussed here goes on: there is nothing to end")
    raise RefusedError(f"several tasks go on here: name one of {', '.join(going_on)}")


def _threads(session: GithubSession, row: CommentRow) -> list[Thread]:
    """Return the trees discussed on a thread that existed when the comment was written."""
    discussed = threads.of_thread(session.store, row.github, row.number)
    return [each for each in discussed if each.bound_at < row.created_at + 1]


def _repo_of(session: GithubSession, github: str) -> str:
    served = session.settings.repos
    names = [each.name for each in repo_rows.every(session.store) if each.github == github]
    names = [name for name in names if not served or name in served]
    if not names:
        raise NotOursError
    return names[0]


def _line(row: RoundRecord, command: ResumeCommand) -> str:
    """Return the command to suggest for this round, with the person's verb and words where the round accepts them."""
    if command.verb not in row.verbs or (command.verb == Verb.EXTEND and refuse_duration(command.text)):
        return row.commands[0]
    if command.verb == Verb.ANSWER:
        asks = {question.id: question.choices for question in row.questions}
        return line_to_type(command.text, asks, Meant(command.partial, command.other), row.coordinator_id)
    return f"service resume {row.coordinator_id} {command.verb} {command.text}".rstrip()


async def _open_then(session: GithubSession, row: CommentRow, roots: list[str]) -> _Pauses:
    """Return the pauses of these trees, and of other services, that were open when the comment was written.

    If any of them was announced on the thread by then, return only those: people answer what they have read.
    """
    thread = await api.comments_of(session.client, row.github, row.number, 0.0)
    written = [comment for comment in thread if comment.created_at <= row.created_at]
    announced = {fact_of(mark): comment for comment in written if (mark := fact_in(comment.body))}
    return await asyncio.to_thread(_pauses_at, session, row, roots, announced)


def _pauses_at(
    session: GithubSession, row: CommentRow, roots: list[str], announced: dict[str, IssueComment]
) -> _Pauses:
    every = [each for root in roots for each in rounds.of_tree(session.service, root)]
    mine = [each for each in every if _was_open(each, row, announced)]
    others = frozenset(
        marker[1]
        for mark, comment in announced.items()
        if (marker := _PAUSE.fullmatch(mark)) and _asks_for_resume(marker[1], comment, row)
        if job_rows.task_of(session.store, marker[1]) is None
    )
    read = [each for each in mine if pause_id(each.round_id) in announced]
    now = tuple(each for each in every if each.end is None)
    return _Pauses(tuple(read if read or others else mine), others, now)


def _was_open(pause: RoundRecord, row: CommentRow, announced: dict[str, IssueComment]) -> bool:
    begun = pause.opened_at < row.created_at + SECOND or pause_id(pause.round_id) in announced
    return begun and (pause.closed_at is None or pause.closed_at > row.created_at)


def _asks_for_resume(root: str, comment: IssueComment, row: CommentRow) -> bool:
    """Return whether the service's comment asks for a resume, or was edited since and may have asked for one."""
    return f"/service resume {root}" in comment.body or comment.updated_at > row.created_at
