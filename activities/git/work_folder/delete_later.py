"""Unneeded work folders: moved to the trash at once, deleted in the background.

No job owns anything in the trash. Folders that a kill leaves there are deleted by the next worker, or by `service repo
sweep`.
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

log = logging.getLogger(__name__)

FOLDER = "trash"
MOST = 64
"""Most calls that may wait for deletion. A caller beyond them deletes its folders itself."""

GATHER_SECONDS = 0.5
"""Folders put away within this time are deleted by one `rm`, since its start often takes longer than the deletion."""

_waiting: list[tuple[Path, ...]] = []
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
    """Delete folders with `rm`, so that the interpreter's threads stay free."""
    there = [path for path in paths if os.path.lexists(path)]
    if there and subprocess.run(["rm", "-rf", "--", *there], stderr=subprocess.DEVNULL, check=False).returncode:
        for path in filter(os.path.lexists, there):
            for folder, _, _ in os.walk(path):  # tools leave read-only folders behind
                os.chmod(folder, 0o700)
            shutil.rmtree(path)


def in_background(*paths: Path) -> None:
    """Delete folders in the background; those that can't be deleted stay in the trash."""
    if not paths:
        return
    if _room.acquire(blocking=False):
        _waiting.append(paths)
        _deleting.submit(_delete_and_make_room)
    else:
        _try(paths)


def _delete_and_make_room() -> None:
    """Delete all folders in the queue; no-op if an earlier call has deleted them."""
    if not _waiting:
        return
    time.sleep(GATHER_SECONDS)
    calls = [_waiting.pop() for _ in range(len(_waiting))]
    paths = [path for call in calls for path in call]
    try:
        with contextlib.suppress(OSError):
            delete(*paths)
        _try(paths)  # logs why a folder is still there
    finally:
        _room.release(len(calls))


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
