"""The steps of workflows in a worker: how long one may take, and which workflows the worker can't evict from its cache.

Temporal's SDK has no option for either, so this module uses private attributes of the SDK.
"""

from temporalio.worker import Worker
from temporalio.worker._workflow import _WorkflowWorker

STEP_LIMIT = 600
"""Seconds after which the SDK takes a step for an endless one, and interrupts its thread.

Its default is two seconds of wall clock, which any step takes on a machine that is busy enough. An interruption can
lose a wake-up of the step's event loop. The workflow then can't be evicted, and holds its slot until the worker ends.
"""


def patient(worker: Worker) -> Worker:
    """Set the time limit of the worker's steps to `STEP_LIMIT`."""
    _steps(worker)._deadlock_timeout_seconds = STEP_LIMIT
    return worker


def unevictable(worker: Worker) -> int:
    """Return the number of workflows that the worker repeatedly fails to evict. Each of them stalls, and holds a
    slot.
    """
    return _steps(worker)._could_not_evict_count


def _steps(worker: Worker) -> _WorkflowWorker:
    if worker._workflow_worker is None:
        raise AssertionError("this worker has no workflows")
    return worker._workflow_worker
