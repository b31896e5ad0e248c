"""The activities of the GitHub desk: names, queues, timeouts. Their implementations are in `bridge/github`."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from workflows.model.wire import Wire

SILENT = timedelta(seconds=30)
"""The heartbeat timeout of a turn."""

WAITED_FOR = timedelta(minutes=5)
"""The longest wait for a process with the account; a new process starts the desk again."""


class Push(Wire):
    """A branch that must be pushed from its checkout's host before its pull request can be opened."""

    fact_id: str
    host: str


class Turn(Wire):
    """The result of a turn of the desk."""

    says: str = ""
    """A summary for the web UI: what was done, and what it waits for."""
    again: float | None = None
    """Seconds until something is due; None until the next ring."""
    pushes: tuple[Push, ...] = ()


def turns_queue(task_queue: str) -> str:
    """Return the queue of the process with the account: one for each service of a cluster, like its trees' queue."""
    return f"{task_queue}-github"


def pushing_queue(task_queue: str, host: str) -> str:
    """Return the queue of the process on that host."""
    return f"{turns_queue(task_queue)}-{host}"


@activity.defn
def github_turn(desk: str) -> Turn:
    """Take a turn of the GitHub desk: read what is new, act on commands, write one fact (ruling N1)."""
    raise NotImplementedError


@activity.defn
def github_push(fact_id: str) -> None:
    """Push a branch that is to be published. Idempotent."""
    raise NotImplementedError


async def turn() -> Turn | None:
    """Run one turn; None if no process with the account took it."""
    try:
        return await workflow.execute_activity(
            github_turn,
            workflow.info().workflow_id,
            task_queue=turns_queue(workflow.info().task_queue),
            start_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=SILENT,
            schedule_to_start_timeout=WAITED_FOR,
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=2), maximum_interval=timedelta(minutes=1)),
            summary="a turn: read what is new on GitHub, act on it, write what is due",
        )
    except ActivityError:
        return None


async def push(wanted: Push) -> None:
    """Run one push. The outcome is in the store, and the next turn decides on a retry."""
    await workflow.execute_activity(
        github_push,
        wanted.fact_id,
        task_queue=pushing_queue(workflow.info().task_queue, wanted.host),
        start_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=SILENT,
        schedule_to_start_timeout=timedelta(seconds=30),
        retry_policy=RetryPolicy(maximum_attempts=1),
        summary=f"push the branch of {wanted.fact_id}, from {wanted.host}",
    )
