"""The heads of pull requests, fetched into a registered checkout (ruling L1)."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from activities.git import remotes
from activities.git.command import GitError, git, line, printable
from activities.git.git_branches import commit
from activities.git.locks import hold_lock
from activities.git.registered_repository import borrower, common_directory
from workflows.github.repository_name import host_of, remote_of
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError
from workflows.policy.binding_words import WEB

FETCH_SECONDS = 45.0
"""Timeout of a fetch. A schedule's run is planned within a minute, and the fetch is a part of it."""

ASK_SECONDS = 10.0
OPTIONS = (
    *("--quiet", "--no-tags", "--refmap=", "--no-write-fetch-head", "--no-recurse-submodules"),
    *("--no-auto-maintenance", "--upload-pack=git-upload-pack"),
)
LOCK_FILE = "service-pull-requests.lock"
_NO_SUCH_REF = 2
_NOT_LET_IN = (
    "authentication failed",
    "could not read username",
    "permission denied",
    "invalid credentials",
    "error: 403",
)


@dataclass(frozen=True)
class Source:
    """A checkout, and its repository on GitHub with the pull requests."""

    repo: Path
    github: str
    web: str = WEB
    """The address of GitHub; a token is sent to this address alone."""


@dataclass(frozen=True)
class _GithubRemote:
    repo: Path
    name: str
    url: str
    github: str
    web: str

    @property
    def label(self) -> str:
        return f"the remote {printable(self.name)} ({printable(remotes.without_credentials(self.url))})"

    @property
    def over_http(self) -> bool:
        return self.url.startswith(("http://", "https://"))

    @property
    def by_ssh(self) -> str:
        return f"git@{host_of(self.web)}:{self.github}.git"

    def command(self, words: str) -> str:
        return f"git -C {printable(str(self.repo))} {words}"


def ref_of(number: int) -> str:
    """Return the reference of a pull request's head in the checkout."""
    return f"refs/service/pull/{number}"


def heads(source: Source, numbers: Collection[int], token: str | None = None) -> dict[int, str]:
    """Fetch the commits at the heads of these pull requests. Replaced heads stay reachable through the reference's
    log.
    """
    if not numbers:
        return {}
    common = common_directory(source.repo)
    remote = _remote(source)
    env = remotes.environment(token, source.web)
    with hold_lock(common / LOCK_FILE) as lock:
        for number in numbers:  # locks that a killed git left; nothing else writes these references
            (common / f"{ref_of(number)}.lock").unlink(missing_ok=True)
        with _from(remote, token) as fetch_from:
            _fetch(remote, fetch_from, sorted(numbers), env, lock)
        return {number: _commit(remote, number) for number in numbers}


def target(source: Source, branch: str) -> str:
    """Return git's name in this checkout for the target branch of a pull request; empty if it is unknown.

    Without the branch's name, return the remote's main branch.
    """
    remote = remote_of(remotes.remotes(source.repo), source.github, host_of(source.web)) or "origin"
    usual = (f"{remote}/HEAD", f"{remote}/main", f"{remote}/master", "main", "master")
    names = (f"{remote}/{branch}", branch) if branch else usual
    return next((each for each in names if commit(source.repo, each)), "")


def _remote(source: Source) -> _GithubRemote:
    known = remotes.remotes(source.repo)
    name = remote_of(known, source.github, host_of(source.web))
    if name is None:
        new = "github" if "origin" in known else "origin"
        add = f"git -C {printable(str(source.repo))} remote add {new} {source.web}/{source.github}.git"
        raise RefusedError(f"{printable(str(source.repo))} has no remote to fetch {source.github} from", add)
    return _GithubRemote(source.repo, name, known[name], source.github, source.web)


@dataclass(frozen=True)
class _FetchFrom:
    """The folder that git fetches in, and the URL or name of the remote there."""

    folder: Path
    url: str


@contextmanager
def _from(remote: _GithubRemote, token: str | None) -> Iterator[_FetchFrom]:
    """Fetch in the checkout; with a token, in a separate repository, since the checkout's settings may name a proxy
    that listens in.
    """
    if not token:
        yield _FetchFrom(remote.repo, remote.name)
        return
    url = remote.url.strip()
    on_disk = "://" not in url and ":" not in url.partition("/")[0]
    with borrower(remote.repo) as folder:
        yield _FetchFrom(folder, str(remote.repo / url) if on_disk else url)


def _fetch(remote: _GithubRemote, fetch_from: _FetchFrom, numbers: list[int], env: dict[str, str], lock: int) -> None:
    wanted = [f"+refs/pull/{number}/head:{ref_of(number)}" for number in numbers]
    until = time.monotonic() + FETCH_SECONDS
    try:
        command = ("fetch", *OPTIONS, "--", fetch_from.url, *wanted)
        git(fetch_from.folder, *command, env=env, holding=(lock,), seconds=FETCH_SECONDS)
    except GitError as error:
        if time.monotonic() < until:
            for number in numbers:
                _look(remote, fetch_from, number, env)
        raise _unreachable(remote, error, numbers[0]) from None
    if fetch_from.folder != remote.repo:
        kept = [f"+{ref_of(number)}:{ref_of(number)}" for number in numbers]
        env = remotes.environment(None, remote.web)
        git(remote.repo, "fetch", *OPTIONS, "--", str(fetch_from.folder), *kept, env=env, holding=(lock,))


def _look(remote: _GithubRemote, fetch_from: _FetchFrom, number: int, env: dict[str, str]) -> None:
    """Raise NotFoundError if the remote lacks this pull request, and another error if the request itself fails."""
    asked = ("ls-remote", "--exit-code", "--quiet", "--upload-pack=git-upload-pack", "--", fetch_from.url)
    try:
        git(fetch_from.folder, *asked, f"refs/pull/{number}/head", env=env, seconds=ASK_SECONDS)
    except GitError as error:
        if error.returncode == _NO_SUCH_REF:
            hint = remote.command(f"ls-remote {printable(remote.name)} 'refs/pull/*/head'")
            raise NotFoundError(f"there is no pull request #{number} at {remote.label}", hint) from None
        raise _unreachable(remote, error, number) from None


def _unreachable(remote: _GithubRemote, error: GitError, number: int) -> ServiceError:
    """Build the error for people. Git's message decides which advice it gives, and isn't shown."""
    output = error.output.replace(remote.url, remotes.without_credentials(remote.url))
    try_it = remote.command(f"fetch {printable(remote.name)} refs/pull/{number}/head")
    if any(mark in output.lower() for mark in _NOT_LET_IN):
        hint = f"{try_it}, with a key that may read {remote.github}"
        if remote.over_http:
            hint = (
                f"export the variable that [github].token_env names, with a token that may read {remote.github}; "
                f"or by ssh: {remote.command(f'remote set-url {printable(remote.name)} {remote.by_ssh}')}"
            )
        return RefusedError(f"{remote.label} does not let the service read pull request #{number}: {output}", hint)
    return UnreachableError(f"pull request #{number} cannot be fetched from {remote.label}: {output}", try_it)


def _commit(remote: _GithubRemote, number: int) -> str:
    """Return the commit of a fetched head. Refuse a head that is not a commit: work can't start from it."""
    try:
        return line(remote.repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref_of(number)}^{{commit}}")
    except GitError:
        hint = remote.command(f"cat-file -t {ref_of(number)}")
        raise RefusedError(f"the head of pull request #{number} at {remote.label} is not a commit", hint) from None
