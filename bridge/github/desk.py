"""The GitHub process. The desk is the Temporal workflow that runs GitHub turns; this process signals it on news, and
runs its turns.

A turn declares new facts (comments, checks or pull requests to post), reads new comments, acts on commands, writes one
fact, and schedules the next turn. A turn may be repeated from any point: every step first checks whether it was done.
"""

import asyncio
import logging
import os
import signal
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from temporalio import activity
from temporalio.client import Client as TemporalClient
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities import cluster, takeover
from activities.github import api
from activities.github.client import AwayError, Client, DeclinedError, LimitedError
from activities.github.credentials import credentials
from activities.host import admission
from activities.host.heartbeat import Heartbeat, beating
from activities.runs.service_process import watch_task
from activities.settings import ready
from activities.store.github import account, facts, threads
from activities.store.github.account import Account
from activities.store.github.facts import FactRow
from activities.store.github.threads import Thread
from activities.store.leader import Chore, Leader
from bridge.github import checks, comments, publishing, writing
from bridge.github.session import APART, GithubSession
from bridge.operations.github.desk import ring
from bridge.operations.github.polling import of_interest
from bridge.operations.github.tree import bound_tree, last_event
from bridge.operations.service import Service
from bridge.operations.temporal import candidate, client_of
from workflows.github.bound_tree import BoundTree
from workflows.github.facts import EDITED, ON_PULLS, Fact, FactKind, due, on_pull
from workflows.model.errors import UnreachableError
from workflows.policy.backoff import backoff
from workflows.temporal.github_desk import GithubDesk, Push, Turn, desk_id, pushing_queue, turns_queue
from workflows.text.durations import clock

log = logging.getLogger("service")

LOOK_SECONDS = 1.0
"""Seconds between two checks of the store for news."""

RING_SECONDS = 2.0
"""Least seconds between two signals to the desk."""

FIRST_WAIT, LONGEST_WAIT = 5.0, 900.0
"""The backoff, in seconds, while GitHub is unreachable: from the first to the longest wait."""

FRESH_SECONDS = 3600.0
"""Seconds after which the account's login is fetched again."""

REFUSED_SECONDS = 300.0
"""Seconds to wait after GitHub refused the account."""

SETTLES = 10.0
"""Least seconds between two edits of a status comment, unless the tree waits or has ended: legs end in bursts."""


async def serve(service: Service) -> None:
    """Run both workers until SIGTERM."""
    settings = service.settings
    known = credentials(settings.github, os.environ)
    for name in settings.github.secrets:  # child processes must not see them
        os.environ.pop(name, None)
    await asyncio.to_thread(admission.check, candidate(service))
    temporal = await client_of(service)
    await cluster.require(temporal)
    taking = await takeover.begin(temporal, settings.host, settings.temporal.task_queue, GithubDesk.__name__)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await asyncio.to_thread(account.ask_anew, service.store)
    async with Client(service.store, known, settings.github.api_url) as client, AsyncExitStack() as stack:
        desk = Desk(GithubSession(service, client))
        ours = settings.temporal.task_queue
        for queue, work in ((turns_queue(ours), desk.turn), (pushing_queue(ours, settings.host), desk.push)):
            worker = Worker(
                temporal,
                task_queue=queue,
                activities=[work],
                max_concurrent_activities=1,
                graceful_shutdown_timeout=timedelta(seconds=5),
                identity=takeover.worker_identity(settings.host),
            )
            await stack.enter_async_context(worker)
        ready.say(service.home.github_ready, service.reading.in_use())
        log.info("ready to speak to %s", settings.github.api_url)
        chores = _ring_for_news(service, temporal), ready.keep_beating(service.home.github_ready)
        beside = [taking, *(watch_task(asyncio.create_task(chore)) for chore in chores)]
        await stop.wait()
        for chore in beside:
            chore.cancel()


async def _ring_for_news(service: Service, temporal: TemporalClient) -> None:
    """Signal the desk at the start and, if this host leads, whenever the store has news. The desk's own timer covers
    facts that are due later.
    """
    leader = Leader(service.store, Chore.LOOK_FOR_NEWS_FOR_GITHUB)
    last = 0.0
    clock = asyncio.get_running_loop().time
    while True:
        try:
            if last == 0.0 or (
                clock() - last > RING_SECONDS and await asyncio.to_thread(lambda: leader.leads() and is_news(service))
            ):
                await ring(temporal, service.settings.temporal.task_queue)
                last = clock()
        except (SQLAlchemyError, UnreachableError, OSError) as error:
            log.warning("cannot be woken: %s", error)
            await asyncio.sleep(RING_SECONDS)
        await asyncio.sleep(LOOK_SECONDS)


def is_news(service: Service) -> bool:
    """Return whether something happened that no turn has seen; always False while a rate limit blocks the account."""
    store, now = service.store, time.time()
    if (account.read(store).blocked_until or 0.0) > now:
        return False
    if _bound_new(service) or threads.untold(store) or threads.open_comments(store):
        return True
    interest = of_interest(service)
    if any(each.wanted_at > each.polled_at and each.github in interest for each in account.readings(store)):
        return True
    first = facts.next_due(store, now)
    return (first is not None and first.attempts == 0) or publishing.is_news(service, now)


class Desk:
    """The activities of the desk. All of its state is in the store."""

    def __init__(self, session: GithubSession) -> None:
        self._session = session

    @activity.defn(name="github_turn")
    async def turn(self, desk: str) -> Turn:
        """Take one turn. A rate limit ends the turn, and the workflow's timer waits.

        Anybody with access to the Temporal server can start a desk, so check the id: there is one desk, without input.
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
            await asyncio.to_thread(_declare, self._session)  # also while GitHub is unreachable
            await _refresh_login(self._session)
            did += await comments.read(self._session)
            did += await comments.act(self._session)
            did += await writing.write_one(self._session)
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
        due = [facts.waiting_until(store), *(each.next_at for each in comments.repositories_to_read(self._session))]
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
    """Block the account's requests for a time after GitHub was unreachable, with exponential backoff."""
    wait = backoff(FIRST_WAIT, known.failures, LONGEST_WAIT)
    since = known.failing_since or time.time()
    until = time.time() + wait
    account.note(store, blocked_until=until, failing_since=since, failures=known.failures + 1, problem=why)


def _works(store: Engine, known: Account) -> None:
    if known.problem or known.blocked_until:
        account.note(store, blocked_until=None, failing_since=None, failures=0, problem="")
    account.tidy(store)


async def _refresh_login(session: GithubSession) -> None:
    """Fetch the account's login unless it is fresh. If GitHub refuses the account, wait for a while and
    notify people.
    """
    known = await asyncio.to_thread(account.read, session.store)
    if known.login and time.time() - known.seen_at < FRESH_SECONDS:
        return
    try:
        user = await api.whoami(session.client)
    except DeclinedError as error:
        why = f"{account.REFUSED}: {error}"
        raise LimitedError(why, time.time() + REFUSED_SECONDS) from None
    kind = "app" if session.client.is_app else "user"
    await asyncio.to_thread(
        account.note, session.store, login=user.login, kind=kind, seen_at=time.time(), checks_refused=False
    )


def _bound_new(service: Service) -> bool:
    """Bind new trees to their issues or pull requests, and have their repositories read at once, since known heads may
    be outdated.
    """
    served = service.settings.github.repos
    new = threads.bind_new(service.store, served) | threads.bind_pulls(service.store, served)
    for github in new:
        account.want_reading(service.store, github)
    return bool(new)


def _declare(session: GithubSession) -> None:
    """Declare the facts of every tree that has new events."""
    store = session.store
    _bound_new(session.service)
    for thread in threads.untold(store):
        tree = bound_tree(session.service, thread.root_job_id)
        if tree is not None:
            _declare_tree(session, thread, tree)
            threads.advance(store, thread.root_job_id, last_event(tree), over=tree.task.state.is_closed)
    publishing.declare(session)


def _declare_tree(session: GithubSession, thread: Thread, tree: BoundTree) -> None:
    """Declare new facts, and queue edits of written ones, whose content may have changed."""
    store, root = session.store, thread.root_job_id
    tree_facts = [each for each in due(tree) if _is_wanted(session, thread, each)]
    pulls = [(each, place) for place in threads.pulls_of(store, thread) for each in tree_facts if each.kind in ON_PULLS]
    posts = [(each, thread) for each in tree_facts]
    posts += [(replace(each, fact_id=on_pull(each.fact_id, place.number)), place) for each, place in pulls]
    known = {each.fact_id: each for each in facts.of_root(store, root)}
    wanted = [
        FactRow(fact.fact_id, fact.kind, root, place.github, place.number, fact.about)
        for fact, place in posts
        if fact.fact_id not in known and not fact.only_edit
    ]
    facts.declare(store, [*wanted, *checks.wanted_checks(session, thread)])
    checks.again(session, thread)
    hurries = tree.task.state.is_closed or any(each.end is None for each in tree.rounds)
    for fact, _ in posts:
        was = known.get(fact.fact_id)
        if was is not None and was.state == facts.DONE and fact.kind in EDITED:
            facts.again(store, fact.fact_id, next_at=0.0 if hurries else (was.done_at or 0.0) + SETTLES)


def _is_wanted(session: GithubSession, thread: Thread, fact: Fact) -> bool:
    """Return whether a fact is to be posted. On a pull request that publishes the work, the body already shows the
    status.
    """
    if thread.kind == threads.PUBLISHED and fact.kind not in {*ON_PULLS, FactKind.REFUSAL}:
        return False
    match session.settings.comments:
        case "all":
            return True
        case "pauses":
            return fact.kind in {FactKind.PAUSE, FactKind.REMINDER, FactKind.REFUSAL}
        case "never":
            return False
