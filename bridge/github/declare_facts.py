"""Declaring the facts to write about trees, only from the trees' rows (ruling L2)."""

import time
from dataclasses import replace

from activities.store.github import account, comments, facts, reading, threads
from activities.store.github.facts import FactRow
from activities.store.github.threads import Thread
from bridge.github import checks, publishing
from bridge.github.session import Session
from bridge.operations.github.interest import of_interest
from bridge.operations.github.tree import bound_tree, last_event
from bridge.operations.service import Service
from workflows.github.bound_tree import BoundTree
from workflows.github.facts import EDITED, ON_PULLS, Fact, FactKind, due, on_pull

SETTLES = 10.0
"""Least seconds between two edits of a status comment, unless the tree waits or has ended: legs end in bursts."""


def is_news(service: Service) -> bool:
    """Return whether something happened that no turn has seen; always False while a rate limit blocks the account."""
    store, now = service.store, time.time()
    if (account.read(store).blocked_until or 0.0) > now:
        return False
    if _bound_new(service) or threads.untold(store) or comments.open_ones(store):
        return True
    interest = of_interest(service)
    if any(each.wanted_at > each.polled_at and each.github in interest for each in reading.every(store)):
        return True
    first = facts.next_due(store, now)
    return (first is not None and first.attempts == 0) or publishing.is_news(service, now)


def _bound_new(service: Service) -> bool:
    """Bind new trees, and have their repositories polled at once: their pull requests' heads may be outdated."""
    served = service.settings.github.repos
    new = threads.bind_new(service.store, served) | threads.bind_published(service.store, served)
    for github in new:
        reading.want(service.store, github)
    return bool(new)


def declare(session: Session) -> None:
    """Declare the facts of every tree that has new events."""
    store = session.store
    _bound_new(session.service)
    for thread in threads.untold(store):
        tree = bound_tree(session.service, thread.root_job_id)
        if tree is not None:
            _declare(session, thread, tree)
            threads.told(store, thread.root_job_id, last_event(tree), over=tree.task.state.closed)
    publishing.declare(session)


def _declare(session: Session, thread: Thread, tree: BoundTree) -> None:
    """Declare new facts, and queue edits of written ones, whose content may have changed."""
    store, root = session.store, thread.root_job_id
    told = [each for each in due(tree) if _is_wanted(session, thread, each)]
    pulls = [(each, place) for place in threads.pulls_of(store, thread) for each in told if each.kind in ON_PULLS]
    said = [(each, thread) for each in told]
    said += [(replace(each, fact_id=on_pull(each.fact_id, place.number)), place) for each, place in pulls]
    known = {each.fact_id: each for each in facts.of_root(store, root)}
    wanted = [
        FactRow(each.fact_id, each.kind, root, place.github, place.number, each.about)
        for each, place in said
        if each.fact_id not in known and not each.only_edit
    ]
    facts.declare(store, [*wanted, *checks.wanted(session, thread)])
    checks.again(session, thread)
    hurries = tree.task.state.closed or any(each.end is None for each in tree.rounds)
    for each, _ in said:
        was = known.get(each.fact_id)
        if was is not None and was.state == facts.DONE and each.kind in EDITED:
            facts.again(store, each.fact_id, next_at=0.0 if hurries else (was.done_at or 0.0) + SETTLES)


def _is_wanted(session: Session, thread: Thread, fact: Fact) -> bool:
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
