"""Fetching a tree's commits from its repository's hub, before they are shown or changed (ruling Q3).

An order fails if the fetch fails. A display waits a few seconds at most, and then shows what this host has.
"""

import shlex
import threading
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from activities.git import hub
from activities.git.hub import HubBranch
from activities.host import checkouts
from activities.store import tree_rows
from activities.store.registry.repo_rows import Repo
from bridge.operations.jobs.jobs import Tree
from bridge.operations.service import Service
from workflows.model.errors import ServiceError, UnreachableError

FRESH_SECONDS = 10.0
"""Seconds for which a display uses the last fetch of a tree."""
WAIT_SECONDS = 5.0
MOST_KEPT = 256


@dataclass
class _Fetch:
    """A running or finished fetch of one tree's commits."""

    begun: float = field(default_factory=time.monotonic)
    ended: threading.Event = field(default_factory=threading.Event)
    ended_at: float = 0.0
    fault: ServiceError | None = None

    @property
    def is_old(self) -> bool:
        return self.ended.is_set() and time.monotonic() - self.ended_at > FRESH_SECONDS

    def wait(self) -> bool:
        """Wait until the fetch ends, at most a few seconds after its start, even if another caller started it."""
        return self.ended.wait(max(0.0, self.begun + WAIT_SECONDS - time.monotonic()))


_fetches: OrderedDict[tuple[str, str], _Fetch] = OrderedDict()
_lock = threading.Lock()


def fetch(service: Service, repo: Repo, tree: Tree) -> None:
    """Fetch all commits of a tree, for an order. No-op for a repository without a remote."""
    if not repo.remote:
        return
    root = tree.task.root_job_id
    base, of_another = tree_rows.base_of(service.store, root)
    checkouts.fetch(service, repo, (root, of_another), [base] if base else [])


def fetch_every(service: Service, repo: Repo) -> None:
    """Fetch the commits of all trees. No-op for a repository without a remote."""
    if through := checkouts.hub_of(service, repo):
        names = hub.commits_by_name(checkouts.path_of(service, repo), through)
        checkouts.fetch(service, repo, names)


def look(service: Service, repo: Repo, tree: Tree) -> ServiceError | None:
    """Fetch the commits of a tree in order to show them, and wait a few seconds. Return why they may be out of date."""
    if not repo.remote:
        return None
    key = (str(service.home.root), tree.task.root_job_id)
    with _lock:
        known = _fetches.get(key)
        if known is None or known.is_old:
            known = _fetches[key] = _Fetch()
            threading.Thread(target=_run, args=(known, service, repo, tree), daemon=True, name="fetch").start()
        while len(_fetches) > MOST_KEPT:
            _fetches.popitem(last=False)
    if not known.wait():
        return UnreachableError(f"the hub of {repo.name} has not answered yet", "try again in a moment")
    return known.fault


def _run(this: _Fetch, service: Service, repo: Repo, tree: Tree) -> None:
    try:
        fetch(service, repo, tree)
    except ServiceError as error:
        this.fault = error
    finally:
        this.ended_at = time.monotonic()
        this.ended.set()


def branch_of(service: Service, repo: Repo, branch: str) -> HubBranch | None:
    """Return a branch at the hub, for an order that changes it; None for a repository without a remote."""
    through = checkouts.hub_of(service, repo)
    return HubBranch(checkouts.path_of(service, repo), through, branch) if through else None


def remove(service: Service, repo: Repo, names: Collection[str]) -> None:
    """Remove branches and other refs at the hub. No-op for a repository without a remote."""
    if through := checkouts.hub_of(service, repo):
        hub.remove(checkouts.path_of(service, repo), through, names)


def restore(service: Service, repo: Repo, branch: str, commit: str) -> str:
    """Return the command that restores a branch at the hub, and so on every host; empty without a remote."""
    through = checkouts.hub_of(service, repo)
    if through is None:
        return ""
    path = shlex.quote(str(checkouts.path_of(service, repo)))
    return f"git -C {path} push {shlex.quote(through.safe_url)} {commit}:{through.ref(branch)}"


def share(service: Service, repo: Repo, root: str, commit: str) -> None:
    """Push the operator's commit that a job of this tree starts from, because any host may run the job."""
    name = f"{hub.BASES}{root}"
    checkouts.keep(service, repo, commit, name, f"{name}{hub.AT_HOST}{commit}")
