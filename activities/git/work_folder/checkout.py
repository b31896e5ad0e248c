"""Check out a commit and its submodules in a work folder, by libgit2 and the service's own side: no program is run.

Submodules are filled from the registered repository's copies, never from the network.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from activities.git.command import printable
from activities.git.git_branches import objects_errors
from activities.git.library import ObjectsError, RepositoryError, let_go, library, open_alone, open_repository
from activities.git.work_folder import agent_git_dir, service_git_dir
from activities.git.work_folder.service_git_dir import SPARSE, side_of_submodule
from activities.git.work_folder.walk import clear_the_way
from workflows.model.errors import ServiceError

if TYPE_CHECKING:
    from pygit2 import Repository, Tree


LEFT_OUT = "left-out"
"""Name of the list of files that the registered checkout leaves out, too (sparse checkout). Their absence is not a
deletion.
"""


def fill(common: Path, path: Path, side: Path, commit: str) -> None:
    """Write the files of the commit and the index; ignored files that were there stay."""
    (side / "index.lock").unlink(missing_ok=True)  # of a killed process: nothing else writes this index
    pygit2, repository = library(), open_alone(side)
    ways = pygit2.enums.CheckoutStrategy
    with _explain_partial_clone(common), objects_errors(common):
        tree = repository.revparse_single(commit).peel(pygit2.Commit).tree
        if any(path.iterdir()):
            clear_the_way(path, [os.fsdecode(name) for name in names(tree)])
        out = _left_out(side, tree)
        repository.workdir = str(path)
        if out:
            paths = [name.decode() for name in names(tree) if os.fsdecode(name) not in out]
            how = ways.FORCE | ways.REMOVE_UNTRACKED | ways.DISABLE_PATHSPEC_MATCH
            if paths:  # an empty list would mean every file
                repository.checkout_tree(tree, strategy=how, paths=paths)  # type: ignore[no-untyped-call]
            repository.index.read_tree(tree)
            repository.index.write()
        else:
            repository.checkout_tree(tree, strategy=ways.FORCE | ways.REMOVE_UNTRACKED)  # type: ignore[no-untyped-call]
    repository.free()
    (side / LEFT_OUT).unlink(missing_ok=True)
    if out:
        (side / LEFT_OUT).write_bytes(b"\0".join(map(os.fsencode, sorted(out))))
    (side / "HEAD").write_text(f"{commit}\n")


def refresh(side: Path, commit: str) -> None:
    """Set the index to the commit's tree. Unchanged entries keep their stat data, so their files aren't read again."""
    repository = open_repository(side)
    with objects_errors(side):
        repository.index.read_tree(repository.revparse_single(commit).peel(library().Tree))
        repository.index.write()
    let_go(repository)
    (side / "HEAD").write_text(f"{commit}\n")


def is_ignored(repository: "Repository", name: bytes) -> bool:
    """Return whether git's ignore rules match the name."""
    return repository.path_is_ignored(as_text(name))


def as_text(name: bytes) -> str:
    """Convert a name for libgit2, which takes text: bytes that are not UTF-8 become U+FFFD."""
    return name.decode("utf-8", "replace")


def left_out(side: Path) -> frozenset[str]:
    """Read the names of the files that the checkout leaves out (sparse checkout)."""
    kept = side / LEFT_OUT
    data = kept.read_bytes() if kept.is_file() else b""
    return frozenset(os.fsdecode(name) for name in data.split(b"\0") if name)


def names(tree: "Tree") -> list[bytes]:
    """List the names of all files in a tree."""
    index = library().Index()
    index.read_tree(tree)
    return [os.fsencode(entry.path) for entry in index]


def _left_out(side: Path, tree: "Tree") -> frozenset[str]:
    """List the files that a sparse checkout leaves out.

    A sparse-checkout file has the syntax of an ignore file, so libgit2 reads it as one.
    """
    if not (side / SPARSE).is_file():
        return frozenset()
    reader = side / "sparse"
    for name in ("objects", "refs", "info", "none"):
        (reader / name).mkdir(parents=True, exist_ok=True)
    (reader / "HEAD").write_text("ref: refs/heads/none\n")
    (reader / "config").write_text("[core]\n\tbare = false\n")
    (reader / "info" / "exclude").write_bytes((side / SPARSE).read_bytes())
    repository = open_alone(reader)
    repository.workdir = str(reader / "none")
    listed = (name for name in names(tree) if not (_is_text(name) and is_ignored(repository, name)))
    return frozenset(map(os.fsdecode, listed))


def _is_text(name: bytes) -> bool:
    """Return whether the name is UTF-8 text, so that libgit2 can check out exactly this file."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


@contextlib.contextmanager
def _explain_partial_clone(common: Path) -> Iterator[None]:
    """Raise RepositoryError if a partial clone lacks an object, because only the git program, in the clone itself, can
    fetch it.
    """
    try:
        yield
    except ObjectsError as error:
        if "promisor" not in (common / "config").read_text(errors="replace"):
            raise
        where = printable(str(common.parent if common.name == ".git" else common))
        raise RepositoryError(
            f"{where} is a partial clone, and objects that the work needs were never fetched: {error.message}",
            f"git -C {where} fetch --refetch --no-filter",
        ) from None


_INCLUDE = re.compile(rb"^[ \t]*\[[ \t]*include", re.MULTILINE | re.IGNORECASE)
_PATH = re.compile(r"submodule\.(?P<name>.+)\.path", re.DOTALL)


def fill_all(common: Path, path: Path, side: Path, commit: str) -> None:
    """Write the files of the commit, and the files of submodules that the registered repository has a copy of."""
    fill(common, path, side, commit)
    if not (path / ".gitmodules").is_file():
        return
    for folder, copy, wanted in _submodules(common, side, commit):
        # a missing submodule stays an empty folder, as in git itself
        with contextlib.suppress(ServiceError, OSError):
            _fill_one(copy, path / folder, side_of_submodule(side, folder), wanted)


def _fill_one(copy: Path, path: Path, side: Path, commit: str) -> None:
    if (side / "index").is_file() and (side / "HEAD").read_text().strip() == commit:
        return
    service_git_dir.begin(copy, side)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    if path.is_symlink():
        return
    fill_all(copy, path, side, commit)
    agent_git_dir.furnish(copy, copy, path, side, commit)


def _submodules(common: Path, side: Path, commit: str) -> Iterator[tuple[str, Path, str]]:
    """Yield path, copy and commit of each submodule that the registered repository has a copy of."""
    pygit2, repository = library(), open_repository(side)
    tree = repository.revparse_single(commit).peel(pygit2.Commit).tree
    if ".gitmodules" not in tree:
        return
    for name, folder in _submodule_paths(side, tree[".gitmodules"].data):
        copy = common / "modules" / name
        inside = ".." not in Path(name).parts and not Path(name).is_absolute()
        if not inside or not (copy / "objects").is_dir() or ".." in Path(folder).parts or Path(folder).is_absolute():
            continue
        with contextlib.suppress(KeyError):
            entry = tree[folder]
            if entry.filemode == pygit2.enums.FileMode.COMMIT:
                yield folder, copy, str(entry.id)


def _submodule_paths(side: Path, data: bytes) -> list[tuple[str, str]]:
    """Return the names and paths in `.gitmodules`. Ignore a file with includes, which could lead to another file."""
    if _INCLUDE.search(data):
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
    return [(match["name"], os.fspath(value)) for match, value in named if match and value]
