"""Work folders that nobody needs any more: put away at once, deleted when there is time.

What is in the trash is nobody's. A kill leaves things there, which the next worker deletes, or `service repo sweep`.
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
"""So many may wait to be deleted. Whoever throws away one more deletes it itself, and so waits for it."""

MANY = 8
"""So many are deleted by a program, small as they may be: it needs no interpreter, which other jobs are busy with."""

GATHER_SECONDS = 0.5
"""What is thrown away within this time is deleted together."""

_waiting: SimpleQueue[tuple[Path, ...]] = SimpleQueue()
_deleting = ThreadPoolExecutor(1, thread_name_prefix="trash")
_room = threading.BoundedSemaphore(MOST)


def put_away(trash: Path, path: Path) -> Path:
    """Where it is from now on, under a name that no other has. From another disk it is deleted instead."""
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
    """One after another; by a program what has many files, or are many, which would keep the interpreter busy."""
    by_hand = len(paths) < MANY
    there = [path for path in paths if os.path.lexists(path) and not (by_hand and plain_files.removed_small(path))]
    if there and subprocess.run(["rm", "-rf", "--", *there], stderr=subprocess.DEVNULL, check=False).returncode:
        for path in filter(os.path.lexists, there):
            for folder, _, _ in os.walk(path):  # tools leave read-only folders behind
                os.chmod(folder, 0o700)
            shutil.rmtree(path)


def delete_later(*paths: Path) -> None:
    """While the caller goes on; what cannot be deleted stays in the trash."""
    if not _room.acquire(blocking=False):
        return _try(paths)
    _waiting.put(paths)
    _deleting.submit(_delete_what_waits)
    return None


def _delete_what_waits() -> None:
    if _waiting.empty():  # it was deleted together with another
        return
    together, until = list[tuple[Path, ...]](), time.monotonic() + GATHER_SECONDS
    with contextlib.suppress(Empty):
        while True:
            together.append(_waiting.get(timeout=max(0.0, until - time.monotonic())))
    try:
        paths = [path for each in together for path in each]
        with contextlib.suppress(OSError):
            delete(*paths)
        _try(paths)  # what is still there says why
    finally:
        for _ in together:
            _room.release()


def empty(trash: Path) -> None:
    """Delete what is there."""
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
