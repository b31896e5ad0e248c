"""Writing what is declared: one thing a turn, looked for before it is made, so it is there once (rulings L2, L3)."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from sqlalchemy.exc import SQLAlchemyError

from activities.github.client import AwayError, DeclinedError, LimitedError
from activities.store.github import account, facts
from activities.store.github.facts import FactRow
from bridge.github import checks, posting, pulls
from bridge.github.session import Session
from bridge.github.wrote import Later, Needless, Never, Wrote
from workflows.github.facts import FactKind

log = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
AWAY_SECONDS, LONGEST_AWAY = 5.0, 1800.0
"""What GitHub fails at is tried again behind all else that is due: one thing that never works holds up nothing."""

MOST_ATTEMPTS = 8
"""So often something is tried that GitHub declines for a reason that may pass."""

Writer = Callable[[Session, FactRow], Awaitable[Wrote]]
WRITERS: Mapping[str, Writer] = {
    **dict.fromkeys(posting.COMMENTS, posting.comment),
    FactKind.TAKEN: posting.reaction,
    FactKind.APPLIED: posting.reaction,
    FactKind.PUBLISH: pulls.open_pull,
    FactKind.CHECK: checks.write,
}


async def write_one(session: Session, apart: float) -> list[str]:
    """Write the first fact that is due, when the last write is long enough ago."""
    store = session.store
    known, now = await asyncio.to_thread(account.read, store), time.time()
    if known.wrote_at + apart > now:
        return []
    fact = await asyncio.to_thread(facts.next_due, store, now)
    if fact is None:
        return []
    return await _write(session, fact)


async def _write(session: Session, fact: FactRow) -> list[str]:
    store, where = session.store, fact.where
    try:
        wrote = await WRITERS[fact.kind](session, fact)
    except (AwayError, LimitedError) as error:  # whether it has happened is looked for first, next time
        wait = min(AWAY_SECONDS * 2**fact.attempts, LONGEST_AWAY) if isinstance(error, AwayError) else 0.0
        again = time.time() + wait
        await asyncio.to_thread(facts.put_off, store, fact.fact_id, again, str(error))
        raise
    except Needless:
        wrote = Wrote()
    except Later as later:
        await asyncio.to_thread(facts.put_off, store, fact.fact_id, later.until, str(later))
        return []
    except (DeclinedError, Never) as error:
        await asyncio.to_thread(_declined, session, fact, error)
        return [f"{fact.kind} on {where} is declined: {error}"]
    except SQLAlchemyError:
        raise
    except Exception as error:
        log.exception("a fault of ours with %s", fact.fact_id)
        await asyncio.to_thread(_declined, session, fact, DeclinedError(0, f"a fault of ours: {type(error).__name__}"))
        return [f"{fact.kind} on {where}: a fault of ours, see the log"]
    written = lambda: facts.written(  # noqa: E731
        store, fact.fact_id, github_id=wrote.github_id, url=wrote.url, digest="" if wrote.more else wrote.digest
    )
    await asyncio.to_thread(written)
    if wrote.more:
        await asyncio.to_thread(facts.again, store, fact.fact_id)
    return [f"wrote {fact.kind} on {where}"]


def _declined(session: Session, fact: FactRow, error: DeclinedError | Never) -> None:
    """What can never be is given up at once, the rest after some attempts; people are told of both."""
    final = isinstance(error, Never) or error.status in {404, 410, 422} or fact.attempts + 1 >= MOST_ATTEMPTS
    if final:
        facts.give_up(session.store, fact.fact_id, str(error))
    else:
        wait = RETRY_SECONDS * 2**fact.attempts
        facts.put_off(session.store, fact.fact_id, time.time() + wait, str(error))
