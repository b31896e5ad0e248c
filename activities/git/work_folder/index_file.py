"""A reader of git's index: the files it lists, and their stat data when it was written.

Why not a library or git: pygit2 returns no stat data; `git status` runs git in submodules, whose configuration an agent
may have written (ruling N3); `git ls-files --debug` needs a process for every job, and prints for people.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_FIXED = struct.Struct(">10I20sH")
_EXTENDED = 0x4000
GITLINK = 0o160000


class IndexFileError(ValueError):
    """The index is invalid, or of an unknown version."""


@dataclass(frozen=True, slots=True)
class Row:
    """A file in the index."""

    path: str
    object_id: bytes
    mode: int
    looked: tuple[int, int, int, int]
    """Modification time, change time, inode and size: they show a change without reading the file."""


def looks(status: os.stat_result) -> tuple[int, int, int, int]:
    """Return a file's current stat values, to compare with `Row.looked`."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_ino & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)


def rows(data: bytes) -> Iterator[Row]:
    """Yield the entries of an index of SHA-1 objects, of version 2, 3 or 4."""
    try:
        signature, version, count = struct.unpack_from(">4sII", data)
        if signature != b"DIRC" or version not in (2, 3, 4):
            raise IndexFileError("it is not an index of version 2, 3 or 4")
        yield from _rows(data, version, count)
    except (struct.error, ValueError, IndexError) as error:
        raise IndexFileError(str(error)) from None


def _rows(data: bytes, version: int, count: int) -> Iterator[Row]:
    at, before = 12, b""
    for _ in range(count):
        fields = _FIXED.unpack_from(data, at)
        changed, changed_ns, written, written_ns, _, number, mode, _, _, size, object_id, flags = fields
        start = at + _FIXED.size + (2 if version >= 3 and flags & _EXTENDED else 0)
        kept = 0
        if version == 4:
            dropped, start = _varint(data, start)
            kept = len(before) - dropped
            if kept < 0:
                raise IndexFileError("a name has a negative length")
        end = data.index(b"\0", start)
        before = before[:kept] + data[start:end]
        at = end + 1 if version == 4 else at + ((end - at + 8) & ~7)
        looked = (written * 10**9 + written_ns, changed * 10**9 + changed_ns, number, size)
        yield Row(os.fsdecode(before), object_id, mode, looked)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1
