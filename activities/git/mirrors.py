"""Bare mirrors of repositories that are known by their remote (ruling Q3): made on demand, repaired, or made again.

People's branches and tags are as the remote has them. Branches `service/...` are this host's own, and those fetched
from the hub (`hub`).
"""

import contextlib
import hashlib
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from activities.git import git_branches, hub
from activities.git.command import GitError, git
from activities.git.hub import HEADS, HubAwayError
from activities.git.library import ObjectsError, RepositoryError
from activities.git.locks import hold_lock
from activities.git.registered_repository import TRACKED, Setting, every_reference, format_settings, references
from workflows.model.errors import NotFoundError, ServiceError

_PEOPLES = ("+refs/heads/*:refs/heads/*", "^refs/heads/service/*", "+refs/tags/*:refs/tags/*")
_MOST_PACKS = 50


@dataclass(frozen=True)
class Mirror:
    """A mirror's folder, and what it mirrors."""

    path: Path
    remote: str
    default_branch: str

    @property
    def is_made(self) -> bool:
        return (self.path / "HEAD").is_file() and (self.path / "objects").is_dir()


def mirror_of(folder: Path, name: str, remote: str, default_branch: str) -> Mirror:
    """Return the mirror of a repository. Its folder depends on the remote, too: a name may get another remote."""
    digest = hashlib.sha256(f"{name}\0{remote}".encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return Mirror(folder / f"{name.replace('/', '--')[:180]}-{digest}.git", remote, default_branch)


def make_if_missing(mirror: Mirror) -> Path:
    """Make the mirror if it is missing, and return its path."""
    if not mirror.is_made:
        with _hold_lock(mirror) as lock:
            if not mirror.is_made:
                _make(mirror, lock)
    return mirror.path


def fetch(mirror: Mirror) -> Path:
    """Fetch people's branches and tags. A broken mirror is made again, with those of its branches that are intact."""
    make_if_missing(mirror)
    with _hold_lock(mirror) as lock:
        try:
            hub.fetch(mirror.path, mirror.remote, _PEOPLES, lock, "--prune")
            _check(mirror)
        except (GitError, RepositoryError, ObjectsError, HubAwayError, OSError) as error:
            if isinstance(error, HubAwayError) and _is_whole(mirror):
                raise
            _make(mirror, lock)
        _pack(mirror, lock)
    return mirror.path


def unused_mirrors(folder: Path, known: Collection[Path], before: float) -> Iterator[Path]:
    """Yield unknown mirrors that were not used since `before` and hold no commits of the service that exist nowhere
    else.
    """
    for path in sorted(folder.glob("*.git")) if folder.is_dir() else ():
        if path not in known and path.stat().st_mtime < before:
            names = every_reference(path)
            ours = {name.removeprefix(HEADS): end for name, end in names.items() if name.startswith(HEADS)}
            if all(names.get(f"{TRACKED}{name}") == end for name, end in ours.items()):
                yield path


@contextlib.contextmanager
def _hold_lock(mirror: Mirror) -> Iterator[int]:
    mirror.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with hold_lock(mirror.path.with_suffix(".lock")) as lock:
        yield lock


def _make(mirror: Mirror, lock: int) -> None:
    """Make the mirror in a folder next to its path, then rename it, so that a mirror at its path is complete.

    A broken one is renamed only then. All of its readable branches are copied into the new mirror; if some are
    unreadable, the broken one stays, under its new name.
    """
    new = mirror.path.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    git(mirror.path.parent, "init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(new))
    core = (("repositoryformatversion", "0"), ("bare", "true"), ("logallrefupdates", "true"))
    origin = Setting("remote", "url", mirror.remote, "origin")
    (new / "config").write_bytes(format_settings([*(Setting("core", *each) for each in core), origin]))
    try:
        hub.fetch(new, mirror.remote, _PEOPLES, lock, first=True)
        (new / "HEAD").write_text(f"ref: refs/heads/{mirror.default_branch}\n")
        _check(replace(mirror, path=new))
        whole = not mirror.path.exists() or _copy_work(mirror.path, new)
    except ServiceError:
        shutil.rmtree(new, ignore_errors=True)
        raise
    if mirror.path.exists():
        mirror.path.rename(mirror.path.with_suffix(f".{'replaced' if whole else 'broken'}-{time.time_ns()}"))
    new.rename(mirror.path)
    for old in mirror.path.parent.glob(f"{mirror.path.stem}.replaced-*"):
        shutil.rmtree(old, ignore_errors=True)


def _check(mirror: Mirror) -> None:
    """Raise if the default branch is missing or can't be read."""
    tip = git_branches.tip(mirror.path, mirror.default_branch)
    if tip is None:
        where = hub.safe_url(mirror.remote)
        message = f"{where} has no branch {mirror.default_branch}, which was its default branch"
        raise NotFoundError(message, f"service repo add NAME --remote {where}")
    git_branches.tree_of(mirror.path, tip)


def _is_whole(mirror: Mirror) -> bool:
    """Return whether the references and the default branch's files can be read; the whole history is not read."""
    try:
        git(mirror.path, "for-each-ref", "--format=")
        _check(mirror)
    except (ServiceError, OSError):
        return False
    return True


def _copy_work(old: Path, new: Path) -> bool:
    """Copy the service's branches from a broken mirror; return whether all of them were intact.

    Objects missing in their history may exist in the new mirror.
    """
    whole, known = True, _of_service(old)
    with tempfile.TemporaryDirectory(prefix="service-git-") as name:
        both = Path(name)
        git(both, "init", "--quiet", "--bare", "--template=")
        (both / "objects" / "info").mkdir(exist_ok=True)
        (both / "objects" / "info" / "alternates").write_text(f"{old / 'objects'}\n{new / 'objects'}\n")
        (both / "packed-refs").write_text("".join(f"{commit} {ref}\n" for ref, commit in sorted(known.items())))
        for ref in known:
            try:
                git(new, "fetch", "--quiet", "--no-tags", "--", str(both), f"+{ref}:{ref}")
            except GitError:
                whole = False
    return whole


def _of_service(path: Path) -> dict[str, str]:
    with contextlib.suppress(OSError):
        return {name: end for name, end in references(path).items() if name.startswith("refs/heads/service/")}
    return {}


def _pack(mirror: Mirror, lock: int) -> None:
    """Join many small packs. No object is ever removed: work folders of running jobs may borrow it."""
    if len(list((mirror.path / "objects" / "pack").glob("*.pack"))) > _MOST_PACKS:
        with contextlib.suppress(GitError):
            git(mirror.path, "repack", "--quiet", "-d", "--geometric=2", holding=(lock,))
