"""Work on the home as a whole, one at a time: a backup copies what a clean-up removes."""

from collections.abc import Iterator
from contextlib import contextmanager

from bridge.machine.locks import FileLock, holder
from bridge.operations.service import Service
from workflows.model.errors import RefusedError


@contextmanager
def alone(service: Service) -> Iterator[None]:
    """Refused while another such work goes on; nothing else waits for it."""
    path = service.home.ensure().root / "upkeep.lock"
    lock = FileLock.take(path, wait=0)
    if lock is None:
        who = f"process {holder(path) or 'unknown'} makes a backup or cleans up at this moment"
        raise RefusedError(who, "type it again when that has ended")
    try:
        yield
    finally:
        lock.release()
