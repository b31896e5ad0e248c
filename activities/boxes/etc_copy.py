"""A copy of the files of /etc that boxes see. It is one folder, so a box needs one mount instead of forty."""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from activities.boxes import system_files

PREFIX = "etc-"
KEPT_SECONDS = 30 * 86_400.0
"""Age at which an outdated copy is deleted, because no run still uses it."""


def current(folder: Path) -> Path:
    """Return an up-to-date copy of /etc. A changed file leads to a new copy; runs keep the copy they began with."""
    copy = folder / f"{PREFIX}{_state()}"
    if not copy.is_dir():
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        _make(copy)
        _forget_old(folder, copy)
    return copy


def _state() -> str:
    """Return a digest of the files' inodes, sizes and times. Folders are not searched: a replaced file changes its
    folder's time.
    """
    lines = []
    for name in system_files.ETC:
        with contextlib.suppress(OSError):
            status = os.stat(f"/etc/{name}")
            lines.append(f"/etc/{name} {status.st_ino} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\0".join(lines).encode()).hexdigest()[:16]


def _make(copy: Path) -> None:
    """Make the copy atomically: another process may be making it, too. A failure leaves no partial copy."""
    fresh = Path(tempfile.mkdtemp(prefix=f"{copy.name}.", dir=copy.parent))
    try:
        _fill(fresh)
        fresh.rename(copy)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        if isinstance(error, shutil.Error):  # its argument is a list: source, target and reason of each file
            raise OSError(f"/etc cannot be copied: {error.args[0][0][2]}") from None
        if not copy.is_dir():
            raise


def _fill(fresh: Path) -> None:
    """Copy the files. Links inside folders stay links; other links are copied as files."""
    fresh.chmod(0o755)
    for path in system_files.files():
        target = fresh / path.relative_to("/etc")
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, symlinks=True, ignore=_unreadable)
        elif _for_everybody(path):
            shutil.copyfile(path, target)
            target.chmod(0o644)


def _unreadable(folder: str, names: list[str]) -> list[str]:
    """Return the files that not every account may read: the copy is shared by all accounts."""
    return [name for name in names if not _for_everybody(Path(folder, name))]


def _for_everybody(path: Path) -> bool:
    return path.is_symlink() or bool(path.stat().st_mode & 0o004)


def _forget_old(folder: Path, copy: Path) -> None:
    for old in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):  # another process making this copy has removed it
            if old != copy and old.stat().st_mtime < time.time() - KEPT_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
