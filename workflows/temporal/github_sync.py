"""The GitHub desk: reads and writes in turns; its waits are durable timers (ruling L8)."""

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from workflows.temporal import github_calls as calls
    from workflows.temporal.messages_by_hand import takes_anything

LONGEST = timedelta(hours=1)


def desk_id(task_queue: str) -> str:
    """Return the id of a service's only desk; its task queue distinguishes services of one cluster."""
    return f"github-{task_queue}"


@workflow.defn
class GithubDesk:
    """Takes one turn after the other, for all repositories, so that writes are serialised across processes."""

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
            turn = await calls.turn()
            if turn is None:
                return "no process that has the account is there"
            workflow.set_current_details(turn.says)
            for each in turn.pushes:
                with suppress(ActivityError):
                    await calls.push(each)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new()
            if turn.again is None and not self._rung:
                return turn.says
            await self._wait(turn.again or 0.0, turn.says)

    async def _wait(self, seconds: float, why: str) -> None:
        """Wait until the next turn is due, or until a signal asks for one."""
        wait = min(timedelta(seconds=max(seconds, 0.0)), LONGEST)
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: self._rung, timeout=wait, timeout_summary=why[:200])
