"""Reading comments and heads by conditional requests, only in repositories where comments can contain answers or
commands (ruling L7). Then acting on each comment exactly once: check permission, run its commands, post one receipt
(rulings L4 to L6).
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from activities.github import api
from activities.github.client import AwayError, DeclinedError, GithubError
from activities.github.models import IssueComment
from activities.redaction.kept_secrets import without_words
from activities.redaction.redact import redact_text
from activities.store.github import account, facts, threads
from activities.store.github.account import Polling
from activities.store.github.facts import FactRow
from activities.store.github.threads import CommentRow
from bridge.github import checks, orders
from bridge.github.orders import CommandSource, NotOursError
from bridge.github.session import GithubSession
from bridge.operations.github import polling
from bridge.operations.github.polling import STARTING
from workflows.github.commands import commands_in, spoken_in
from workflows.github.comment import Comment, reason_to_ignore
from workflows.github.facts import FactKind, comment_fact_id
from workflows.github.texts.comments import as_comment
from workflows.github.who_may_command import MAY_COMMAND, Refused, refusal_reason, silent
from workflows.model.errors import ServiceError, UnreachableError

log = logging.getLogger(__name__)

FAILED_SECONDS = 300.0
"""Seconds until a repository is read again after a failed request: failed requests count against the rate limit."""

FREE_SECONDS = 20.0
"""Seconds between reads of a repository: three conditional requests a minute."""

LATE_SECONDS = 60.0
"""Seconds by which two reads overlap: GitHub may show a comment that much later than others of the same time."""

HOUR = 3600.0


def repositories_to_read(session: GithubSession) -> list[Polling]:
    """Return the repositories to read: those with an unfinished tree, or that may be given commands."""
    wanted = polling.of_interest(session.service)
    return [each for each in account.readings(session.store) if each.github in wanted]


async def read(session: GithubSession) -> list[str]:
    """Read every repository that is due. A failure in one does not stop the others; raise only if all fail."""
    await asyncio.to_thread(_begin_new, session)
    did, now = [], time.time()
    failed: list[AwayError] = []
    looked = [each for each in await asyncio.to_thread(repositories_to_read, session) if each.due(now)]
    for reading in looked:
        try:
            did += await _read_one(session, reading)
        except AwayError as error:
            if error.status is None:
                raise
            failed.append(error)
            await asyncio.to_thread(_leave, session, reading, str(error))
    if failed and len(failed) == len(looked):
        raise failed[-1]
    return did


async def _read_one(session: GithubSession, known: Polling) -> list[str]:
    """Read a repository's new comments and the heads of its pull requests, then schedule the next read."""
    store, began = session.store, time.time()
    before, taken = session.client.requests, 0
    try:
        comments = await api.comments_since(session.client, known.github, known.since)
        if not session.client.was_free:
            taken = await asyncio.to_thread(_take, session, known, comments)
        await checks.look(session, known.github)
    except DeclinedError as no:
        await asyncio.to_thread(_leave, session, known, str(no))
        return [f"{known.github} cannot be read: {no}"]
    since = max([known.since, *(each.updated_at - LATE_SECONDS for each in comments)])
    asked = session.client.requests - before
    wait = max(session.settings.poll, FREE_SECONDS * asked, session.client.poll_interval)
    seen = {"since": since, "polled_at": began, "next_at": time.time() + wait, "error": ""}
    await asyncio.to_thread(lambda: account.note_reading(store, known.github, **seen))
    return [f"took {taken} comments of {known.github}"] if taken else []


def _leave(session: GithubSession, known: Polling, why: str) -> None:
    """Postpone the next read of a repository after a failure. `service doctor` and `github status` show the reason."""
    now = time.time()
    account.note_reading(session.store, known.github, polled_at=now, next_at=now + FAILED_SECONDS, error=why)


def _take(session: GithubSession, known: Polling, comments: list[IssueComment]) -> int:
    """Store the comments that contain a permitted command, and ignore the others."""
    store, us = session.store, account.read(session.store).login
    rows = []
    for comment in comments:
        bound = [thread.bound_at for thread in threads.of_thread(store, known.github, comment.number)]
        since = min(bound, default=known.since if STARTING & {*session.settings.commands} else float("inf"))
        if reason_to_ignore(clean_comment(comment), {us}, since) or not commands_in(comment.body):
            continue
        rows.append(CommentRow(comment.id, known.github, comment.number, comment.user.login, comment.created_at))
    return threads.take_comments(store, rows)


def _begin_new(session: GithubSession) -> None:
    """Start to read repositories that are not read yet but should be, from their first tree on."""
    store = session.store
    known = {each.github for each in account.readings(store)}
    for github in polling.of_interest(session.service) - known:
        since = min((each.bound_at for each in threads.of_github(store, github)), default=time.time())
        account.begin_reading(store, github, since)


@dataclass
class CommentOutcome:
    """The result of the commands of one comment."""

    done: list[str]
    refused: list[str]
    instead: list[str]
    """Suggested lines to write instead of the refused ones."""
    reports: list[str]
    job_id: str | None = None
    lines: list[str] = field(default_factory=list)
    """The comment line each refusal is about."""
    stranger: bool = False
    """True if the author may give no commands; then the reply does not quote them."""

    def refuse(self, why: str, line: str) -> None:
        self.refused.append(why)
        self.lines.append("" if self.stranger else redact_text(line))


async def act(session: GithubSession) -> list[str]:
    """Act on all open comments. Stop while Temporal is unreachable; the remaining comments wait."""
    did: list[str] = []
    for row in await asyncio.to_thread(threads.open_comments, session.store):
        try:
            outcome = await _act_on(session, row)
        except UnreachableError as error:
            return [*did, f"comment {row.comment_id} waits: {error.message}"]
        did.append(f"comment {row.comment_id} of {row.author}: {outcome}")
    return did


async def _act_on(session: GithubSession, row: CommentRow) -> str:
    """Fetch the comment again before acting: it may have been deleted or edited since it was read."""
    store = session.store
    comment = await api.comment(session.client, row.github, row.comment_id)
    why = await asyncio.to_thread(_why_not, session, row, comment)
    if comment is None or why:
        await asyncio.to_thread(threads.settle_comment, store, row.comment_id, threads.IGNORED, why)
        return f"ignored: {why}"
    permission = await api.permission(session.client, row.github, comment.user.login)
    bound = await asyncio.to_thread(threads.of_thread, store, row.github, row.number)
    if permission not in MAY_COMMAND and not bound:
        await asyncio.to_thread(threads.settle_comment, store, row.comment_id, threads.IGNORED, "a stranger's")
        return "ignored: it is from a stranger, in a thread without a tree"
    if permission in MAY_COMMAND:
        await asyncio.to_thread(_declare, session, row, FactKind.TAKEN)
    outcome = await _carry_out(session, row, comment, permission)
    return await asyncio.to_thread(_settle, session, row, outcome)


def _why_not(session: GithubSession, row: CommentRow, comment: IssueComment | None) -> str:
    if comment is None:
        return "it was deleted"
    bound = [thread.bound_at for thread in threads.of_thread(session.store, row.github, row.number)]
    us = account.read(session.store).login
    return reason_to_ignore(clean_comment(comment), {us}, min(bound, default=0.0))


async def _carry_out(session: GithubSession, row: CommentRow, comment: IssueComment, permission: str) -> CommentOutcome:
    outcome, clean = CommentOutcome([], [], [], [], stranger=permission not in MAY_COMMAND), clean_comment(comment)
    for number, spoken in enumerate(spoken_in(clean.body)):
        source, command = CommandSource(row, clean, f"comment-{row.comment_id}-{number}"), spoken.command
        if why := refusal_reason(command, permission, session.settings.commands):
            if await orders.is_for_us(session, source, command):
                outcome.refuse(why, spoken.line)
            continue
        try:
            did = await orders.carry_out(session, source, command)
        except NotOursError:
            continue
        except UnreachableError:
            raise
        except ServiceError as error:
            outcome.refuse(error.message, spoken.line)
            outcome.instead += _lines(error.hint)
            continue
        except (GithubError, SQLAlchemyError):
            raise
        except Exception:
            log.exception("an internal error with comment %d", row.comment_id)
            outcome.refuse(
                "it could not be carried out because of an internal error; the service's log says more", spoken.line
            )
            continue
        outcome.done.append(did.says)
        outcome.reports += [did.report] if did.report else []
        outcome.job_id = did.job_id or outcome.job_id
    return outcome


def _lines(hint: str) -> Sequence[str]:
    """Return the lines of a hint that are commands which a comment can contain."""
    lines = (line.strip() for line in hint.splitlines())
    return [line for line in lines if as_comment(line).startswith("/")]


def _settle(session: GithubSession, row: CommentRow, outcome: CommentOutcome) -> str:
    """Declare the answer, then record that the comment was acted on: after a crash in between, a repeat is
    idempotent.
    """
    store = session.store
    if outcome.done:
        _declare(session, row, FactKind.APPLIED)
    if outcome.reports:
        _declare(session, row, FactKind.REPORT, "\n".join(outcome.reports))
    if outcome.refused and not _is_silent(store, row, stranger=outcome.stranger):
        refused = Refused(
            why=tuple(outcome.refused),
            instead=tuple(outcome.instead),
            lines=tuple(outcome.lines),
            stranger=outcome.stranger,
        )
        _declare(session, row, FactKind.REFUSAL, refused.model_dump_json())
    state = threads.REFUSED if outcome.refused else threads.DONE if outcome.done else threads.IGNORED
    summary = "; ".join([*outcome.done, *outcome.refused]) or "for another service"
    threads.settle_comment(store, row.comment_id, state, summary, outcome.job_id)
    return summary


def _is_silent(store: Engine, row: CommentRow, *, stranger: bool) -> bool:
    """Return whether to skip the reply to a refused comment.

    Strangers are answered once per thread. Refusals to people who may command are rate-limited; what strangers
    wrote does not count.
    """
    refusals = facts.refusals(store, row.github, row.number)
    to_strangers = {each.fact_id for each in refusals if each.text and Refused.model_validate_json(each.text).stranger}
    if stranger:
        return bool(to_strangers)
    since = time.time() - HOUR
    return silent(sum(each.at >= since and each.fact_id not in to_strangers for each in refusals))


def _declare(session: GithubSession, row: CommentRow, kind: FactKind, text: str = "") -> None:
    root = text.split()[0] if kind == FactKind.REPORT else ""
    fact = FactRow(
        comment_fact_id(kind, row.comment_id, root), kind, "", row.github, row.number, str(row.comment_id), text
    )
    facts.declare(session.store, [fact])


def clean_comment(comment: IssueComment) -> Comment:
    """Convert a comment to the model of the comment rules, without placeholders of kept secrets (ruling N7)."""
    return Comment(
        id=comment.id,
        author=comment.user.login,
        author_type=comment.user.type,
        author_id=comment.user.id,
        body=without_words(comment.body),
        created_at=comment.created_at,
        updated_at=comment.updated_at,
        number=comment.number,
        url=comment.html_url,
    )
