"""The GitHub desk: a workflow that reads from GitHub and writes to it in turns, with durable timers between them
(ruling L8).

It calls the activities of a turn and of a push by name; they are in `bridge/github`.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from workflows.model.wire import Wire
    from workflows.temporal.messages_by_hand import takes_anything

LONGEST = timedelta(hours=1)
"""The longest wait between two turns."""

SILENT = timedelta(seconds=30)
"""The heartbeat timeout of a turn."""

WAITED_FOR = timedelta(minutes=5)
"""The longest wait for a process with the GitHub account; when such a process starts, it starts the desk again."""


class Push(Wire):
    """A branch that must be pushed from its checkout's host before its pull request can be opened."""

    fact_id: str
    host: str


class Turn(Wire):
    """The result of a turn of the desk."""

    says: str = ""
    """A summary for the web UI: what was done, and what the desk waits for."""
    again: float | None = None
    """Seconds until the next turn is due; None if none is due before a signal."""
    pushes: tuple[Push, ...] = ()


def desk_id(task_queue: str) -> str:
    """Return the id of a service's only desk. It contains the task queue, which differs between services of one
    cluster.
    """
    return f"github-{task_queue}"


def turns_queue(task_queue: str) -> str:
    """Return the task queue of the process that has the GitHub account: one for each service of a cluster, like the
    queue of its trees.
    """
    return f"{task_queue}-github"


def pushing_queue(task_queue: str, host: str) -> str:
    """Return the task queue of the process that pushes branches on that host."""
    return f"{turns_queue(task_queue)}-{host}"


@workflow.defn
class GithubDesk:
    """Takes one turn after the other, for all repositories, so that no two processes write at the same time."""

    def __init__(self) -> None:
        self._rung = False

    @workflow.signal(description="there may be something to read, to write or to carry out")
    @takes_anything
    def ring(self, *_: object) -> None:
        self._rung = True

    @workflow.run
    async def run(self) -> str:
        """Take turns until nothing is due, then end; the next signal starts the workflow again."""
        while True:
            self._rung = False
            turn = await _take_turn()
            if turn is None:
                return "no process that has the account is there"
            workflow.set_current_details(turn.says)
            for push in turn.pushes:
                with suppress(ActivityError):
                    await _push(push)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new()
            if turn.again is None and not self._rung:
                return turn.says
            await self._wait(turn.again or 0.0, turn.says)

    async def _wait(self, seconds: float, why: str) -> None:
        """Wait until the next turn is due, or a signal asks for one."""
        wait = min(timedelta(seconds=max(seconds, 0.0)), LONGEST)
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: self._rung, timeout=wait, timeout_summary=why[:200])


@activity.defn
def github_turn(desk: str) -> Turn:
    """Take a turn of the GitHub desk: read new comments, carry out their commands, write one fact (ruling N1)."""
    raise NotImplementedError


@activity.defn
def github_push(fact_id: str) -> None:
    """Push a branch that is to be published. Idempotent."""
    raise NotImplementedError


async def _take_turn() -> Turn | None:
    """Run one turn; return None if no process with the account took it."""
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


async def _push(wanted: Push) -> None:
    """Run one push. The store has its outcome, and the next turn decides on a retry."""
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
