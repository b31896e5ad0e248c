"""Work folders that are not needed any more: moved to the trash at once, deleted when there is time.

Nothing in the trash has an owner. A kill leaves folders there, which the next worker deletes, or `service repo sweep`.
"""

import contextlib
import errno
import logging
import os
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue

from activities.git import plain_files

log = logging.getLogger(__name__)

FOLDER = "trash"
MOST = 64
"""Most folders that may wait for deletion. A caller that adds one more deletes it itself."""

MANY = 8
"""From this number on `rm` deletes the folders, even small ones: jobs need the interpreter."""

GATHER_SECONDS = 0.5
"""Folders that arrive within this time are deleted together."""

_waiting: SimpleQueue[tuple[Path, ...]] = SimpleQueue()
_deleting = ThreadPoolExecutor(1, thread_name_prefix="trash")
_room = threading.BoundedSemaphore(MOST)


def put_away(trash: Path, path: Path) -> Path:
    """Move a folder to the trash under a unique name, and return its path. A folder of another disk is deleted
    instead.
    """
    if not trash.is_dir():
        trash.mkdir(mode=0o700, exist_ok=True)
    there = trash / f"{path.name}.{secrets.token_hex(8)}"
    try:
        path.rename(there)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        delete(path)
    return there


def delete(*paths: Path) -> None:
    """Delete folders. Run `rm` for many of them, or for many files, so that the interpreter stays free."""
    by_hand = len(paths) < MANY
    there = [path for path in paths if os.path.lexists(path) and not (by_hand and plain_files.removed_small(path))]
    if there and subprocess.run(["rm", "-rf", "--", *there], stderr=subprocess.DEVNULL, check=False).returncode:
        for path in filter(os.path.lexists, there):
            for folder, _, _ in os.walk(path):  # tools leave read-only folders behind
                os.chmod(folder, 0o700)
            shutil.rmtree(path)


def delete_later(*paths: Path) -> None:
    """Delete folders in the background; those that can't be deleted stay in the trash."""
    if not _room.acquire(blocking=False):
        return _try(paths)
    _waiting.put(paths)
    _deleting.submit(_delete_what_waits)
    return None


def _delete_what_waits() -> None:
    if _waiting.empty():  # deleted together with another one
        return
    together, until = list[tuple[Path, ...]](), time.monotonic() + GATHER_SECONDS
    with contextlib.suppress(Empty):
        while True:
            together.append(_waiting.get(timeout=max(0.0, until - time.monotonic())))
    try:
        paths = [path for each in together for path in each]
        with contextlib.suppress(OSError):
            delete(*paths)
        _try(paths)  # logs why a folder is still there
    finally:
        for _ in together:
            _room.release()


def empty(trash: Path) -> None:
    """Delete all in the trash."""
    with contextlib.suppress(FileNotFoundError):
        _try(trash.iterdir())


def _try(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            delete(path)
        except FileNotFoundError:  # another process deletes it too
            continue
        except OSError as error:
            log.warning("%s is not needed any more, and cannot be deleted: %s", path, error)
