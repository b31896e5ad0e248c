"""Writing of declared facts: one per turn, after a search for an existing copy, so that each exists once (L2, L3).

Comments are rendered from the rows when they are written. Checks and pull requests have modules of their own.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from sqlalchemy.exc import SQLAlchemyError

from activities.github import api
from activities.github.client import AwayError, DeclinedError, LimitedError
from activities.stations.hook import reach
from activities.store.github import account, facts, threads
from activities.store.github.facts import FactRow
from bridge.github import checks, publishing
from bridge.github.session import APART, CommentDeleted, GithubSession, Later, Needless, Never, Wrote
from bridge.operations.github.tree import bound_tree
from workflows.github.bound_tree import BoundTree
from workflows.github.facts import FactKind, due, fact_in, fact_of
from workflows.github.texts.comments import body, refusal, report
from workflows.github.who_may_command import Refused
from workflows.policy.backoff import backoff
from workflows.text.digests import digest

log = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
AWAY_SECONDS, LONGEST_AWAY = 5.0, 1800.0
"""The backoff of a fact that GitHub fails at. It queues behind all other due facts, so it cannot block them."""

FOR_GOOD = frozenset({404, 410, 422})
"""Status codes of permanent errors: not found, gone, or unprocessable."""

MOST_ATTEMPTS = 8
"""Attempts to write a fact after temporary errors."""

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
"""Generous bound, in seconds, on the clock skew to GitHub: the search for an existing comment begins this long before
the fact.
"""

LONG_AGO = 10.0
"""Seconds after which a search is repeated before a comment is created: the process may have been suspended in
between.
"""


async def write_one(session: GithubSession) -> list[str]:
    """Write the first fact that is due, unless the last write is too recent."""
    store = session.store
    known, now = await asyncio.to_thread(account.read, store), time.time()
    if known.wrote_at + APART > now:
        return []
    fact = await asyncio.to_thread(facts.next_due, store, now)
    if fact is None:
        return []
    return await _write(session, fact)


async def _write(session: GithubSession, fact: FactRow) -> list[str]:
    try:
        wrote = await WRITERS[fact.kind](session, fact)
    except LimitedError as error:
        await asyncio.to_thread(facts.put_off, session.store, fact.fact_id, time.time(), str(error))
        raise
    except AwayError as error:  # the next attempt looks first whether it has happened
        again = time.time() + backoff(AWAY_SECONDS, fact.attempts, LONGEST_AWAY)
        await asyncio.to_thread(facts.put_off, session.store, fact.fact_id, again, str(error))
        raise
    except Needless:
        wrote = Wrote()
    except Later as later:
        await asyncio.to_thread(facts.put_off, session.store, fact.fact_id, later.until, str(later))
        return []
    except CommentDeleted as gone:
        await asyncio.to_thread(facts.note, session.store, fact.fact_id, state=facts.DROPPED, error=str(gone))
        return [f"{fact.kind} on {fact.where} is skipped: {gone}"]
    except (DeclinedError, Never) as error:
        final = isinstance(error, Never) or error.status in FOR_GOOD
        return await asyncio.to_thread(_retry_or_give_up, session, fact, str(error), final=final)
    except SQLAlchemyError:
        raise
    except Exception as error:
        log.exception("an internal error with %s", fact.fact_id)
        return await asyncio.to_thread(_retry_or_give_up, session, fact, f"an internal error: {type(error).__name__}")
    reach("fact written", fact.fact_id, fact.kind)
    await asyncio.to_thread(_record, session, fact, wrote)
    return [f"wrote {fact.kind} on {fact.where}"]


def _record(session: GithubSession, fact: FactRow, wrote: Wrote) -> None:
    text_digest = "" if wrote.more else wrote.digest
    facts.mark_written(session.store, fact.fact_id, github_id=wrote.github_id, url=wrote.url, digest=text_digest)
    if wrote.more:
        facts.again(session.store, fact.fact_id)
    if fact.kind == FactKind.PUBLISH and wrote.url != fact.url:
        threads.look_again(session.store, fact.root_job_id)
        for row in facts.of_root(session.store, fact.root_job_id):
            if row.kind in {FactKind.STATUS, FactKind.END} and row.state == facts.DONE:
                facts.again(session.store, row.fact_id)


def _retry_or_give_up(session: GithubSession, fact: FactRow, why: str, *, final: bool = False) -> list[str]:
    """Give up at once on a permanent error, else after some attempts. Notify people when giving up."""
    if final or fact.attempts + 1 >= MOST_ATTEMPTS:
        facts.give_up(session.store, fact.fact_id, why)
    else:
        again = time.time() + backoff(RETRY_SECONDS, fact.attempts)
        facts.put_off(session.store, fact.fact_id, again, why)
    return [f"{fact.kind} on {fact.where} is declined: {why}"]


@dataclass(frozen=True)
class CommentBody:
    """The whole text of a comment, with its hidden marker."""

    text: str
    only_edit: bool = False
    """True once the fact is outdated: an existing comment is edited, a missing one is not created."""


def body_of(session: GithubSession, fact: FactRow) -> CommentBody:
    """Render the current body of a fact's comment."""
    if not fact.root_job_id:
        return CommentBody(_answer(session, fact))
    tree = _tree(session, fact.root_job_id)
    meant = next((each for each in due(tree) if each.fact_id == fact_of(fact.fact_id)), None)
    if meant is None:
        raise Needless
    return CommentBody(body(tree, replace(meant, fact_id=fact.fact_id)), meant.only_edit)


def _answer(session: GithubSession, fact: FactRow) -> str:
    """Render the reply to a comment."""
    row = threads.comment(session.store, int(fact.subject))
    who = row.author if row else ""
    if fact.kind == FactKind.REPORT:
        return report(fact.fact_id, [_tree(session, root) for root in fact.text.split()])
    refused = Refused.model_validate_json(fact.text)
    return refusal(fact.fact_id, who, refused.why, refused.instead, refused.lines)


def _tree(session: GithubSession, root: str) -> BoundTree:
    tree = bound_tree(session.service, root)
    if tree is None:
        raise Never(f"the task {root} is gone")
    return tree


async def comment(session: GithubSession, fact: FactRow) -> Wrote:
    """Create the comment, or edit the existing one. No-op if its text has not changed."""
    body = await asyncio.to_thread(body_of, session, fact)
    text_digest = digest(body.text)
    if fact.github_id and fact.digest == text_digest:
        return Wrote(digest=text_digest)
    there = fact.github_id or await _ours(session, fact)
    if there:
        return await _edit(session, fact, there, body.text, text_digest)
    if body.only_edit:
        raise Needless
    made = await api.add_comment(session.client, fact.github, fact.number, body.text)
    return Wrote(str(made.id), made.html_url, text_digest)


async def _edit(session: GithubSession, fact: FactRow, there: str, body: str, text_digest: str) -> Wrote:
    try:
        made = await api.edit_comment(session.client, fact.github, there, body)
    except DeclinedError as error:
        if error.status == 404:
            await api.issue(session.client, fact.github, fact.number)  # raises if the whole thread cannot be seen
            raise CommentDeleted("somebody deleted the comment; it is not written again") from None
        raise
    return Wrote(str(made.id), made.html_url, text_digest)


async def _ours(session: GithubSession, fact: FactRow) -> str:
    """Return the id of the comment that already carries this fact, or "". Of duplicates keep the oldest; delete one per
    turn.
    """
    login, began = (await asyncio.to_thread(account.read, session.store)).login, time.monotonic()
    all_of_it = await api.comments_of(session.client, fact.github, fact.number, fact.at - CLOCKS_APART)
    mine = [each.id for each in all_of_it if each.user.login == login and fact_in(each.body) == fact.fact_id]
    if len(mine) > 1:
        await api.delete_comment(session.client, fact.github, max(mine))
        raise Later("a duplicate comment is gone", time.time() + APART)
    if not mine and time.monotonic() - began > LONG_AGO:
        raise Later("it took too long to see whether the comment is there", time.time() + APART)
    return str(mine[0]) if mine else ""


async def reaction(session: GithubSession, fact: FactRow) -> Wrote:
    """Add a reaction to the comment that the fact is about. Idempotent: GitHub keeps one reaction of each kind."""
    try:
        made = await api.react(session.client, fact.github, fact.subject, REACTIONS[FactKind(fact.kind)])
    except DeclinedError as error:
        if error.status == 404:
            await api.issue(session.client, fact.github, fact.number)
            raise CommentDeleted("the comment is gone") from None
        raise
    return Wrote(str(made.id))


Writer = Callable[[GithubSession, FactRow], Awaitable[Wrote]]
WRITERS: Mapping[str, Writer] = {
    **dict.fromkeys(COMMENTS, comment),
    FactKind.TAKEN: reaction,
    FactKind.APPLIED: reaction,
    FactKind.PUBLISH: publishing.open_pull,
    FactKind.CHECK: checks.write,
}
