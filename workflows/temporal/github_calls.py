"""The activities of the GitHub desk: their names, queues, timeouts. What they do lives in `bridge/github`."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from workflows.model.wire import Wire

SILENT = timedelta(seconds=30)
"""How long that process may be silent before a turn is taken by the next one."""

WAITED_FOR = timedelta(minutes=5)
"""How long a process that has the account is waited for; when one comes, it starts the desk again."""


class Push(Wire):
    """A branch that has to be pushed where its checkout is, before anything can be said of it."""

    fact_id: str
    host: str


class Turn(Wire):
    """What a turn of the desk came to."""

    says: str = ""
    """For the web UI: what was done, what is waited for."""
    again: float | None = None
    """Seconds until something is due; None when nothing is until somebody rings."""
    pushes: tuple[Push, ...] = ()


def turns_queue(task_queue: str) -> str:
    """Where the process works that has the account: its own for each service of a cluster, as its trees' queue is."""
    return f"{task_queue}-github"


def pushing_queue(task_queue: str, host: str) -> str:
    """The queue of the process on that host."""
    return f"{turns_queue(task_queue)}-{host}"


@activity.defn
def github_turn(desk: str) -> Turn:
    """Read what is new, act on what is ordered, write one thing; for the one desk of a service (ruling N1)."""
    raise NotImplementedError


@activity.defn
def github_push(fact_id: str) -> None:
    """Push the branch that is to be published; done again, it changes nothing."""
    raise NotImplementedError


async def turn() -> Turn | None:
    """One turn; None when no process with the account came to take it."""
    try:
        return await workflow.execute_activity(
            github_turn,
            workflow.info().workflow_id,
            task_queue=turns_queue(workflow.info().task_queue),
            start_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=SILENT,
            schedule_to_start_timeout=WAITED_FOR,
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=2), maximum_interval=timedelta(minutes=1)),
        )
    except ActivityError:
        return None


async def push(wanted: Push) -> None:
    """One push; what came of it stands in the store, and the next turn says whether it is tried again."""
    await workflow.execute_activity(
        github_push,
        wanted.fact_id,
        task_queue=pushing_queue(workflow.info().task_queue, wanted.host),
        start_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=SILENT,
        schedule_to_start_timeout=timedelta(seconds=30),
        retry_policy=RetryPolicy(maximum_attempts=1),
        summary=wanted.fact_id,
    )
