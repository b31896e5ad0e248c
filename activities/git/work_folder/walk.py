"""A bounded walk through a work folder that follows no link and opens no file (ruling N3)."""

import contextlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from activities.git import plain_files
from activities.git.command import printable
from workflows.model.errors import RefusedError
from workflows.text.invisible import one_line

WALK_SECONDS = 300.0
MOST_ENTRIES = 2_000_000
LONGEST_PATH = 4000
"""Longest path below the work folder, in bytes."""

MOST_LEVELS = 400
"""Most levels of nested folders, here and in commits; the work folder is the first."""

RULES = (".gitignore", ".gitattributes", ".gitmodules")
_INVISIBLE = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""Characters that some file systems ignore when they compare names."""


@dataclass(frozen=True)
class Odd:
    """An entry of a work folder that a commit can't hold, or that people should know of."""

    path: str
    what: str

    @property
    def sentence(self) -> str:
        """Return a sentence about the entry for people, without control and direction characters."""
        return f"{one_line(printable(self.path))}: {self.what}"


@dataclass(frozen=True)
class Folder:
    """One folder of a walk, with its entries; links are not followed."""

    path: str
    """Path below the work folder, with a slash at its end; empty for the work folder itself."""
    descriptor: int
    entries: tuple[tuple[str, os.stat_result], ...]


class Walk:
    """A walk through a work folder. The caller chooses the folders to enter."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._until = time.monotonic() + WALK_SECONDS
        self._seen = 0
        self._next = [""]
        self.odd: list[Odd] = []

    def enter(self, path: str) -> None:
        """Add a folder to the walk; refuse one that is nested too deeply."""
        if len(os.fsencode(path)) > LONGEST_PATH or path.count("/") + 2 > MOST_LEVELS:
            self.odd.append(Odd(path[:200] + "...", "it is nested too deeply"))
        else:
            self._next.append(f"{path}/")

    def folders(self) -> Iterator[Folder]:
        """Yield the folders of the walk one after another; those that can't be read are recorded in `odd`."""
        with plain_files.folder_at(self._top) as top:
            while self._next:
                path = self._next.pop()
                with contextlib.ExitStack() as stack:
                    try:
                        descriptor = stack.enter_context(plain_files.folder_below(top, path.rstrip("/")))
                        entries = tuple(self._entries(descriptor))
                    except OSError as error:
                        self.odd.append(Odd(path, f"it cannot be read: {error.strerror}"))
                        continue
                    yield Folder(path, descriptor, entries)

    def _entries(self, descriptor: int) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(descriptor) as listing:
            for entry in listing:
                self._seen += 1
                if self._seen > MOST_ENTRIES or time.monotonic() > self._until:
                    raise self._without_end()
                with contextlib.suppress(FileNotFoundError):
                    yield entry.name, entry.stat(follow_symlinks=False)

    def _without_end(self) -> RefusedError:
        where = printable(str(self._top))
        return RefusedError(
            f"{where} has too many files to read (more than {MOST_ENTRIES}, or reading took over {WALK_SECONDS:.0f} s)",
            f"find {where} -xdev | wc -l",
        )


def kind(status: os.stat_result) -> str:
    """Name the kind of an entry that git can't store, such as a pipe; empty for files, links and folders."""
    for is_one, name in ((stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket")):
        if is_one(status.st_mode):
            return name
    known = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return "" if known else "a device"


def is_gits(name: str) -> bool:
    """Return whether some file system treats the name as `.git`."""
    if name.isascii() and name[:1] not in ".gG":
        return False
    plain = name.translate(_INVISIBLE).casefold()
    return plain.partition(":")[0].rstrip(" .") == ".git" or plain == "git~1"


def clear_the_way(path: Path, written: Collection[str]) -> None:
    """Remove entries that would block writing files of these names, or that a write would follow elsewhere.

    These are pipes and devices anywhere, links where a file or a folder of the names belongs, and files with further
    hard links.
    """
    taken = set(written) | folders_above(written)
    walk = Walk(path)
    for folder in walk.folders():
        for name, status in folder.entries:
            below = folder.path + name
            if stat.S_ISDIR(status.st_mode):
                if below != ".git":
                    walk.enter(below)
            elif kind(status) or (below in taken and _leads_elsewhere(status)) or (is_rules(name) and _is_link(status)):
                os.unlink(name, dir_fd=folder.descriptor)


def is_rules(name: str) -> bool:
    """Return whether git and libgit2 read rules for other files from this file."""
    return name in RULES


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode)


def _leads_elsewhere(status: os.stat_result) -> bool:
    return _is_link(status) or status.st_nlink > 1


def folders_above(names: Iterable[str]) -> set[str]:
    """Return the folders that contain the files."""
    folders: set[str] = set()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders
