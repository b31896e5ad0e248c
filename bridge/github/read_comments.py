"""Reading comments and heads: conditional requests, only where something can be answered or commanded (ruling L7)."""

import asyncio
import time

from activities.github import api
from activities.github.client import AwayError, DeclinedError
from activities.github.models import Comment
from activities.store.github import account, comments, reading, threads
from activities.store.github.comments import CommentRow
from activities.store.github.reading import Reading
from bridge.github import checks
from bridge.github.act_on_comments import written
from bridge.github.session import Session
from bridge.operations.github import interest
from bridge.operations.github.interest import STARTING
from workflows.github.commands import commands_in
from workflows.github.comment import why_ignored

FAILED_SECONDS = 300.0
"""A repository that GitHub declines or fails at is read again after so long: such requests count against the rate
limit.
"""

FREE_SECONDS = 20.0
"""At most three conditional requests a minute and repository."""

LATE_SECONDS = 60.0
"""The overlap between two reads: GitHub may show a comment that much later than others of its time."""


def of_interest(session: Session) -> list[Reading]:
    """Return the repositories to read: those with an unfinished tree, or that may be given commands."""
    wanted = interest.of_interest(session.service)
    return [each for each in reading.every(session.store) if each.github in wanted]


async def read(session: Session) -> list[str]:
    """Read every repository that is due. A failure in one does not stop the others; raise only if all fail."""
    await asyncio.to_thread(_begin_new, session)
    did, now = [], time.time()
    failed: list[AwayError] = []
    looked = [each for each in await asyncio.to_thread(of_interest, session) if each.due(now)]
    for each in looked:
        try:
            did += await _read_one(session, each)
        except AwayError as error:
            if error.status is None:
                raise
            failed.append(error)
            await asyncio.to_thread(_leave, session, each, str(error))
    if failed and len(failed) == len(looked):
        raise failed[-1]
    return did


async def _read_one(session: Session, known: Reading) -> list[str]:
    """Read a repository's new comments and the heads of its pull requests, then schedule the next read."""
    store, began = session.store, time.time()
    before, taken = session.client.requests, 0
    try:
        found = await api.comments_since(session.client, known.github, known.since)
        if not session.client.was_free:
            taken = await asyncio.to_thread(_take, session, known, found)
        await checks.look(session, known.github)
    except DeclinedError as no:
        await asyncio.to_thread(_leave, session, known, str(no))
        return [f"{known.github} cannot be read: {no}"]
    since = max([known.since, *(each.updated_at - LATE_SECONDS for each in found)])
    asked = session.client.requests - before
    wait = max(session.settings.poll, FREE_SECONDS * asked, session.client.poll_interval)
    seen = {"since": since, "polled_at": began, "next_at": time.time() + wait, "error": ""}
    await asyncio.to_thread(lambda: reading.note(store, known.github, **seen))
    return [f"took {taken} comments of {known.github}"] if taken else []


def _leave(session: Session, known: Reading, why: str) -> None:
    """Postpone the next read of a repository after a failure; doctor and status show the reason."""
    now = time.time()
    reading.note(session.store, known.github, polled_at=now, next_at=now + FAILED_SECONDS, error=why)


def _take(session: Session, known: Reading, found: list[Comment]) -> int:
    """Store the comments that contain a permitted command, and ignore the others."""
    store, us = session.store, account.read(session.store).login
    rows = []
    for each in found:
        bound = [thread.bound_at for thread in threads.discussed(store, known.github, each.number)]
        since = min(bound, default=known.since if STARTING & {*session.settings.commands} else float("inf"))
        if why_ignored(written(each), {us}, since) or not commands_in(each.body):
            continue
        rows.append(CommentRow(each.id, known.github, each.number, each.user.login, each.created_at))
    return comments.take(store, rows)


def _begin_new(session: Session) -> None:
    """Begin to read repositories that are newly of interest, from their first tree on."""
    store = session.store
    known = {each.github for each in reading.every(store)}
    for github in interest.of_interest(session.service) - known:
        since = min((each.bound_at for each in threads.of_github(store, github)), default=time.time())
        reading.begin(store, github, since)
