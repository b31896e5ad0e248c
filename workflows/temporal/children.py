"""Child workflows, run to their end. If a workflow is reset, it takes up its running children instead of starting them
again.

After a reset, the server reports the ends of children that the parent had started before the moment of the reset. Any
other running child is "already started" when the parent comes to start it, and reports its end only if asked.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowHandle

with workflow.unsafe.imports_passed_through():
    from workflows.model.wire import Wire
    from workflows.temporal import calls, close_status
    from workflows.temporal.event_loop import end_on_eviction
    from workflows.temporal.messages import Outcome

W = TypeVar("W", bound=Wire)

TAKE_UP = "take-up-children"
"""A patch that histories of 0.2.0 may carry."""

FIRST_WAIT, LONGEST_WAIT = 5.0, 900.0
"""Seconds until a child is asked again, doubling up to the longest: a terminated child never answers."""


@dataclass
class Child(Generic[W]):
    """One child workflow, whose outcome is of this `kind`."""

    workflow_id: str
    kind: type[W]
    begin: Callable[[], Awaitable[ChildWorkflowHandle[Any, W]]]
    outcomes: dict[str, Outcome]
    """Outcomes that children have sent by signal, by workflow id."""
    fits: Callable[[W], bool] = lambda _: True
    """Return whether an outcome is of the wanted attempt, and not of another one."""
    _runs: bool = False
    _stopped: bool = False
    _asked: bool = False
    _gone: bool = False

    async def run(self) -> W:
        """Run the child to its end, and return its outcome, however it ends. A cancellation is passed on to it."""
        self.outcomes.pop(self.workflow_id, None)
        workflow.deprecate_patch(TAKE_UP)
        life = asyncio.create_task(self._live())
        try:
            return await asyncio.shield(life)
        except asyncio.CancelledError:
            end_on_eviction()
            self._stopped = True
            await self._pass_on()
            return await life

    async def _live(self) -> W:
        while not self._stopped:
            try:
                return await self._start()
            except WorkflowAlreadyStartedError:
                if not await self._is_ours():
                    raise
                left = await self._take_up()
            if left is not None and self.fits(left):
                return left
            self._runs = self._asked = self._gone = False
        raise asyncio.CancelledError

    async def _start(self) -> W:
        """Start the child; the server reports its end. Return its outcome."""
        handle = await self.begin()
        await self._note_running()
        try:
            return await handle
        except ChildWorkflowError as error:
            if (left := close_status.outcome_in(error, self.kind, self.outcomes.get(self.workflow_id))) is None:
                raise
            return left

    async def _is_ours(self) -> bool:
        """Return whether the running workflow is a child of an earlier run, and not one that somebody started under the
        same id.
        """
        summary = f"{self.workflow_id} runs already: ask the server if it is a child of this"
        return await workflow.execute_local_activity(calls.is_child, self.workflow_id, summary=summary, **calls.LOCAL)

    async def _take_up(self) -> W | None:
        """Ask a running child to report its end, and wait for the report. Return None if the child ended before it
        could be asked.
        """
        await self._note_running()
        seconds = FIRST_WAIT
        while not self._over:
            await self._ask()
            with suppress(asyncio.TimeoutError):
                await workflow.wait_condition(
                    lambda: self._over,
                    timeout=timedelta(seconds=seconds),
                    timeout_summary=f"ask {self.workflow_id} again whether it has ended",
                )
            seconds = min(2 * seconds, LONGEST_WAIT)
        if outcome := self.outcomes.pop(self.workflow_id, None):
            return self.kind.model_validate(outcome.value)
        if self._asked:
            raise ApplicationError("it was ended from outside")
        return None

    @property
    def _over(self) -> bool:
        return self._gone or self.workflow_id in self.outcomes

    async def _note_running(self) -> None:
        self._runs = True
        if self._stopped:
            await self._pass_on()

    async def _pass_on(self) -> None:
        """Cancel the running child as an external workflow. As a child, only the run that started it could cancel
        it.
        """
        if self._runs:
            with suppress(ApplicationError):  # it may have ended before
                await workflow.get_external_workflow_handle(self.workflow_id).cancel()
        if self._asked:  # the server takes a cancellation of what is over, too
            await self._ask()

    async def _ask(self) -> None:
        try:
            await workflow.get_external_workflow_handle(self.workflow_id).signal("take_up")
            self._asked = True
        except ApplicationError:
            self._gone = True
