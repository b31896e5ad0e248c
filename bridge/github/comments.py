"""Comments and reactions, rendered from the rows when they are written.

Before a comment is created, its marker is looked for among our own comments (ruling L3).
"""

import asyncio
import time
from dataclasses import dataclass, replace

from activities.github import api
from activities.github.client import DeclinedError
from activities.store.github import account, comments
from activities.store.github.facts import FactRow
from bridge.github.session import APART, Gone, Later, Needless, Never, Session, Wrote
from bridge.operations.github.tree import bound_tree
from workflows.github.bound_tree import BoundTree
from workflows.github.commands import Refused
from workflows.github.facts import FactKind, due, fact_of, marked
from workflows.github.texts.comments import body, refusal, report
from workflows.text.digests import digest


@dataclass(frozen=True)
class Body:
    """The whole comment, with its marker."""

    text: str
    only_edit: bool = False
    """True once the fact is outdated: an existing comment is edited, a missing one is not created."""


def body_of(session: Session, fact: FactRow) -> Body:
    """Render the current body of a fact's comment."""
    if not fact.root_job_id:
        return Body(_answer(session, fact))
    tree = _tree(session, fact.root_job_id)
    meant = next((each for each in due(tree) if each.fact_id == fact_of(fact.fact_id)), None)
    if meant is None:
        raise Never("it would not be true any more")
    return Body(body(tree, replace(meant, fact_id=fact.fact_id)), meant.only_edit)


def _answer(session: Session, fact: FactRow) -> str:
    """Render the reply to a comment."""
    row = comments.get(session.store, int(fact.subject))
    who = row.author if row else ""
    if fact.kind == FactKind.REPORT:
        return report(fact.fact_id, [_tree(session, root) for root in fact.text.split()])
    refused = Refused.model_validate_json(fact.text)
    return refusal(fact.fact_id, who, refused.why, refused.instead, refused.lines)


def _tree(session: Session, root: str) -> BoundTree:
    tree = bound_tree(session.service, root)
    if tree is None:
        raise Never(f"the tree {root} is gone")
    return tree


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
    """Return the id of the comment that already carries this fact, or "". Of duplicates keep the oldest; delete one per
    turn.
    """
    login, began = (await asyncio.to_thread(account.read, session.store)).login, time.monotonic()
    all_of_it = await api.comments_of(session.client, fact.github, fact.number, fact.at - CLOCKS_APART)
    mine = [each.id for each in all_of_it if each.user.login == login and marked(each.body) == fact.fact_id]
    if len(mine) > 1:
        await api.delete_comment(session.client, fact.github, max(mine))
        raise Later("a duplicate comment is gone", time.time() + APART)
    if not mine and time.monotonic() - began > LONG_AGO:
        raise Later("it took too long to see whether the comment is there", time.time() + APART)
    return str(mine[0]) if mine else ""


async def reaction(session: Session, fact: FactRow) -> Wrote:
    """React to the comment that the fact is about. Idempotent: GitHub keeps one reaction of each kind."""
    try:
        made = await api.react(session.client, fact.github, fact.subject, REACTIONS[FactKind(fact.kind)])
    except DeclinedError as error:
        if error.status == 404:
            await api.issue(session.client, fact.github, fact.number)
            raise Gone("the comment is gone") from None
        raise
    return Wrote(str(made.id))
