"""The order that `service` hands to the warm process: the command and the whole context it was typed in.

Both sides import this module; it imports nothing, so that the client starts fast.
"""

import os
import sys
from collections.abc import Mapping, Sequence

SOCKET = "commands.sock"
KEY = "commands.key"
"""An empty file of the home. Callers show it open for reading, which no box allows an agent."""
FILES = 5
"""Descriptors sent beside the order: standard input, output and error, the working folder and the key."""
TAKEN = (
    *("HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "TZDIR", "LANG", "LANGUAGE"),
    *("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"),
    *("PATH", "PAGER", "LESS", "LESSCHARSET", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SSH_CONNECTION", "ZDOTDIR"),
)
"""Variables that are taken over unchanged, in addition to those that the settings name for programs."""
TAKEN_PREFIXES = ("LC_", "XDG_", "SERVICE_", "TEMPORAL_", "PG", "GIT_")
MARK = "SERVICE_RUN_MARK"
"""A variable in every agent's environment. Commands with it are not handed over: they run in their own process, in the
agent's box.
"""
READ_AT_START = ("PYTHON", "TYPER_", "PYDANTIC_", "LD_", "MALLOC_", "GLIBC_")
"""Prefixes of variables that are read at Python's start or at imports, so that a running process can't take them
over.
"""
Stream = tuple[str, bool, bool]
"""A stream's error handler for encoding, line buffering, and write-through."""
PACKAGES = ("cli", "bridge", "activities", "workflows")
_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Order:
    """A typed command and its context."""

    def __init__(
        self,
        stamp: str,
        words: Sequence[str],
        environment: Mapping[bytes, bytes],
        *,
        streams: Sequence[Stream],
        umask: int,
        ignored: Sequence[int],
    ) -> None:
        self.stamp = stamp
        self.words = list(words)
        self.environment = dict(environment)
        self.streams = list(streams)
        self.umask = umask
        self.ignored = list(ignored)
        """Signals that the client ignores, for example under `nohup`."""

    def encode(self) -> bytes:
        """Encode the order; NUL separates its parts, since none can contain one."""
        streams = " ".join(f"{errors}:{line:d}:{through:d}" for errors, line, through in self.streams)
        head = [self.stamp, streams, str(self.umask), " ".join(map(str, self.ignored))]
        parts = [os.fsencode(part) for part in (*head, str(len(self.words)), *self.words)]
        return b"\0".join([*parts, *(name + b"=" + value for name, value in self.environment.items())])

    @classmethod
    def decode(cls, data: bytes) -> "Order":
        """Decode the result of `encode`."""
        parts = data.split(b"\0")
        stamp, streams, umask, ignored, count = map(os.fsdecode, parts[:5])
        words, variables = parts[5 : 5 + int(count)], parts[5 + int(count) :]
        return cls(
            stamp,
            [os.fsdecode(word) for word in words],
            {name: value for name, _, value in (each.partition(b"=") for each in variables)},
            streams=[_stream(each) for each in streams.split()],
            umask=int(umask),
            ignored=[int(each) for each in ignored.split()],
        )


def _stream(text: str) -> Stream:
    errors, line, through = text.split(":")
    return errors, line == "1", through == "1"


def stamp() -> str:
    """Return a fingerprint of the installation on disk, which changes with any change of it."""
    installed = [path for path in sys.path if os.path.basename(path) == "site-packages"]
    changed = [os.stat(path).st_mtime_ns for path in installed if os.path.isdir(path)]
    code = [_sum(os.path.join(_HERE, package)) for package in PACKAGES]
    return repr((sys.prefix, sys.version, sys.getfilesystemencoding(), _HERE, changed, code))


def _sum(folder: str) -> tuple[int, int, int]:
    """Return the folder's number of files, and the sums of their sizes and modification times."""
    count = size = changed = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "__pycache__":
                continue
            seen = entry.stat()
            part = _sum(entry.path) if entry.is_dir() else (1, seen.st_size, seen.st_mtime_ns)
            count, size, changed = count + part[0], size + part[1], changed + part[2]
    return count, size, changed


def read_at_start(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the variables that must be equal in client and warm process, because Python reads them at its start."""
    names = tuple(os.fsencode(each) for each in READ_AT_START)
    return {name: value for name, value in environment.items() if name.startswith(names)}
