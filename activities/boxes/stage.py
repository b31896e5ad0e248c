"""What the account of agents could not reach is laid where it can: for a service that runs as root.

Folders such as /root are private, so an account of its own could not even walk through them to its work folder. In a
mount namespace of the run alone, an empty folder covers each of them, and only what the box names stands in it again.
"""

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from activities.boxes import kernel
from activities.boxes.box import Box, BoxKind

COVERED = ("/tmp", "/run", "/var/tmp")  # noqa: S108
"""Covered too where the box is the machine's own root: sockets of other programs lie there."""


def lay(box: Box) -> None:
    """Cover what is private, and lay what the box names over it. Nobody but this process and its children sees it."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    needed = (*box.places, *((box.etc,) if box.etc else ()))
    covers = _outermost({*map(_barrier, needed), *_hidden(box)} - {None})
    below = [path for path in needed if any(path.is_relative_to(each) for each in (*covers, *box.scratch))]
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in below}
    for cover in covers:
        kernel.mount("tmpfs", str(cover), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for path in box.scratch if box.kind is BoxKind.LANDLOCK else ():
        _make_place(path, is_folder=True)
        kernel.mount("tmpfs", str(path), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode=700,uid={box.uid}")
    for path, descriptor in held.items():
        _make_place(path, is_folder=stat.S_ISDIR(os.fstat(descriptor).st_mode))
        kernel.mount(f"/proc/self/fd/{descriptor}", str(path), None, kernel.MS_BIND | kernel.MS_REC)
        os.close(descriptor)


def _barrier(path: Path) -> Path | None:
    """The outermost folder on the way that not everybody may walk through."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & stat.S_IXOTH), None)


def _hidden(box: Box) -> Iterable[Path]:
    if box.kind is BoxKind.BWRAP:  # it has a root of its own
        return ()
    return (path.resolve() for path in (*map(Path, COVERED), box.home) if path.is_dir())


def _outermost(paths: Iterable[Path | None]) -> list[Path]:
    """Without those that stand in another one."""
    known = sorted(path for path in paths if path is not None)
    return [path for path in known if not any(path != other and path.is_relative_to(other) for other in known)]


def _make_place(path: Path, *, is_folder: bool) -> None:
    """Something to lay a folder or a file over; what an outer folder brought along is there already."""
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.mkdir(mode=0o755) if is_folder else path.touch(mode=0o644, exist_ok=False)
