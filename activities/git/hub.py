"""The hub of a repository: the place through which hosts exchange commits (ruling Q3).

It is the repository's remote, or a bare repository set up for this. The service's branches are in a namespace of
references there. Git speaks to the hub with the credentials of the service's own account, and never prompts.
"""

import re
import tempfile
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from activities.git import git_branches
from activities.git.command import PROTOCOLS, GitError, git, line, printable, with_credentials
from activities.git.locks import hold_lock
from activities.git.registered_repository import TRACKED, common_directory, every_reference
from activities.git.remotes import remotes, without_credentials
from activities.redaction.redact import redact_text
from workflows.github.facts import OUR_BRANCHES
from workflows.model.errors import Commands, NotFoundError, RefusedError, ServiceError, UnreachableError, UsageError

HUB_SECONDS = 120.0
"""Timeout of a fetch or a push."""

REACH_SECONDS = 15.0
"""Timeout of a request that only checks whether a repository answers."""

FIRST_SECONDS = 1800.0
"""Timeout of the first fetch of a whole repository."""

MOST_BYTES = 20 << 30
"""Size limit of a pack that is fetched."""

SERVICE, HEADS = "refs/service/", "refs/heads/service/"
LINES, BASES, SNAPS, KEPT = "line/", "base/", "snap/", "kept/"
"""Names below the namespace other than branches: starts of jobs and trees, work in progress, and work of attempts that
moved to another host.
"""

AT_HOST = "@"
"""Separates a branch from the host whose work could not be added to the branch. Ids and names of worktrees have
no `@`.
"""

AT_ONCE = 500
"""References that one push removes."""

LOCK_FILE = "service-hub.lock"
_QUIET = ("--quiet", "--no-tags", "--refmap=", "--no-write-fetch-head", "--no-recurse-submodules")
_FETCH = (*_QUIET, "--no-auto-maintenance", "--upload-pack=git-upload-pack")
_PUSH = ("--quiet", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")
_SHA256 = re.compile(r"^[0-9a-f]{64}\t", re.MULTILINE)
_HEAD = re.compile(r"^ref: refs/heads/(\S+)\tHEAD$", re.MULTILINE)
_TREE = re.compile(r"(?:job|task)-([0-9a-v]{12})(?![0-9a-v])")
_ASKED = ("could not read username", "could not read password", "terminal prompts disabled", "authentication failed")
_DENIED = ("permission denied", "access denied", "host key verification failed", "error: 403", "error: 401")
_NO_RIGHTS = ("insufficient permission", "not allowed to push", "permission to", "read-only", "write access")
_MOVED = ("(fetch first)", "(non-fast-forward)", "(stale info)", "cannot lock ref", "(failed to update ref)")
_NOISE = ("fatal: Could not read from remote", "Please make sure you have the correct", "and the repository exists.")
_MISSING = ("couldn't find remote ref", "not our ref", "unadvertised object")
_TRANSPORT = re.compile(r"transport '([^']*)' not allowed")
_ALLOWED = f"{', '.join(PROTOCOLS.split(':')[:-1])} and {PROTOCOLS.split(':')[-1]}"
_BROKEN = ("bad object", "corrupt", "object file", "unable to read", "packfile", "bad config", "broken")


class HubAwayError(UnreachableError):
    """The hub can't be reached. The commits stay here and are pushed later."""

    code = "hub_away"


class HubRefusesError(RefusedError):
    """The hub asks for a password, or doesn't allow the service what it needs."""

    code = "hub_refuses"


@dataclass(frozen=True)
class Hub:
    """The address of the hub, and the namespace in which it accepts the service's work."""

    url: str
    refs: str = SERVICE
    branches_allowed: bool = False
    """Whether the operator allows work on branches, which a forge may run (`[git].hub_branches`)."""

    @property
    def safe_url(self) -> str:
        return safe_url(self.url)

    @property
    def has_branches(self) -> bool:
        """Return whether the hub keeps the service's commits as branches, not in a private namespace."""
        return self.refs.startswith(HEADS)

    def check_allowed(self) -> None:
        """Raise if work would be pushed to branches and the operator doesn't allow that."""
        if self.has_branches and not self.branches_allowed:
            raise BranchesRefusedError(
                f"On branches of {self.safe_url}, its forge may run workflows that an agent wrote, with the "
                "repository's secrets. In config.toml, set [git].hub to a bare repository of your own, or allow "
                "branches with [git].hub_branches = true",
                "service help remotes",
            )

    def ref(self, name: str) -> str:
        """Return the hub's reference for a branch of the service, or another name below the namespace."""
        return f"{self.refs}{name.removeprefix(OUR_BRANCHES)}"


def trees_in(names: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of the trees that these branches or jobs belong to."""
    return tuple(dict.fromkeys(match[1] for name in names if (match := _TREE.search(name))))


def fetch_trees(repo: Path, hub: Hub, trees: Collection[str], dropped: Collection[str] = ()) -> None:
    """Fetch all work of these trees, and move their local branches to the hub's commits.

    A local branch with more commits than at the hub stays. A branch that is missing at the hub is removed locally only
    if it is in `dropped` and hasn't moved since it was fetched: a hub may lose branches by mistake.
    """
    names = [f"{kind}{tree}" for tree in sorted(trees) for kind in ("job-", "task-", f"{LINES}job-")]
    if not names:
        return
    common = common_directory(repo)
    with hold_lock(common / LOCK_FILE) as lock:
        before = _tracked_commits(common, trees)
        fetch(repo, hub.url, [f"+{hub.refs}{name}*:{TRACKED}{name}*" for name in names], lock, "--prune")
        _follow(repo, before, _tracked_commits(common, trees), dropped)


def _tracked_commits(common: Path, trees: Collection[str]) -> dict[str, str]:
    """Return the commits of the trees' branches, as the hub has them."""
    known = (
        (name.removeprefix(TRACKED), end) for name, end in every_reference(common).items() if name.startswith(TRACKED)
    )
    return {name: end for name, end in known if (match := _TREE.match(name)) and match[1] in trees}


def _follow(repo: Path, before: Mapping[str, str], now: Mapping[str, str], dropped: Collection[str]) -> None:
    """Move the local branches to the hub's commits; one that a person has checked out stays."""
    for name in before.keys() | now.keys():
        branch, end = OUR_BRANCHES + name, now.get(name)
        here = git_branches.tip(repo, branch)
        if here == end or git_branches.checkout_of(repo, branch) is not None:
            continue
        if end is None:
            if here == before[name] and branch.partition(AT_HOST)[0] in dropped:
                git_branches.delete(repo, branch, here)
        elif here is None or git_branches.contains(repo, end, here):
            git_branches.move(repo, branch, end, here, "service: fetched from the hub")


def fetch_one(repo: Path, hub: Hub, name: str) -> str:
    """Fetch one name below the hub's namespace, and return its commit; raise NotFoundError if the hub has none."""
    ref = TRACKED + name.removeprefix(OUR_BRANCHES)
    with hold_lock(common_directory(repo) / LOCK_FILE) as lock:
        fetch(repo, hub.url, [f"+{hub.ref(name)}:{ref}"], lock)
    return git_branches.commit(repo, ref) or ""


def fetch_commits(repo: Path, places: Iterable[str], commits: Iterable[str]) -> None:
    """Fetch the commits that are missing here, from the first place that has them; a commit that no place has stays
    missing.
    """
    missing = [commit for commit in dict.fromkeys(commits) if git_branches.commit(repo, commit) is None]
    with hold_lock(common_directory(repo) / LOCK_FILE) as lock:
        for url in dict.fromkeys(places):
            for commit in [commit for commit in missing if git_branches.commit(repo, commit) is None]:
                try:
                    fetch(repo, url, [commit], lock)
                except NotFoundError:
                    continue


def fetch(repo: Path, url: str, refspecs: Iterable[str], lock: int, *options: str, first: bool = False) -> None:
    """Fetch from a hub or a remote, bounded in time and size, while the lock is held."""
    seconds = FIRST_SECONDS if first else HUB_SECONDS
    try:
        arguments = ("fetch", *_FETCH, *options, "--", url, *refspecs)
        with_credentials(repo, *arguments, holding=(lock,), seconds=seconds, most_bytes=MOST_BYTES)
    except GitError as error:
        raise fault(repo, url, error) from None


def push(repo: Path, hub: Hub, commit: str, name: str, *, expected: str | None = None) -> bool:
    """Push a commit to a name below the hub's namespace. Return False if somebody else has moved it.

    With `expected` it must be at that commit now (empty: missing); else it may only move forward.
    """
    ref = hub.ref(name)
    lease = () if expected is None else (f"--force-with-lease={ref}:{expected}",)
    return _push(repo, hub, lease, [f"{commit}:{ref}"])


def overwrite(repo: Path, hub: Hub, commit: str, name: str) -> None:
    """Push a commit to a name below the hub's namespace, whatever is there; raise HubAwayError if the hub can't do it
    now.
    """
    ref = hub.ref(name)
    if not _push(repo, hub, ["--force"], [f"{commit}:{ref}"]):
        raise HubAwayError(f"{hub.safe_url} can't write {printable(ref)} now", f"git ls-remote {hub.safe_url}")


def keep(repo: Path, hub: Hub, commit: str, name: str, elsewhere: str) -> str:
    """Push a commit to the reference `name` of the hub, which only moves forward. If the hub has other commits there,
    push it to the reference `elsewhere`. Return the reference that has the commit.
    """
    kept = name
    if not push(repo, hub, commit, name):
        kept = elsewhere
        overwrite(repo, hub, commit, elsewhere)
    track(repo, kept, commit)
    return kept


@git_branches.wait_for_lock
def track(repo: Path, name: str, commit: str) -> None:
    """Record locally the commit that the hub has under a name."""
    with git_branches.reading(repo) as repository:
        repository.references.create(TRACKED + name.removeprefix(OUR_BRANCHES), commit, force=True)


def is_only_here(repo: Path, remote: str, commit: str, *, mirror: bool) -> bool:
    """Return whether a commit is neither on the remote's branches nor at the hub, as of the last fetch.

    With `mirror`, the remote's branches are the repository's own; a checkout has them as remote branches.
    """
    of_remote = (f"refs/remotes/{name}/" for name, url in remotes(repo).items() if _same(url) == _same(remote))
    known = (TRACKED, *(("refs/heads/",) if mirror else of_remote))
    references = every_reference(common_directory(repo)).items()
    ends = (end for name, end in references if name.startswith(known) and not name.startswith(HEADS))
    return bool(git_branches.commits_beyond(repo, commit, tuple(ends)))


def _same(url: str) -> str:
    """Normalise an address: the spellings of one repository become equal."""
    return url.strip().rstrip("/").removesuffix(".git")


@dataclass(frozen=True)
class HubBranch:
    """A branch of the service at the hub, which several hosts may move."""

    repo: Path
    hub: Hub
    branch: str

    @property
    def tip(self) -> str | None:
        """Return the branch's commit at the last fetch or push; None if the hub did not have the branch."""
        return git_branches.commit(self.repo, f"{TRACKED}{self.branch.removeprefix(OUR_BRANCHES)}")

    def move(self, commit: str) -> bool:
        """Move the branch at the hub to a commit (compare-and-swap). If somebody else moved it, fetch it and return
        False.
        """
        there = self.tip
        if there == commit:
            return True
        if push(self.repo, self.hub, commit, self.branch, expected=there or ""):
            track(self.repo, self.branch, commit)
            return True
        fetch_trees(self.repo, self.hub, trees_in([self.branch]))
        return False


def remove(repo: Path, hub: Hub, names: Collection[str]) -> None:
    """Remove names below the hub's namespace, which may be patterns; those that are missing there are ignored."""
    there = commits_by_name(repo, hub, names) if names else {}
    for first in range(0, len(there), AT_ONCE):
        gone = list(there)[first : first + AT_ONCE]
        _push(repo, hub, [], [f":{hub.ref(name)}" for name in gone])


def commits_by_name(repo: Path, hub: Hub, names: Collection[str] = ("*",)) -> dict[str, str]:
    """Return the commits of these names below the hub's namespace, which may be patterns."""
    listing = _ask(repo, hub.url, *(hub.ref(name) for name in names))
    rows = (row.partition("\t") for row in listing.splitlines())
    return {ref.removeprefix(hub.refs): commit for commit, _, ref in rows if ref.startswith(hub.refs)}


def default_branch(url: str) -> str:
    """Return the name of a remote's default branch. Raise if it can't be read, or has no commit."""
    with tempfile.TemporaryDirectory(prefix="service-git-") as folder:
        listing = _ask(Path(folder), url, "HEAD", symref=True)
    if _SHA256.search(listing):
        raise UsageError(
            f"{safe_url(url)} keeps its objects by SHA-256, which libgit2 does not read",
            f"git ls-remote {safe_url(url)}",
        )
    match = _HEAD.search(listing)
    if match is None or "\tHEAD" not in listing.replace(match[0], ""):
        raise UsageError(
            f"{safe_url(url)} has no commit on its default branch yet", f"git push {safe_url(url)} HEAD:main"
        )
    return match[1]


def tip(repo: Path, url: str, branch: str) -> str:
    """Return the commit of a remote's branch, as it is there now."""
    ref = f"refs/heads/{branch}"
    rows = (row.partition("\t") for row in _ask(repo, url, ref).splitlines())
    for commit, _, name in rows:
        if name == ref:
            return commit
    raise NotFoundError(f"{safe_url(url)} has no branch {printable(branch)}", f"git ls-remote {safe_url(url)}")


def reach(url: str) -> None:
    """Raise within seconds if a repository does not answer."""
    with tempfile.TemporaryDirectory(prefix="service-git-") as folder:
        _ask(Path(folder), url, "HEAD", seconds=REACH_SECONDS)


def namespace(url: str, *, branches_allowed: bool) -> str:
    """Return the namespace in which the hub accepts work, found by pushing an empty commit and removing it again.

    Branches are tried last, and only if the operator allows them.
    """
    with tempfile.TemporaryDirectory(prefix="service-git-") as name:
        folder = Path(name)
        git(folder, "init", "--quiet", "--bare", "--template=")
        tree = git(folder, "mktree").decode().strip()
        commit = line(folder, "commit-tree", "-m", "service: may this be pushed here?", tree)
        trial = f"try/{uuid.uuid4().hex[:12]}"
        for refs in (SERVICE, HEADS):
            hub = Hub(url, refs, branches_allowed)
            try:
                push(folder, hub, commit, trial)
                remove(folder, hub, [trial])
            except _RejectedError as refused:
                why = refused
            except BranchesRefusedError as refused:
                raise BranchesRefusedError(f"{why.message}. {refused.message}", refused.hint) from None
            else:
                return refs
        raise why


class _RejectedError(HubRefusesError):
    """The hub accepted the connection, but rejected the reference."""


class BranchesRefusedError(HubRefusesError):
    """The hub accepts commits only on branches, which the operator doesn't allow."""

    code = "hub_branches_refused"


def _push(repo: Path, hub: Hub, options: Collection[str], refspecs: Collection[str]) -> bool:
    if not all(refspec.startswith(":") for refspec in refspecs):
        hub.check_allowed()
    try:
        with_credentials(repo, "push", *_PUSH, *options, "--", hub.url, *refspecs, seconds=HUB_SECONDS)
    except GitError as error:
        if any(mark in error.output for mark in _MOVED):
            return False
        raise fault(repo, hub.url, error) from None
    return True


def _ask(repo: Path, url: str, *patterns: str, symref: bool = False, seconds: float = HUB_SECONDS) -> str:
    options = ("--quiet", "--upload-pack=git-upload-pack", *(("--symref",) if symref else ()))
    try:
        return with_credentials(repo, "ls-remote", *options, "--", url, *patterns, seconds=seconds).decode()
    except GitError as error:
        raise fault(repo, url, error) from None


def fault(repo: Path, url: str, error: GitError) -> ServiceError:
    """Build the error for people from git's message."""
    rows = [row for row in error.output.splitlines() if row and not row.startswith(_NOISE)] or [error.output]
    message = redact_text("\n".join(rows).replace(url, without_credentials(url)))
    low, where = message.lower(), safe_url(url)
    if transport := _TRANSPORT.search(message):
        why = f"{where} needs git's transport {transport[1]!r}, which is not allowed; allowed are {_ALLOWED}"
        return HubRefusesError(why, "service repo add NAME --remote https://HOST/PATH.git")
    if any(mark in low for mark in _MISSING):
        return NotFoundError(f"{where} has no such commit or branch: {message}", f"git ls-remote {where}")
    if any(mark in low for mark in _ASKED):
        return HubRefusesError(
            f"{where} asks for a password, and the service's account has none for it: {message}", _credentials(url)
        )
    if "[remote rejected]" in low:
        return _RejectedError(
            f"{where} refuses the service's work: {message}", f"git push {where} HEAD:refs/service/try"
        )
    if any(mark in low for mark in (*_DENIED, *_NO_RIGHTS)):
        return HubRefusesError(f"{where} does not let the service's account in: {message}", _credentials(url))
    if error.returncode > 0 and any(mark in low for mark in _BROKEN):
        return GitError(repo, error.arguments, error.returncode, message)
    return HubAwayError(f"{where} cannot be reached: {message}", f"git ls-remote {where}")


def safe_url(url: str) -> str:
    """Return a URL to show to people, without credentials."""
    return printable(without_credentials(url))


def _credentials(url: str) -> str:
    """Return the commands that give the service's account access."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"git ls-remote {safe_url(url)}"
    if parts.scheme in ("http", "https"):
        return Commands("git config --global credential.helper store", f"git ls-remote {safe_url(url)}")
    if parts.scheme in ("", "file") and ":" not in url.partition("/")[0]:
        return f"ls -la {safe_url(url)}"
    host = parts.netloc.rpartition(":")[0] or parts.netloc or url.partition(":")[0]
    return Commands(f"ssh-copy-id {host}, or add the account's key to the forge", f"ssh -T {host}")
