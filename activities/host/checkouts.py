"""The place of a repository on this host: its registered checkout, or a mirror of its remote (ruling Q3)."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from activities.git import hub, mirrors
from activities.git.hub import Hub
from activities.git.mirrors import Mirror, mirror_of
from activities.store import branch_rows
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Repo
from workflows.model.event_kinds import BranchEventKind

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from activities.settings.home import Home
    from activities.settings.model import Settings


class Here(Protocol):
    """This host: its home, its settings, and the store that it shares with other hosts."""

    @property
    def home(self) -> "Home": ...
    @property
    def settings(self) -> "Settings": ...
    @property
    def store(self) -> "Engine": ...


def path_by_name(here: Here, name: str) -> Path:
    """Return where a registered repository is on this host. Its mirror is made if it is missing; nothing else is
    fetched.
    """
    return path_of(here, repo_rows.must_get(here.store, name))


def path_of(here: Here, repo: Repo) -> Path:
    """Return where the repository is on this host; raise with the command to type if this host can't work on it."""
    repo.refuse_elsewhere(here.settings.host)
    if path := repo.checkouts.get(here.settings.host):
        return Path(path)
    return mirrors.make_if_missing(_mirror(here, repo))


def seen_here(here: Here, repo: Repo) -> Repo:
    """Return the repository with the path and the host of this host's checkout or mirror. A repository that this host
    can't work on is returned unchanged.
    """
    host = here.settings.host
    if not repo.is_on(host):
        return repo
    return replace(repo, path=repo.checkouts.get(host) or str(_mirror(here, repo).path), host=host)


def is_made(here: Here, repo: Repo) -> bool:
    """Return whether this host has a checkout of the repository, or has made its mirror."""
    return here.settings.host in repo.checkouts or (bool(repo.remote) and _mirror(here, repo).is_made)


def every_here(here: Here) -> list[Repo]:
    """Return the repositories that this host has a checkout or a mirror of, with their paths on this host."""
    return [seen_here(here, repo) for repo in repo_rows.every(here.store) if is_made(here, repo)]


def unused_mirrors(here: Here, before: float) -> Iterator[Path]:
    """Yield mirrors unused since `before` whose repository isn't registered, or is registered with another remote."""
    known = [_mirror(here, repo).path for repo in repo_rows.every(here.store)]
    return mirrors.unused_mirrors(here.home.mirrors, known, before)


def fresh(here: Here, repo: Repo) -> Repo:
    """Return the repository with its path on this host. A mirror is fetched first; a checkout stays as it is."""
    if repo.remote and here.settings.host not in repo.checkouts:
        mirrors.fetch(_mirror(here, repo))
    return seen_here(here, repo)


def newest(here: Here, repo: Repo) -> str:
    """Return the commit that new work begins from: the tip of the remote's default branch, fetched first. For a
    repository without a remote, return the checkout's HEAD.
    """
    from activities.git.work_folder import worktrees  # commands that only look need not load it

    path = path_of(here, repo)
    if not repo.remote:
        return worktrees.tip(path)
    commit = hub.tip(path, repo.remote, repo.default_branch)
    hub.fetch_commits(path, (repo.remote,), [commit])
    return commit


def hub_of(here: Here, repo: Repo) -> Hub | None:
    """Return the hub through which hosts exchange the repository's commits; None without a remote.

    In a hub that is not the remote, each repository has a namespace.
    """
    if not repo.remote:
        return None
    refs, own, allowed = repo.refs or hub.SERVICE, here.settings.git.hub, here.settings.git.hub_branches
    return Hub(own or repo.remote, f"{refs}{repo.name.replace('/', '--')}/" if own else refs, allowed)


def fetch(here: Here, repo: Repo, names: Iterable[str], commits: Collection[str] = ()) -> Path:
    """Return where the repository is, with all work of the trees that these branches or jobs belong to, and with these
    commits. Without a remote, nothing is fetched.
    """
    path, through = path_of(here, repo), hub_of(here, repo)
    if through is not None:
        trees = hub.trees_in(names)
        events = branch_rows.events_of(here.store, *(f"job-{each}" for each in trees))
        dropped = {event.branch for kind, _, event in events if kind is BranchEventKind.DROPPED}
        hub.fetch_trees(path, through, trees, dropped)
        hub.fetch_commits(path, (through.url, repo.remote), commits)
    return path


def reach(here: Here, repo: Repo) -> None:
    """Raise within seconds if the remote of a repository, or its hub, does not answer this host."""
    if through := hub_of(here, repo):
        for url in dict.fromkeys((repo.remote, through.url)):
            hub.reach(url)


def share(here: Here, repo: Repo, commit: str) -> None:
    """Push a tree's start commit to the hub, unless the remote or the hub has it: jobs on other hosts may begin from
    it.

    Without a remote, nothing is pushed.
    """
    keep(here, repo, commit, f"{hub.BASES}{commit}", f"{hub.BASES}{commit}")


def keep(here: Here, repo: Repo, commit: str, name: str, elsewhere: str) -> None:
    """Push a commit to a name at the hub, or to the name `elsewhere`, unless the remote or the hub has it already."""
    path, through = path_of(here, repo), hub_of(here, repo)
    mirror = here.settings.host not in repo.checkouts
    if through is not None and hub.is_only_here(path, repo.remote, commit, mirror=mirror):
        hub.keep(path, through, commit, name, elsewhere)


def _mirror(here: Here, repo: Repo) -> Mirror:
    return mirror_of(here.home.mirrors, repo.name, repo.remote, repo.default_branch)
