"""A lock on the home for backups and clean-ups: a backup must not copy what a clean-up removes."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from bridge.machine.locks import FileLock, holder
from bridge.operations.service import Service
from workflows.model.errors import RefusedError

P = ParamSpec("P")
T = TypeVar("T")


def by_itself(work: Callable[Concatenate[Service, P], T]) -> Callable[Concatenate[Service, P], T]:
    """Decorate a backup or clean-up: it is refused while another one runs in this home, and blocks nothing else."""

    @wraps(work)
    def alone(service: Service, /, *arguments: P.args, **options: P.kwargs) -> T:
        path = service.home.ensure().root / "upkeep.lock"
        lock = FileLock.take(path, wait=0)
        if lock is None:
            who = f"process {holder(path) or 'unknown'} makes a backup or cleans up at this moment"
            raise RefusedError(who, "type it again when that has ended")
        try:
            return work(service, *arguments, **options)
        finally:
            lock.release()

    return alone
