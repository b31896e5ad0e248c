"""libgit2, set up for the service: it ignores the configuration of the machine and the account, and owners of files.

It runs no program whatever a repository says: no filter, hook, merge driver or file monitor. Callers load it only when
they need it, since that takes a tenth of a second.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from activities.git.command import printable
from workflows.model.errors import NotFoundError, RefusedError, ServiceError

if TYPE_CHECKING:
    from pygit2 import Repository, Signature

Answer = TypeVar("Answer")
NAME, ADDRESS = "Delegation Service", "service@localhost"
_EXTENSION = re.compile(r"unsupported extension name extensions\.(\S+)")
_READ_TOO = ("partialclone",)


class RepositoryError(RefusedError):
    """The place is not a repository in which jobs can work."""

    code = "repository_unusable"


class ObjectsError(ServiceError):
    """Objects of a repository are missing, unreadable or can't be written."""

    code = "git_failed"


@cache
def library() -> ModuleType:
    """Load and set up libgit2. Its check of the folder's owner is off: an operator registered the repository, and
    agents may have another account.
    """
    import pygit2

    pygit2.settings.owner_validation = False
    levels = pygit2.enums.ConfigLevel
    for level in (levels.PROGRAMDATA, levels.SYSTEM, levels.XDG, levels.GLOBAL):
        pygit2.settings.search_path[level] = ""
    pygit2.settings.set_extensions(list(_READ_TOO))
    return pygit2


def signature(at: int | None = None) -> "Signature":
    """Return the author of the service's commits, at this time or now."""
    author: Signature = library().Signature(NAME, ADDRESS, *(() if at is None else (at, 0)))
    return author


class _OpenRepositories(threading.local):
    """The repositories that this thread keeps open; None while it keeps none."""

    repositories: "dict[Path, Repository] | None" = None
    answers: dict[tuple[object, ...], object] | None = None
    """Cached answers about the open repositories."""


_open = _OpenRepositories()


@contextmanager
def keep_open() -> Iterator[None]:
    """Keep repositories open in this thread, and cache the answers of `ask_once` meanwhile."""
    if _open.repositories is not None:
        yield
        return
    _open.repositories, _open.answers = {}, {}
    try:
        yield
    finally:
        repositories, _open.repositories, _open.answers = _open.repositories, None, None
        for repository in repositories.values():
            repository.free()


def ask_once(ask: Callable[[Path], Answer]) -> Callable[[Path], Answer]:
    """Decorate a query of a path: cache its answers while this thread keeps repositories open."""

    @wraps(ask)
    def asking(path: Path) -> Answer:
        if (answers := _open.answers) is None:
            return ask(path)
        if (question := (ask, path)) not in answers:
            answers[question] = ask(path)
        return answers[question]  # type: ignore[return-value]

    return asking


def open_repository(path: Path) -> "Repository":
    """Open the repository at exactly this path; raise the reason with a remedy if libgit2 can't."""
    repositories = _open.repositories
    if repositories is None:
        return open_alone(path)
    if path not in repositories:
        repositories[path] = open_alone(path)
    return repositories[path]


def open_alone(path: Path) -> "Repository":
    """Open a repository that is not shared, for a caller that changes its state, such as its work folder."""
    pygit2 = library()
    try:
        repository: Repository = pygit2.Repository(str(path), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
    except (pygit2.GitError, OSError, ValueError) as error:
        raise _unusable(path, str(error)) from None
    return repository


def let_go(repository: "Repository") -> None:
    """Close a repository's files, unless this thread keeps the repository open."""
    if repository not in (_open.repositories or {}).values():
        repository.free()


def missing(path: Path) -> NotFoundError:
    return NotFoundError(
        f"there is no repository at {printable(str(path))}: the path is missing",
        "service repo add OWNER/NAME PATH, with the path it is at now",
    )


def _unusable(path: Path, fault: str) -> ServiceError:
    if not path.exists():
        return missing(path)
    where = printable(str(path))
    if "sha256" in fault:
        return RepositoryError(
            f"{where} keeps its objects by SHA-256, which libgit2 does not read",
            f"git -C {where} fast-export --all | git -C COPY fast-import, with a COPY made by git init, and service "
            "repo add OWNER/NAME COPY",
        )
    if match := _EXTENSION.search(fault):
        if match[1].lower() == "refstorage":
            return RepositoryError(
                f"{where} keeps its branches in a reftable, which libgit2 does not read",
                f"git -C {where} refs migrate --ref-format=files",
            )
        return RepositoryError(
            f"{where} uses extensions.{match[1]}, which libgit2 does not read", f"git -C {where} config --list"
        )
    return RepositoryError(f"{where} is not the root of a git repository: {fault}", f"git -C {where} init")
