"""One turn of the desk: read what is new, act on commands, write one fact, and schedule the next turn.

A turn may be repeated from any point: every step first looks whether it was done.
"""

import asyncio
import time

from sqlalchemy import Engine
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.github import api
from activities.github.client import AwayError, DeclinedError, LimitedError
from activities.host.heartbeat import Heartbeat, beating
from activities.store.github import account, facts, reading
from activities.store.github.account import Account
from bridge.github import act_on_comments, declare_facts, publishing, write_facts
from bridge.github import read_comments as comments
from bridge.github.session import APART, Session
from workflows.policy.backoff import backoff
from workflows.temporal.github_desk import Push, Turn, desk_id
from workflows.text.durations import clock

FIRST_WAIT, LONGEST_WAIT = 5.0, 900.0
"""The backoff, in seconds, while GitHub is unreachable: from the first to the longest wait."""


class Desk:
    """The activities of the desk. All of its state is in the store."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @activity.defn(name="github_turn")
    async def turn(self, desk: str) -> Turn:
        """Take one turn. A rate limit ends the turn, and the workflow's timer waits.

        Anybody who reaches the server can start a desk, so the id is checked: there is one desk, and it takes no input.
        """
        if desk != (ours := desk_id(self._session.service.settings.temporal.task_queue)):
            raise ApplicationError(f"{desk} is not the desk of this service, which is {ours}", non_retryable=True)
        async with beating(Heartbeat("github")):
            return await self._turn()

    @activity.defn(name="github_push")
    async def push(self, fact_id: str) -> None:
        """Push a branch from this host's checkout."""
        async with beating(Heartbeat("github")):
            await publishing.push(self._session, fact_id)

    async def _turn(self) -> Turn:
        store = self._session.store
        known = await asyncio.to_thread(account.read, store)
        if (waits := (known.blocked_until or 0.0) - time.time()) > 0:
            return Turn(says=f"waits: {known.problem}", again=waits)
        did: list[str] = []
        try:
            await asyncio.to_thread(declare_facts.declare, self._session)  # also while GitHub is unreachable
            await refresh_login(self._session)
            did += await comments.read(self._session)
            did += await act_on_comments.act(self._session)
            did += await write_facts.write_one(self._session)
        except LimitedError as error:
            await asyncio.to_thread(_block, store, known, str(error), error.until)
        except AwayError as error:
            await asyncio.to_thread(_leave_alone, store, known, str(error))
        else:
            await asyncio.to_thread(_works, store, known)
        return await asyncio.to_thread(self._next, did)

    def _next(self, did: list[str]) -> Turn:
        """Return the next wake-up time and the pushes that are due."""
        store, now = self._session.store, time.time()
        known = account.read(store)
        pushes = [] if known.blocked_until else publishing.to_push(store, now)
        due = [facts.waiting_until(store), *(each.next_at for each in comments.of_interest(self._session))]
        at = min((each for each in due if each is not None), default=None)
        if known.blocked_until:
            at = known.blocked_until
        elif at is not None:
            at = max(at, known.wrote_at + APART)
        wanted = tuple(Push(fact_id=each.fact_id, host=publishing.pusher(self._session, each)) for each in pushes)
        if wanted:
            at = max(now, known.wrote_at + APART)
        says = "; ".join([*did, *([known.problem] if known.problem else [])]) or "nothing to do"
        return Turn(says=says, again=None if at is None else max(at - now, 0.0), pushes=wanted)


def _block(store: Engine, known: Account, why: str, until: float) -> None:
    since = known.failing_since or time.time()
    account.note(store, blocked_until=until, failing_since=since, problem=f"{why}, until {clock(until)}")


def _leave_alone(store: Engine, known: Account, why: str) -> None:
    """Block the account's requests while GitHub is unreachable, with exponential backoff."""
    wait = backoff(FIRST_WAIT, known.failures, LONGEST_WAIT)
    since = known.failing_since or time.time()
    until = time.time() + wait
    account.note(store, blocked_until=until, failing_since=since, failures=known.failures + 1, problem=why)


def _works(store: Engine, known: Account) -> None:
    if known.problem or known.blocked_until:
        account.note(store, blocked_until=None, failing_since=None, failures=0, problem="")
    reading.tidy(store)


FRESH_SECONDS = 3600.0
REFUSED_SECONDS = 300.0


async def refresh_login(session: Session) -> None:
    """Fetch the account's login unless it is fresh. If GitHub refuses the account, wait for a while and
    notify people.
    """
    known = await asyncio.to_thread(account.read, session.store)
    if known.login and time.time() - known.seen_at < FRESH_SECONDS:
        return
    try:
        found = await api.whoami(session.client)
    except DeclinedError as error:
        why = f"{account.REFUSED}: {error}"
        raise LimitedError(why, time.time() + REFUSED_SECONDS) from None
    kind = "app" if session.client.is_app else "user"
    await asyncio.to_thread(
        account.note, session.store, login=found.login, kind=kind, seen_at=time.time(), checks_refused=False
    )
