"""Comments and reactions. Before a comment is made, its marker is looked for among our own (ruling L3)."""

import asyncio
import time

from activities.github import api
from activities.github.client import DeclinedError
from activities.store.github import account
from activities.store.github.facts import FactRow
from bridge.github.bodies import body_of
from bridge.github.session import Session
from bridge.github.wrote import APART, Gone, Later, Needless, Wrote
from workflows.github.facts import FactKind
from workflows.github.marks import marked
from workflows.model.digests import digest

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
"""How far GitHub's clock and ours may differ, generously: a comment of ours is looked for from so long before."""

LONG_AGO = 10.0
"""A look that took longer is made again before a comment is: the process may have been stopped in between."""


async def comment(session: Session, fact: FactRow) -> Wrote:
    """Make it, or change the one that is there; what says the same already is left alone."""
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
            await api.issue(session.client, fact.github, fact.number)  # declined too where all of it cannot be seen
            raise Gone("somebody deleted the comment; it is not written again") from None
        raise
    return Wrote(str(made.id), made.html_url, said)


async def _ours(session: Session, fact: FactRow) -> str:
    """The comment that tells this fact already. Of several, the first stays, and the others go one after the other."""
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
    """React to the comment it is about; GitHub keeps one of each."""
    try:
        made = await api.react(session.client, fact.github, fact.subject, REACTIONS[FactKind(fact.kind)])
    except DeclinedError as error:
        if error.status == 404:
            await api.issue(session.client, fact.github, fact.number)
            raise Gone("the comment is gone") from None
        raise
    return Wrote(str(made.id))
