"""Writing of declared facts: one per turn, after a search for an existing copy, so that each exists once (L2, L3)."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from sqlalchemy.exc import SQLAlchemyError

from activities.github.client import AwayError, DeclinedError, LimitedError
from activities.store.github import account, facts, threads
from activities.store.github.facts import FactRow
from bridge.github import checks, comments, pulls
from bridge.github.session import APART, Gone, Later, Needless, Never, Session, Wrote
from workflows.github.facts import FactKind
from workflows.policy.backoff import backoff

log = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
AWAY_SECONDS, LONGEST_AWAY = 5.0, 1800.0
"""The backoff of a fact that GitHub fails at. It queues behind all other due facts, so it cannot block them."""

FOR_GOOD = frozenset({404, 410, 422})
"""Permanent errors: not found, gone, or impossible."""

MOST_ATTEMPTS = 8
"""Attempts to write what GitHub declines for a reason that may pass."""

Writer = Callable[[Session, FactRow], Awaitable[Wrote]]
WRITERS: Mapping[str, Writer] = {
    **dict.fromkeys(comments.COMMENTS, comments.comment),
    FactKind.TAKEN: comments.reaction,
    FactKind.APPLIED: comments.reaction,
    FactKind.PUBLISH: pulls.open_pull,
    FactKind.CHECK: checks.write,
}


async def write_one(session: Session) -> list[str]:
    """Write the first fact that is due, unless the last write is too recent."""
    store = session.store
    known, now = await asyncio.to_thread(account.read, store), time.time()
    if known.wrote_at + APART > now:
        return []
    fact = await asyncio.to_thread(facts.next_due, store, now)
    if fact is None:
        return []
    return await _write(session, fact)


async def _write(session: Session, fact: FactRow) -> list[str]:
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
    except Gone as gone:
        await asyncio.to_thread(facts.note, session.store, fact.fact_id, state=facts.DROPPED, error=str(gone))
        return [f"{fact.kind} on {fact.where} is skipped: {gone}"]
    except (DeclinedError, Never) as error:
        final = isinstance(error, Never) or error.status in FOR_GOOD
        return await asyncio.to_thread(_declined, session, fact, str(error), final=final)
    except SQLAlchemyError:
        raise
    except Exception as error:
        log.exception("an internal error with %s", fact.fact_id)
        return await asyncio.to_thread(_declined, session, fact, f"an internal error: {type(error).__name__}")
    await asyncio.to_thread(_written, session, fact, wrote)
    return [f"wrote {fact.kind} on {fact.where}"]


def _written(session: Session, fact: FactRow, wrote: Wrote) -> None:
    said = "" if wrote.more else wrote.digest
    facts.written(session.store, fact.fact_id, github_id=wrote.github_id, url=wrote.url, digest=said)
    if wrote.more:
        facts.again(session.store, fact.fact_id)
    if fact.kind == FactKind.PUBLISH and wrote.url != fact.url:
        threads.look_again(session.store, fact.root_job_id)
        for row in facts.of_root(session.store, fact.root_job_id):
            if row.kind in {FactKind.STATUS, FactKind.END} and row.state == facts.DONE:
                facts.again(session.store, row.fact_id)


def _declined(session: Session, fact: FactRow, why: str, *, final: bool = False) -> list[str]:
    """Give up at once on a permanent error, else after some attempts. People are notified of both."""
    if final or fact.attempts + 1 >= MOST_ATTEMPTS:
        facts.give_up(session.store, fact.fact_id, why)
    else:
        again = time.time() + backoff(RETRY_SECONDS, fact.attempts)
        facts.put_off(session.store, fact.fact_id, again, why)
    return [f"{fact.kind} on {fact.where} is declined: {why}"]
