"""Unsupported features of a registered repository, as sentences for `service doctor`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from activities.git.command import printable
from activities.git.library import library, open_repository
from activities.git.registered_repository import common_directory, object_folders
from workflows.model.errors import ServiceError

_PROGRAM = re.compile(r"(?P<kind>filter|merge)\.(?P<name>.+)\.(?:clean|smudge|process|driver)", re.DOTALL)
_KNOWN = "lfs"
"""Files of LFS stay pointers, which is harmless."""


@dataclass(frozen=True)
class Limit:
    """One unsupported feature, and the command to type."""

    says: str
    fix: str
    unusable: bool = False


def version() -> str:
    """Return the versions of libgit2 and pygit2."""
    pygit2 = library()
    return f"libgit2 {pygit2.LIBGIT2_VERSION}, pygit2 {pygit2.__version__}"


def limits(repo: Path) -> Iterator[Limit]:
    """Yield the limits of this repository; none if jobs can use it as its owner does."""
    where = printable(str(repo))
    try:
        object_folders(common_directory(repo))
        config = list(open_repository(repo).config)
    except ServiceError as error:
        yield Limit(error.message, error.hint, unusable=True)
        return
    names = [entry.name for entry in config]
    if any(name.endswith(".promisor") for name in names):
        missing = "is a partial clone: a job that needs an object which was never fetched is refused"
        yield Limit(f"{where} {missing}", f"git -C {where} fetch --refetch --no-filter")
    for kind, name in sorted({(match["kind"], match["name"]) for each in names if (match := _PROGRAM.fullmatch(each))}):
        if name != _KNOWN:
            yield Limit(f"{where}: {_not_run(kind, name)}", f"git -C {where} config --get-regexp '^{kind}\\.'")


def _not_run(kind: str, name: str) -> str:
    shown = printable(name)
    if kind == "merge":
        return f"its merge driver {shown} is not run for jobs: such files are merged as text"
    return f"its filter {shown} is not run for jobs: agents see such files as they are stored, and so are theirs"
