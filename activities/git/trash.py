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
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from activities.git import plain_files

log = logging.getLogger(__name__)

FOLDER = "trash"
MOST = 64
"""So many may wait to be deleted. Whoever throws away one more deletes it itself, and so waits for it."""

_deleting = ThreadPoolExecutor(1, thread_name_prefix="trash")
_room = threading.BoundedSemaphore(MOST)


def put_away(trash: Path, path: Path) -> Path:
    """Where it is from now on, under a name that no other has. From another disk it is deleted instead."""
    if not trash.is_dir():
        trash.mkdir(mode=0o700, exist_ok=True)
    try:
        return path.rename(trash / f"{path.name}.{secrets.token_hex(8)}")
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        delete(path)
        return path


def delete(*paths: Path) -> None:
    """One after another; by a program what has many files, which would keep the interpreter busy."""
    there = [path for path in paths if os.path.lexists(path) and not plain_files.removed_small(path)]
    if there and subprocess.run(["rm", "-rf", "--", *there], stderr=subprocess.DEVNULL, check=False).returncode:
        for path in filter(os.path.lexists, there):
            for folder, _, _ in os.walk(path):  # tools leave read-only folders behind
                os.chmod(folder, 0o700)
            shutil.rmtree(path)


def delete_later(*paths: Path) -> None:
    """While the caller goes on; what cannot be deleted stays in the trash."""
    if not _room.acquire(blocking=False):
        return _try(paths)
    _deleting.submit(_try, paths).add_done_callback(lambda _: _room.release())
    return None


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
