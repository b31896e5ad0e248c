"""Landlock: the kernel's restrictions of a process and its children, whatever their account.

Each version (ABI) can restrict more: moving between folders from 2, truncating from 3, TCP from 4, ioctls of devices
from 5, signals and abstract sockets from 6.
"""

import ctypes
import functools
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from activities.boxes import system_files
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.kernel import libc

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION = 1
BENEATH, PORT = 1, 2

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights on files, by the ABI version that added the last of them."""

TCP = 3
SCOPES = 3
"""Abstract sockets and signals to processes outside."""

STREAMS = {0: READ_FILE, 1: WRITE_FILE | TRUNCATE, 2: WRITE_FILE | TRUNCATE}
"""`/dev/stdin` and `/dev/stderr` reopen the files behind the streams."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


@functools.cache
def abi() -> int:
    """Return the version of Landlock of this kernel; 0 if it has none, or does not use it."""
    return max(0, int(libc().syscall(CREATE_RULESET, None, 0, VERSION)))


def file_rights(version: int) -> int:
    """Return the rights on files that this version can restrict."""
    return max(rights for since, rights in FILE_RIGHTS.items() if since <= version)


def restrict(box: Box, ports: Iterable[int] = ()) -> None:
    """Restrict this process to the box. `ports`: those it may connect to where it has no network of its own."""
    version = abi()
    whole = box.kind is BoxKind.LANDLOCK
    files = file_rights(version) if whole else 0
    tcp = TCP if whole and version >= 4 and box.network is not Network.FULL and not box.own_network else 0
    ruleset = _ruleset(version, files, tcp, SCOPES if version >= 6 else 0)
    if whole:
        for path, rights in _of_the_system():
            if os.path.exists(path):  # some paths are missing on some systems, or out of an account's reach
                _allow(ruleset, path, rights & files)
        for path in box.readable:
            _allow(ruleset, path, READ & files)
        for path in writable(box):
            _allow(ruleset, path, files)
    for port in ports if tcp else ():
        _call(ADD_RULE, ruleset, PORT, struct.pack("=QQ", 2, port), 0)
    _call(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def writable(box: Box) -> tuple[Path, ...]:
    """Return the folders and files that a program in the box may change."""
    return (*box.writable, *(box.scratch if box.uid is not None else ()))


def _ruleset(version: int, files: int, tcp: int, scopes: int) -> int:
    size = 8 if version < 4 else 16 if version < 6 else 24
    return _call(CREATE_RULESET, struct.pack("=QQQ", files, tcp, scopes), size, 0)


def _of_the_system() -> Iterator[tuple[Path, int]]:
    """Yield the paths that every box has, with their rights."""
    for path in (*system_files.folders(), *system_files.files(), Path("/proc")):
        yield path, READ
    for number, rights in STREAMS.items():
        yield Path(f"/proc/self/fd/{number}"), rights
    for device in DEVICES:
        yield Path(device), READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV


def _allow(ruleset: int, path: Path, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISDIR(mode):
        rights &= OF_FILES
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):  # pipes and sockets are in no folder
        _call(ADD_RULE, ruleset, BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    os.close(descriptor)


def _call(number: int, *arguments: int | bytes) -> int:
    result = int(libc().syscall(number, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return result
