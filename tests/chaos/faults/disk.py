"""Faults of the disk under the home: full, read-only, failing below its file system; and an error of one call."""

import contextlib
import errno
import fcntl
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.faults.base import Base
from tests.chaos.protocol import GO, Arrival, NotLandedError

if TYPE_CHECKING:
    from tests.chaos.stack import Stack

OUTAGE = 20.0
MIB = 1 << 20
SIZE = 512
"""MiB of a stack's disk."""
STATUS_BYTES, LIMIT_AT = 232, 32
"""The size of the kernel's `loop_info64`, and the place of `lo_sizelimit` in it."""
SET_STATUS, GET_STATUS = 0x4C04, 0x4C05
FIRST_BLOCK = 4096
WRITTEN = (
    "claim written", "folder made", "folder recorded", "program to be started", "snapshot pushed", "work committed",
    "branch merged", "outcome recorded", "folder removed", "run claimed", "command started", "command ended",
)  # fmt: skip
"""Stations beside which a file is written."""


@dataclass
class Disk:
    """A disk of a test's own: a file in memory with a file system in it, mounted on a folder."""

    folder: Path
    device: str
    _ballast: Path = field(init=False)

    def __post_init__(self) -> None:
        self._ballast = self.folder / "ballast"

    def fill(self) -> None:
        """Leave nothing free on it, as another program's files do."""
        with self._ballast.open("ab") as ballast:
            for size in (MIB, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(ballast.fileno(), ballast.tell(), size)
                        ballast.seek(0, os.SEEK_END)

    def make_room(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def fail(self) -> None:
        """Let all fail that is read from it and written to it: the device ends after its first block."""
        self._limit(FIRST_BLOCK)

    def work(self) -> None:
        """Let it work again, with all that was written before."""
        self._limit(0)

    def write(self) -> int:
        """Write and sync a file, as a probe; return the number of the error, 0 without one."""
        path = self.folder / "probe"
        try:
            with path.open("wb", buffering=0) as probe:
                probe.write(bytes(2 * FIRST_BLOCK))
                os.fsync(probe.fileno())
            path.unlink()
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            return error.errno or errno.EIO
        return 0

    def _limit(self, size: int) -> None:
        with Path(self.device).open("rb") as device:
            status = bytearray(STATUS_BYTES)
            fcntl.ioctl(device, GET_STATUS, status)
            struct.pack_into("<Q", status, LIMIT_AT, size)
            fcntl.ioctl(device, SET_STATUS, bytes(status))


@contextlib.contextmanager
def mounted(folder: Path, size: int = SIZE) -> Iterator[Disk | None]:
    """Mount a disk of so many MiB on a folder; None where nothing can be mounted, which takes root."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        where = "/dev/shm" if Path("/dev/shm").is_dir() else None
        image = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=where, prefix="chaos-disk-")), "image")
        with image.open("wb") as file:
            file.truncate(size * MIB)
        try:
            _run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(image))
            device = _run("losetup", "--find", "--show", str(image)).strip()
            stack.callback(_run, "losetup", "--detach", device)
            _run("mount", "-o", "errors=continue", device, str(folder))
        except (OSError, subprocess.CalledProcessError):
            yield None
            return
        stack.callback(_run, "umount", "--lazy", str(folder))
        (folder / "lost+found").rmdir()
        disk = Disk(folder, device)
        stack.callback(disk.work)
        yield disk


@dataclass
class Full(Base):
    """The disk of the home is full."""

    name: str = "disk full"
    needs: frozenset[str] = frozenset({"disk"})
    seconds: float = OUTAGE
    alone: bool = True
    _error: int = 0

    def harms(self, station: str) -> bool:
        return True

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        self.disk(stack).fill()
        self._error = self.disk(stack).write()
        return GO

    def disk(self, stack: "Stack") -> Disk:
        if stack.disk is None:
            raise NotLandedError("this stack's home is on no disk of its own")
        return stack.disk

    def proof(self, stack: "Stack") -> str:
        if not self._error:
            raise NotLandedError("the disk could be written to")
        return f"a write to the disk ended with {errno.errorcode[self._error]}"

    def lift(self, stack: "Stack") -> None:
        self.disk(stack).make_room()


@dataclass
class Failing(Full):
    """All fails that is read from the disk of the home and written to it."""

    name: str = "disk failing"

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        self.disk(stack).fail()
        self._error = self.disk(stack).write()
        return GO

    def lift(self, stack: "Stack") -> None:
        self.disk(stack).work()


@dataclass
class ReadOnly(Base):
    """The folder of the home's work folders is read-only for whoever opens a file there from here on."""

    name: str = "work folders read-only"
    needs: frozenset[str] = frozenset({"disk"})
    seconds: float = OUTAGE
    _error: int = 0
    _mounted: bool = False
    alone: bool = True

    def harms(self, station: str) -> bool:
        return True

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        (folder := stack.home / "worktrees").mkdir(exist_ok=True)
        _run("mount", "--bind", str(folder), str(folder))
        self._mounted = True
        _run("mount", "-o", "remount,bind,ro", str(folder))
        try:
            (folder / "probe").touch()
        except OSError as error:
            self._error = error.errno or 0
        return GO

    def proof(self, stack: "Stack") -> str:
        if self._error != errno.EROFS:
            raise NotLandedError("the work folders could be written to")
        return "a write to the work folders ended with EROFS"

    def lift(self, stack: "Stack") -> None:
        if self._mounted:
            _run("umount", "--lazy", str(stack.home / "worktrees"))


@dataclass
class Raise(Base):
    """The call at the station fails once."""

    error: str
    """A name of `errno`."""
    _arrival: Arrival | None = None

    @property
    def name(self) -> str:
        return f"raise {self.error}"

    def harms(self, station: str) -> bool:
        return True

    def fits(self, station: str) -> bool:
        return station.startswith("rows") or station in WRITTEN

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        self._arrival = arrival
        return f"raise {self.error}"

    def proof(self, stack: "Stack") -> str:
        if self._arrival is None:
            raise NotLandedError("nobody came to the station")
        return f"process {self._arrival.pid} was told to fail with {self.error} at {self._arrival.station}"


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


FAULTS = (Full, Failing, ReadOnly, partial(Raise, "EIO"), partial(Raise, "ENOSPC"))
