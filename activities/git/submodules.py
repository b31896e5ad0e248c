"""Submodules of a work folder: filled from the registered repository's copies, never from the network.

Each is a small work folder in itself: the service keeps a side of it beside that of the whole, and its `.git` is the
agent's. The commit's tree says which submodules there are; their objects come from the registered repository.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from activities.git import job_repository, own_side
from activities.git.filling import fill
from activities.git.library import library, opened
from activities.git.own_side import side_of_submodule
from workflows.model.errors import ServiceError

_PATH = re.compile(r"submodule\.(?P<name>.+)\.path", re.DOTALL)


def fill_all(common: Path, path: Path, side: Path, commit: str) -> None:
    """Write the files of the commit, and those of the submodules that the registered repository has a copy of."""
    fill(common, path, side, commit)
    if not (path / ".gitmodules").is_file():
        return
    for place, copy, wanted in _held(common, side, commit):
        # a missing submodule stays an empty folder, as in git itself
        with contextlib.suppress(ServiceError, OSError):
            _fill_one(copy, path / place, side_of_submodule(side, place), wanted)


def _fill_one(copy: Path, path: Path, side: Path, commit: str) -> None:
    if (side / "index").is_file() and (side / "HEAD").read_text().strip() == commit:
        return
    own_side.begin(copy, side)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    if path.is_symlink():
        return
    fill_all(copy, path, side, commit)
    job_repository.furnish(copy, copy, path, side, commit)


def _held(common: Path, side: Path, commit: str) -> Iterator[tuple[str, Path, str]]:
    """Yield path, copy and commit of each submodule that the registered repository has a copy of."""
    pygit2, repository = library(), opened(side)
    tree = repository.revparse_single(commit).peel(pygit2.Commit).tree
    if ".gitmodules" not in tree:
        return
    for name, place in _declared(side, tree[".gitmodules"].data):
        copy = common / "modules" / name
        inside = ".." not in Path(name).parts and not Path(name).is_absolute()
        if not inside or not (copy / "objects").is_dir() or ".." in Path(place).parts or Path(place).is_absolute():
            continue
        with contextlib.suppress(KeyError):
            entry = tree[place]
            if entry.filemode == pygit2.enums.FileMode.COMMIT:
                yield place, copy, str(entry.id)


def _declared(side: Path, data: bytes) -> list[tuple[str, str]]:
    """Return the names and paths in `.gitmodules`. A file with includes is ignored: none leads to another file."""
    if re.search(rb"^\s*\[\s*include", data, re.MULTILINE | re.IGNORECASE):
        return []
    copy = side / "gitmodules"
    copy.write_bytes(data)
    try:
        entries = list(library().Config(str(copy)))
    except library().GitError:
        return []
    finally:
        copy.unlink()
    named = ((_PATH.fullmatch(entry.name), entry.value) for entry in entries)
    return [(found["name"], os.fspath(value)) for found, value in named if found and value]
