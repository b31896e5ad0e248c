"""Automatic merges of ended trees into their task branches, where the settings say so (ruling O6)."""

import asyncio
import logging
import time
from itertools import islice

from sqlalchemy.exc import SQLAlchemyError

from activities.store import branch_rows, tree_rows
from activities.store.registry import host_rows, repo_rows
from bridge.operations.branches import branches, merge_gate, merge_offer, merges
from bridge.operations.branches.branches import Branches
from bridge.operations.service import Service
from workflows.github.merge_gate import GateState
from workflows.model.errors import RefusedError, ServiceError
from workflows.model.event_kinds import BranchEventKind
from workflows.policy.host_availability import lacks_worker

log = logging.getLogger("service")

LOOK_SECONDS = 2.0
REACHES_BACK = 24 * 3600.0
"""Seconds after a tree's end in which it is merged automatically. Later, nobody expects its branch to move."""
AGAIN_SECONDS = 60.0
"""The least time until an end is judged again; an old end waits for a tenth of its age."""
AT_ONCE = 20
"""The most ends to judge in one look. After a start there are those of a whole day, and the newest come first."""
ACTOR = "[orchestrate].merge"


class EndWatcher:
    """Decides once for each end of a tree whether to merge it. A tree that was re-opened ends again."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, float]] = set()
        self._again: dict[tuple[str, float], float] = {}
        """Ends to decide about later: their rows are not whole yet, or git, the store or the hub failed."""

    def look(self, service: Service) -> list[str]:
        """Merge the trees that ended successfully and pass the merge gate; return their roots.

        Merging is idempotent. If the process was killed after a merge, the next merge adds the missing record.
        """
        done = []
        ends = tree_rows.to_merge(service.store, time.time() - REACHES_BACK)
        due = ((root, at) for root, repo, at in ends if self._is_due((root, at)) and _is_ours(service, root, repo))
        for root, ended_at in islice(due, AT_ONCE):
            end = root, ended_at
            try:
                merged = _merge_if_ready(service, root)
            except RefusedError as error:
                log.warning("the tree %s is not merged by itself: %s", root, error.message)
                merged = False
            except ServiceError as error:
                log.warning("the tree %s is not merged by itself yet: %s", root, error.message)
                merged = None
            if merged is None:
                self._again[end] = time.monotonic() + max(AGAIN_SECONDS, (time.time() - ended_at) / 10)
                continue
            self._seen.add(end)
            self._again.pop(end, None)
            if merged:
                done.append(root)
        return done

    def _is_due(self, end: tuple[str, float]) -> bool:
        return end not in self._seen and time.monotonic() >= self._again.get(end, 0.0)


def _merge_if_ready(service: Service, root: str) -> bool | None:
    """Return whether the tree was merged; None if it can't be judged yet."""
    tree = branches.of_tree(service, root, fresh=True)
    if not tree.line or _is_handled(service, tree):
        return False
    match merge_gate.of_tree(service, root, tree=tree, at_line=True).state:
        case GateState.PASSING:
            merges.merge(service, [root], actor=ACTOR)
            return True
        case GateState.FAILING:
            return False
        case GateState.PENDING | GateState.UNKNOWN:
            return None


def _is_ours(service: Service, root: str, name: str) -> bool:
    """Return whether this host merges the tree: it has the checkout. With a remote, the tree's host merges, or any
    other host while that host has no worker.
    """
    here, repo = service.settings.host, repo_rows.get(service.store, name)
    if repo is None or not repo.is_on(here) or not repo.remote:
        return repo is not None and repo.is_on(here)
    host = host_rows.of_trees(service.store, {root}).get(root)
    return host is None or host.name == here or lacks_worker(host)


def _is_handled(service: Service, tree: Branches) -> bool:
    """Return whether the tree needs no automatic merge: its line (the commit with all of its cleanly merged work) is
    merged, or a person has dropped one of its branches.
    """
    events = branch_rows.events_of(service.store, tree.root_job_id)
    merged = {event.branch for kind, _, event in events if kind is BranchEventKind.MERGED}
    dropped = any(kind is BranchEventKind.DROPPED for kind, _, _ in events)
    return dropped or all(leg.branch in merged for leg in merge_offer.on_line(tree))


async def keep(service: Service) -> None:
    """Run `look` at intervals for as long as the process lives."""
    watcher = EndWatcher()
    while True:
        try:
            for root in await asyncio.to_thread(watcher.look, service):
                log.info("the tree %s is merged into the branch of its task", root)
        except (SQLAlchemyError, ServiceError, OSError) as error:
            log.warning("ended trees cannot be read: %s", error)
        await asyncio.sleep(LOOK_SECONDS)
