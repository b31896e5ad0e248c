"""A fake of the GitHub process, beside the desk's real workflow."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.temporal.server import runs
from workflows.temporal.github_desk import GithubDesk, Turn, pushing_queue, turns_queue

Handle = WorkflowHandle[GithubDesk, str]


@dataclass
class Office:
    """A fake of the GitHub process, whose turns a test scripts."""

    turns: list[Turn | Exception]
    taken: int = 0
    pushed: list[str] = field(default_factory=list)

    @activity.defn(name="github_turn")
    async def turn(self, desk: str) -> Turn:
        self.taken += 1
        come_to = self.turns[min(self.taken, len(self.turns)) - 1]
        if isinstance(come_to, Exception):
            raise come_to
        return come_to

    @activity.defn(name="github_push")
    async def push(self, fact_id: str) -> None:
        self.pushed.append(fact_id)
        raise ApplicationError("the remote is away", non_retryable=True)


@asynccontextmanager
async def at_desk(client: Client, queue: str, office: Office) -> AsyncIterator[Handle]:
    """Run the desk with this office, as long as the test needs it."""
    desk = Worker(client, task_queue=queue, workflows=[GithubDesk], workflow_runner=runs(client))
    turns = Worker(client, task_queue=turns_queue(queue), activities=[office.turn])
    pushes = Worker(client, task_queue=pushing_queue(queue, "here"), activities=[office.push])
    async with desk, turns, pushes:
        yield await client.start_workflow(GithubDesk.run, id=f"github-{uuid4().hex}", task_queue=queue)
