"""What is to be told of trees: facts are declared as rows from the rows of the tree, and only so (ruling L2)."""

import time

from activities.store.github import account, comments, facts, reading, threads
from activities.store.github.facts import FactRow
from bridge.github import checks, publishing
from bridge.github.session import Session
from bridge.github.tree import Tree, read
from bridge.operations.github_interest import of_interest
from bridge.operations.service import Service
from workflows.github.facts import FactKind, due

SETTLES = 10.0
"""Seconds between two edits of a status comment, unless the tree waits or is over: legs end in bursts."""


_LIVING = frozenset({FactKind.STATUS, FactKind.CHECK, FactKind.PAUSE})
"""What goes on changing after it was written."""


def is_news(service: Service) -> bool:
    """Something happened that no turn knows of yet; nothing counts while GitHub wants to be left alone."""
    store, now = service.store, time.time()
    if (account.read(store).blocked_until or 0.0) > now:
        return False
    if threads.bind_new(store, service.settings.github.repos) or threads.untold(store) or comments.open_ones(store):
        return True
    interest = of_interest(service)
    if any(each.wanted_at > each.polled_at and each.github in interest for each in reading.every(store)):
        return True
    first = facts.next_due(store, now)
    return first is not None and first.attempts == 0


def declare(session: Session) -> None:
    """Declare what is to be told of every tree of which more has happened."""
    store = session.store
    threads.bind_new(store, session.settings.repos)
    for thread in threads.untold(store):
        tree = read(store, thread)
        if tree is None:
            continue
        _declare(session, tree)
        threads.told(store, thread.root_job_id, tree.seq, over=tree.over)


def _declare(session: Session, tree: Tree) -> None:
    """New facts; and those that are written are looked at again, for what they tell may have changed."""
    store, thread = session.store, tree.thread
    wanted = [
        FactRow(each.fact_id, each.kind, thread.root_job_id, thread.github, thread.number, each.subject, at=each.at)
        for each in due(tree.task, tree.jobs, tree.rounds, tree.events)
        if _is_wanted(session, each.kind)
    ]
    wanted += checks.wanted(session, tree)
    wanted += publishing.wanted(session, tree)
    known = {each.fact_id: each for each in facts.of_root(store, thread.root_job_id)}
    facts.declare(store, [each for each in wanted if each.fact_id not in known])
    for each in wanted:
        was = known.get(each.fact_id)
        if (
            was is not None
            and was.state == facts.DONE
            and each.kind in {FactKind.STATUS, FactKind.CHECK, FactKind.PAUSE}
        ):
            hurries = tree.over or tree.task.waits_for
            facts.again(store, each.fact_id, next_at=0.0 if hurries else (was.done_at or 0.0) + SETTLES)


def _is_wanted(session: Session, kind: str) -> bool:
    match session.settings.comments:
        case "all":
            return True
        case "pauses":
            return kind in {FactKind.PAUSE, FactKind.REMINDER}
        case "never":
            return False
