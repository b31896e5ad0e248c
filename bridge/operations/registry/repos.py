"""Registering repositories."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from activities.git import hub
from activities.git.checkout import top_level
from activities.git.registered_repository import common_directory
from activities.git.remotes import remotes, without_credentials
from activities.host import checkouts
from activities.store import job_rows
from activities.store.job_rows import JobFilter
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Remote, Repo
from bridge.operations.registry import arguments
from bridge.operations.registry.arguments import within_bound
from bridge.operations.service import Service
from workflows.contract.storable import storable
from workflows.github.repository_name import github_of_remotes, host_of, is_github_name
from workflows.model.errors import (
    Commands,
    NotFoundError,
    RefusedError,
    ServiceError,
    UsageError,
    argument,
    with_correction,
    with_nearest,
)
from workflows.text.plurals import quantity

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def add(
    service: Service,
    name: str,
    path: Path | None,
    github: str | None = None,
    remote: str | None = None,
    *,
    move: bool = False,
    require: Sequence[str] | None = None,
    prefer: Sequence[str] | None = None,
) -> Repo:
    """Register a checkout, a remote, or both under a name. An existing name keeps the other of the two.

    Its GitHub name is `github` if given, even if empty; else read from its remotes; else the one that was registered.
    """
    with argument("name"):
        check_name(name)
    known = repo_rows.get(service.store, name)
    with argument("path"):
        top = _checkout(path) if path else ""
        _refuse_two(service, known, name, top, remote, move=move)
    if github and not is_github_name(github):
        again = f"service repo add {name} {top}" if top else f"service repo add {name} --remote {remote}"
        raise UsageError(f"{github!r} is not a repository on GitHub", f"{again} --github OWNER/NAME")
    with argument("remote"):
        reached = _remote(service, remote) if remote else Remote("", "", "") if remote is not None else None
    if github is None:
        named = remotes(Path(top)) if top else {}
        named |= {"origin": remote} if remote and not named else {}
        by_remotes = github_of_remotes(named, host_of(service.settings.github.web))
        github = by_remotes or (known.github if known else "")
    with argument("require"):
        asked = [None if each is None else arguments.labels(each) for each in (require, prefer)]
    here = service.settings.host
    return repo_rows.put(service.store, name, top, here, github, reached, require=asked[0], prefer=asked[1])


def _checkout(path: Path) -> str:
    top = str(top_level(path))
    if top != storable(top):
        raise UsageError(f"{storable(top)} is not UTF-8: such a path cannot be registered", "rename the folder")
    return top


def push_notice(service: Service, repo: Repo) -> tuple[str, ...]:
    """Return sentences for people on what jobs push to the repository's remote, how often, and who can read it."""
    through = checkouts.hub_of(service, repo)
    if through is None:
        return ()
    return (
        f"each job's commits are pushed there when it ends, as {through.ref('JOB')}",
        "while it works, its files are pushed once a minute, committed or not; none that is ignored or has a secret",
        f"whoever can read {through.safe_url} can read them; [git].hub names another place: service help remotes",
    )


def _refuse_two(service: Service, known: Repo | None, name: str, top: str, remote: str | None, *, move: bool) -> None:
    """Refuse to take over a name from another host's checkout, or to leave a name without checkout and remote."""
    here = service.settings.host
    if remote == "" and not (top or (known and known.checkouts)):
        raise UsageError(f"without a remote, {name} needs a checkout", f"service repo add {name} PATH")
    if remote == "" and not top and known and len(known.checkouts) > 1:
        hosts = ", ".join(known.checkouts)
        raise UsageError(
            f"{name} has checkouts on {hosts}: one of them is left", f"service repo add {name} PATH --remote ''"
        )
    shared = remote or (known and known.remote and remote is None)
    if known and top and not shared and known.checkouts and here not in known.checkouts:
        _check_move(service, known, top, move=move)


def _remote(service: Service, url: str) -> Remote:
    """Connect to a remote and the hub, and find out where work may be pushed. Raise if that fails; nothing is
    registered here.
    """
    url = address(url, Path())
    branch = hub.default_branch(url)
    git = service.settings.git
    return Remote(url, branch, hub.namespace(git.hub or url, branches_allowed=git.hub_branches))


def address(url: str, folder: Path) -> str:
    """Return a remote's address in the form that is registered, a path as an absolute one. Raise if it is not a valid
    address.
    """
    if not url.isprintable() or url.startswith("-") or url != storable(url):
        raise UsageError(f"{storable(url)!r} is not a URL or a path of a repository", "--remote URL")
    if without_credentials(url) != url:
        clean = without_credentials(url)
        raise UsageError(
            "the remote's address holds a password, which would be stored",
            Commands("git config --global credential.helper store", f"--remote {clean}"),
        )
    if not is_url(url):
        return os.path.normpath(folder.absolute() / Path(url).expanduser())
    return url


def _check_move(service: Service, known: Repo, top: str, *, move: bool) -> None:
    """Refuse to take a repository over from another host, unless `move` is set and no open job works on it there."""
    where = f"{known.name} is registered on the host {known.host}, at {known.path}"
    if not move:
        raise RefusedError(where, f"to have its jobs run here: service repo add {known.name} {shlex.quote(top)} --move")
    if running := job_rows.open_jobs(service.store, repo=known.name):
        says = f"{where}, and has {quantity(len(running), 'open job')} there, {running[0].job_id} among them"
        raise RefusedError(says, f"service job show {running[0].job_id}")


def check_name(name: str) -> None:
    """Raise unless a repository can have this name."""
    if not _NAME.fullmatch(name):
        address = f"--remote {shlex.quote(without_credentials(name))}" if is_url(name) else "PATH"
        raise UsageError(f"{name!r} is not a repository name", f"service repo add OWNER/NAME {address}")
    within_bound("repo", "the repository's name", name)


def every(service: Service) -> list[Repo]:
    """Return the registered repositories by name."""
    return repo_rows.every(service.store)


def get(service: Service, name: str) -> Repo:
    """Return one repository as this host has it; raise an error with the known names if it is not registered."""
    repo = repo_rows.get(service.store, name)
    if repo is None:
        names = [repo.name for repo in repo_rows.every(service.store)]
        known = ", ".join(names) or "none"
        missing = NotFoundError(
            f"no repository {name}; known: {known}", f"service repo add {name if '/' in name else 'OWNER/NAME'} PATH"
        )
        ends = [known for known in names if known.endswith(f"/{name}")]
        raise with_correction(missing, name, ends[0]) if len(ends) == 1 else with_nearest(missing, name, names)
    return checkouts.seen_here(service, repo)


def here(service: Service, folder: Path) -> Repo:
    """Return the registered repository of a folder, which may be below its top or in another of its worktrees.

    Outside git, return the only registered repository; raise if there are several.
    """
    known = every(service)
    names = ", ".join(repo.name for repo in known) or "none"
    try:
        top = top_level(folder)
    except UsageError:
        if len(known) == 1:
            return known[0]
        how = "--repo OWNER/NAME" if known else "in a git repository: service init"
        raise UsageError(f"which repository? Registered: {names}", how) from None
    return _of_checkout(service, known, top)


def _of_checkout(service: Service, known: Sequence[Repo], top: Path) -> Repo:
    """Return the repository of this checkout, or of another worktree of it."""
    common = common_directory(top)
    paths = {repo.name: repo.checkouts.get(service.settings.host) for repo in known}
    matching = [repo for repo in known if (path := paths[repo.name]) and _shares(Path(path), common)]
    if not matching:
        names = ", ".join(repo.name for repo in known) or "none"
        ways = Commands("service init", "--repo OWNER/NAME, to name another one")
        raise UsageError(f"{top} is not registered; registered: {names}", ways)
    return _only(matching, str(top))


def _only(matching: Sequence[Repo], place: str) -> Repo:
    if len(matching) > 1:
        ways = Commands(*(f"--repo {repo.name}" for repo in matching))
        raise UsageError(f"{place} is registered under several names", ways)
    return matching[0]


def at(service: Service, address: str) -> Repo:
    """Return the registered repository with this path or remote; raise with the command that registers it."""
    known = every(service)
    if not is_url(address):
        return _of_checkout(service, known, top_level(Path(address).expanduser()))
    host = host_of(service.settings.github.web)
    github, url = github_of_remotes({"origin": address}, host), without_credentials(address)
    if matching := [repo for repo in known if _has_remote(service, repo, address, github)]:
        return _only(matching, url)
    add = f"service repo add {github or 'OWNER/NAME'} --remote {shlex.quote(url)}"
    raise NotFoundError(f"no registered repository has the remote {url}", Commands(add, "service repo list"))


def is_url(text: str) -> bool:
    """Return whether a text is the address of a repository on another machine, as git takes it."""
    return "://" in text or ":" in text.partition("/")[0]


def _has_remote(service: Service, repo: Repo, url: str, github: str) -> bool:
    """Return whether a URL is the repository's: on GitHub, at its registered remote, or at one of its checkout."""
    if github and repo.github.lower() == github.lower():
        return True
    path = repo.checkouts.get(service.settings.host)
    urls = {repo.remote, *(remotes(Path(path)).values() if path else ())}
    return _plain(url) in set(map(_plain, urls))


def _plain(url: str) -> str:
    return without_credentials(url).rstrip("/").removesuffix(".git")


def _shares(checkout: Path, common: Path) -> bool:
    """Return whether the checkout exists and belongs to this shared git directory."""
    try:
        return common_directory(checkout) == common
    except ServiceError:
        return False


def refuse_unknown(service: Service, name: str) -> None:
    """Raise if a list is filtered by a repository that is not registered and that no job ever worked on."""
    if not job_rows.find(service.store, JobFilter(repo=name, limit=1)):
        get(service, name)


def remove(service: Service, name: str) -> None:
    """Remove a repository that no open job works on."""
    get(service, name)
    if running := job_rows.open_jobs(service.store, repo=name):
        raise RefusedError(
            f"{name} has {quantity(len(running), 'open job')}, {running[0].job_id} among them",
            f"service job show {running[0].job_id}",
        )
    repo_rows.remove(service.store, name)
