"""The files of a work folder as a git tree, whatever else is in the folder (rulings I4, N3).

The service itself reads each file, only regular files below the folder. Rule files (`.gitignore`, `.gitattributes`) are
copied aside, so that libgit2 never looks into the work folder. If nothing has changed, libgit2 isn't used.
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from activities.git import plain_files
from activities.git.command import printable
from activities.git.library import library, open_alone
from activities.git.work_folder.checkout import as_text, is_ignored, left_out
from activities.git.work_folder.index_file import GITLINK, Row, looks, rows
from activities.git.work_folder.service_git_dir import side_of_submodule
from activities.git.work_folder.take_commits import LARGEST_FILE
from activities.git.work_folder.walk import Folder, Odd, Walk, folders_above, is_gits, kind
from workflows.model.errors import RefusedError
from workflows.policy.build_products import is_product_file, is_product_folder
from workflows.text.sizes import format_size

if TYPE_CHECKING:
    from pygit2 import Oid, Repository

MOST_NEW_FILES = 50_000
MOST_NEW_BYTES = 2 << 30
"""Total size limit of files that differ, or may differ, from the commit: each is read, compressed and checked."""

_AT_ONCE = 8 << 20
_MOST_RULES = 1 << 20
_RULES = (".gitignore", ".gitattributes")


@dataclass(frozen=True)
class SnapshotLimits:
    """The most that one snapshot reads of files that differ, or may differ, from the commit."""

    files: int
    bytes: int
    largest: int
    leaves_out: bool = False
    """True to leave out files beyond the limits; False to refuse the snapshot."""
    products: bool = True
    """True to include build products that are not ignored."""


WHOLE = SnapshotLimits(MOST_NEW_FILES, MOST_NEW_BYTES, LARGEST_FILE)


@dataclass
class FolderSnapshot:
    """The differences of the work folder from the index in the service's git directory."""

    changed: dict[str, tuple["Oid", int]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    same: dict[str, Row] = field(default_factory=dict)
    nested: list[str] = field(default_factory=list)
    """Repositories inside the work folder, and changed submodules. A commit can't hold their files."""
    odd: list[Odd] = field(default_factory=list)
    products: list[str] = field(default_factory=list)
    """Build products that were never committed. They are left out, and don't count as changes."""
    kept: set[str] = field(default_factory=set)
    """Paths that stay as in the commit, with all below them: the snapshot didn't look at them."""
    read: dict[str, Row] = field(default_factory=dict)
    """The files that were read, with their stat data, so that a later snapshot needn't read them again."""

    @property
    def anything(self) -> bool:
        """Return whether the snapshot has any difference."""
        return bool(self.changed or self.gone or self.nested or self.odd)

    def keeps(self, name: str) -> bool:
        """Return whether the snapshot left out this file, or a folder that contains it."""
        while name and name not in self.kept:
            name = name.rpartition("/")[0]
        return bool(name)


def snapshot(
    path: Path,
    side: Path,
    tracked: Iterable[str] = (),
    before: Mapping[str, Row | None] = MappingProxyType({}),
    limits: SnapshotLimits | None = None,
) -> FolderSnapshot:
    """Take a snapshot of a work folder. Files in `tracked` count even if they are ignored.

    Differences are from the index, except for files in `before`: those are compared with an earlier snapshot (None: the
    file was missing then).
    """
    known = {row.path: row for row in rows((side / "index").read_bytes())} if (side / "index").is_file() else {}
    tracked = frozenset(tracked) | known.keys()
    limits = limits or WHOLE
    known |= {name: row for name, row in before.items() if row is not None}
    for name in [name for name, row in before.items() if row is None]:
        known.pop(name, None)
    reader = _FolderReader(path, side, known, tracked, limits, [row for row in before.values() if row])
    try:
        return reader.read_all()
    finally:
        reader.end()


class _FolderReader:
    """One snapshot in progress."""

    def __init__(
        self,
        path: Path,
        side: Path,
        known: dict[str, Row],
        tracked: frozenset[str],
        limits: SnapshotLimits,
        counted: Sequence[Row],
    ) -> None:
        self._path, self._side, self._known, self._limits = path, side, known, limits
        self._tracked = tracked
        self._above = folders_above(self._tracked)
        self._walk = Walk(path)
        self._rules: list[str] = []
        """Rule files that libgit2 has not been given yet."""
        self._seen = FolderSnapshot()
        self._there: set[str] = set()
        self._files, self._bytes = len(counted), sum(row.looked[3] for row in counted)

    def read_all(self) -> FolderSnapshot:
        for folder in self._walk.folders():
            if not self._is_nested(folder):
                named = (name for name, status in folder.entries if name in _RULES and stat.S_ISREG(status.st_mode))
                self._rules += [folder.path + name for name in named]
                for name, status in folder.entries:
                    self._entry(folder, name, status)
        self._seen.odd += self._walk.odd
        self._seen.kept |= (
            {name.rstrip("/") for name in self._seen.products}
            | left_out(self._side)
            | {each.path for each in self._seen.odd}
            | set(self._seen.nested)
        )
        self._seen.gone = {name for name in self._known if name not in self._there and not self._seen.keeps(name)}
        return self._seen

    def _is_nested(self, folder: Folder) -> bool:
        if not folder.path or folder.path.rstrip("/") in self._above:
            return False
        if any(name == ".git" for name, _ in folder.entries):
            self._seen.nested.append(folder.path.rstrip("/"))
            return True
        return False

    def end(self) -> None:
        """Close the repository and delete the copies."""
        if "_opened" in self.__dict__:
            self._plain_repository.free()
        if "_shadow" in self.__dict__:
            shutil.rmtree(self._shadow, ignore_errors=True)

    @cached_property
    def _shadow(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="look-", dir=self._side))

    @cached_property
    def _plain_repository(self) -> "Repository":
        repository = open_alone(self._side)
        repository.workdir = str(self._shadow)
        return repository

    @cached_property
    def _modes(self) -> bool:
        config = self._plain_repository.config
        return "core.filemode" not in config or config.get_bool("core.filemode")

    @property
    def _repository(self) -> "Repository":
        """Return the repository with the rule files of all entered folders, ready for questions about files."""
        while self._rules:
            path = self._rules.pop(0)
            above, _, name = path.rpartition("/")
            try:
                with (
                    plain_files.folder_at(self._path) as top,
                    plain_files.folder_below(top, above) as folder,
                    plain_files.file_below(folder, name, _MOST_RULES) as source,
                ):
                    plain_files.copy(source, self._shadow_of(path), _MOST_RULES)
            except OSError:
                self._odd(path, "it is not a valid .gitignore")
        return self._plain_repository

    def _entry(self, folder: Folder, name: str, status: os.stat_result) -> None:
        path = folder.path + name
        if is_gits(name):
            if folder.path or name != ".git":
                self._odd(path, "a name that git keeps for itself")
        elif what := kind(status):
            self._odd(path, what)
        elif stat.S_ISDIR(status.st_mode):
            self._folder(path, lambda: is_product_folder(name, {there for there, _ in folder.entries}))
        elif name == ".gitmodules" and stat.S_ISLNK(status.st_mode):
            self._odd(path, "a link where git reads a file")
        else:
            self._file(folder, name, path, status)

    def _folder(self, path: str, is_product: Callable[[], bool]) -> None:
        row = self._known.get(path)
        if row is not None and row.mode == GITLINK:
            self._there.add(path)
            self._seen.kept.add(path)
            if self._is_dirty(path):
                self._seen.nested.append(path)
        elif path in self._above:
            self._walk.enter(path)
        elif not self._is_ignored(f"{path}/"):
            if not self._limits.products and is_product():
                self._seen.products.append(f"{path}/")
            else:
                self._walk.enter(path)

    def _is_dirty(self, name: str) -> bool:
        """Return whether a submodule's files differ from its checkout."""
        side = side_of_submodule(self._side, name)
        if not (side / "index").is_file():
            return False
        seen = snapshot(self._path / name, side)
        self._seen.odd += [Odd(f"{name}/{each.path}", each.what) for each in seen.odd]
        return bool(seen.changed or seen.gone or seen.nested)

    def _file(self, folder: Folder, name: str, path: str, status: os.stat_result) -> None:
        row = self._known.get(path)
        if row is not None and row.looked == looks(status) and self._mode(status, row) == row.mode:
            self._there.add(path)
            self._seen.same[path] = row
            return
        if path not in self._tracked:
            if self._is_ignored(path):
                return
            if not self._limits.products and is_product_file(name):
                self._seen.products.append(path)
                return
        try:
            self._take(folder, name, path, status, row)
        except OSError as error:
            self._odd(path, f"it cannot be read: {error.strerror or error}")

    def _is_too_much(self, path: str, size: int) -> bool:
        """Return whether the file exceeds the limits and is left out. Refuse the whole folder if files may not be left
        out.
        """
        most = self._limits
        fits = self._files + 1 <= most.files and self._bytes + size <= most.bytes
        if most.leaves_out and not (fits and size <= most.largest):
            self._odd(path, f"left out, {format_size(size)}")
            return True
        self._files += 1
        self._bytes += size
        if not fits:
            where = printable(str(self._path))
            raise RefusedError(
                f"{where} has too many new or changed files to take over "
                f"(at most {most.files} files, {format_size(most.bytes)})",
                f"git -C {where} status --short | head; list files that are not part of the work in .gitignore, then: "
                "service job retry <job>",
            )
        return False

    def _take(self, folder: Folder, name: str, path: str, status: os.stat_result, row: Row | None) -> None:
        if row is None and any(ord(each) < 32 or ord(each) == 127 for each in name):
            self._seen.odd.append(Odd(path, "control characters in its name"))
        mode = self._mode(status, row)
        if stat.S_ISLNK(status.st_mode):
            if self._is_too_much(path, 0):
                return
            target = os.fsencode(os.readlink(name, dir_fd=folder.descriptor))
            self._record(path, self._repository.create_blob(target), mode, row, status)
            return
        if self._limits.leaves_out and self._is_too_much(path, status.st_size):
            return
        with plain_files.file_below(folder.descriptor, name, self._limits.largest) as source:
            data = os.read(source, _AT_ONCE) if status.st_size < _AT_ONCE else None
            if row is not None and data is not None and mode == row.mode and _blob_id(data) == row.object_id:
                self._there.add(path)
                self._seen.same[path] = row
                self._seen.read[path] = replace(row, looked=looks(status))
                return
            if not self._limits.leaves_out:
                self._is_too_much(path, status.st_size)
            os.lseek(source, 0, os.SEEK_SET)
            self._record(path, self._store(source, path), mode, row, status)

    def _store(self, source: int, path: str) -> "Oid":
        """Store the file's content as git does, with its conversion of line ends."""
        copy = self._shadow_of(path)
        plain_files.copy(source, copy, self._limits.largest)
        stored = self._repository.create_blob_fromworkdir(as_text(os.fsencode(path)))
        if copy.name not in _RULES:
            copy.unlink()
        return stored

    def _record(self, path: str, stored: "Oid", mode: int, row: Row | None, status: os.stat_result) -> None:
        self._there.add(path)
        self._seen.read[path] = Row(path, stored.raw, mode, looks(status))
        if row is not None and row.object_id == stored.raw and row.mode == mode:
            self._seen.same[path] = row
        else:
            self._seen.changed[path] = (stored, mode)

    def _mode(self, status: os.stat_result, row: Row | None) -> int:
        modes = library().enums.FileMode
        if stat.S_ISLNK(status.st_mode):
            return int(modes.LINK)
        mode = int(modes.BLOB_EXECUTABLE if status.st_mode & 0o100 else modes.BLOB)
        if (row is not None and row.mode == mode) or self._modes:
            return mode
        return row.mode if row is not None and row.mode in (modes.BLOB, modes.BLOB_EXECUTABLE) else int(modes.BLOB)

    def _is_ignored(self, path: str) -> bool:
        return is_ignored(self._repository, os.fsencode(path))

    def _odd(self, path: str, what: str) -> None:
        self._seen.odd.append(Odd(path, what))

    def _shadow_of(self, path: str) -> Path:
        copy = self._shadow / as_text(os.fsencode(path))
        copy.parent.mkdir(parents=True, exist_ok=True)
        return copy


def _blob_id(data: bytes) -> bytes:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
