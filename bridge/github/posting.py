"""Comments and reactions. Before creating a comment, look for its marker among our own comments (ruling L3)."""

import asyncio
import time

from activities.github import api
from activities.github.client import DeclinedError
from activities.store.github import account
from activities.store.github.facts import FactRow
from bridge.github.bodies import body_of
from bridge.github.session import Session
from bridge.github.wrote import APART, Gone, Later, Needless, Wrote
from workflows.github.facts import FactKind, marked
from workflows.text.digests import digest

COMMENTS = (
    FactKind.STATUS,
    FactKind.PAUSE,
    FactKind.REMINDER,
    FactKind.END,
    FactKind.REFUSAL,
    FactKind.REPORT,
)
REACTIONS = {FactKind.TAKEN: "eyes", FactKind.APPLIED: "+1"}

CLOCKS_APART = 3600.0
"""Generous bound on the clock skew to GitHub: the search for our comment begins this much before the fact."""

LONG_AGO = 10.0
"""A search that took longer is repeated before a comment is created: the process may have been suspended in between."""


async def comment(session: Session, fact: FactRow) -> Wrote:
    """Create the comment, or edit the existing one. No-op if its text has not changed."""
    body = await asyncio.to_thread(body_of, session, fact)
    said = digest(body.text)
    if fact.github_id and fact.digest == said:
        return Wrote(digest=said)
    there = fact.github_id or await _ours(session, fact)
    if there:
        return await _edit(session, fact, there, body.text, said)
    if body.only_edit:
        raise Needless
    made = await api.add_comment(session.client, fact.github, fact.number, body.text)
    return Wrote(str(made.id), made.html_url, said)


async def _edit(session: Session, fact: FactRow, there: str, body: str, said: str) -> Wrote:
    try:
        made = await api.edit_comment(session.client, fact.github, there, body)
    except DeclinedError as error:
        if error.status == 404:
            await api.issue(session.client, fact.github, fact.number)  # raises if the whole thread cannot be seen
            raise Gone("somebody deleted the comment; it is not written again") from None
        raise
    return Wrote(str(made.id), made.html_url, said)


async def _ours(session: Session, fact: FactRow) -> str:
    """Return the id of the comment that already carries this fact, or "". Of duplicates the oldest stays; one is
    deleted a turn.
    """
    login, began = (await asyncio.to_thread(account.read, session.store)).login, time.monotonic()
    all_of_it = await api.comments_of(session.client, fact.github, fact.number, fact.at - CLOCKS_APART)
    mine = [each.id for each in all_of_it if each.user.login == login and marked(each.body) == fact.fact_id]
    if len(mine) > 1:
        await api.delete_comment(session.client, fact.github, max(mine))
        raise Later("one of two comments that told the same is gone", time.time() + APART)
    if not mine and time.monotonic() - began > LONG_AGO:
        raise Later("it took too long to see whether the comment is there", time.time() + APART)
    return str(mine[0]) if mine else ""


async def reaction(session: Session, fact: FactRow) -> Wrote:
    """React to the comment the fact is about. Idempotent: GitHub keeps one reaction of each kind."""
    try:
        made = await api.react(session.client, fact.github, fact.subject, REACTIONS[FactKind(fact.kind)])
    except DeclinedError as error:
        if error.status == 404:
            await api.issue(session.client, fact.github, fact.number)
            raise Gone("the comment is gone") from None
        raise
    return Wrote(str(made.id))
