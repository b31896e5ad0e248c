"""People for the scripted host: runs that ask them, their answers, and their view of a tree."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, Line, Script, ended, name_of, script
from tests.tree.simulator import delegation
from tests.waiting import soon, until
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import ResumeOrder
from workflows.model.rows import RoundRecord
from workflows.model.settings import Bounds
from workflows.temporal import search
from workflows.tree.commands import CloseTree


def asking(lines: Mapping[str, Line | list[Line]], *names: str, **fields: Any) -> Script:
    """Return a script in which the named jobs ask `which?` once, by an id of their own name."""
    answer, left = script(lines, **fields), list(names)

    def ask(run: JobRun) -> JobOutcome:
        outcome, name = answer(run), name_of(run)
        if name not in left:
            return outcome
        left.remove(name)
        question = HumanQuestion(id=f"q-{name}", prompt="which?", choices=("red", "blue"))
        return outcome.model_copy(update={"human_questions": (question,)})

    return ask


def human(leg_id: str) -> Delegation:
    """Return a leg whose failure a person decides about."""
    return delegation(leg_id, failure_policy="escalate_human")


def order(job_id: str, verb: str, text: str = "", **fields: Any) -> ResumeOrder:
    """Return an order. Few tests depend on its answer: any text and any open question is allowed."""
    base = {"actor": "ann", "channel": "cli", "request_id": uuid4().hex, "partial": True, "other": True}
    return ResumeOrder.model_validate(base | {"job_id": job_id, "verb": verb, "text": text} | fields)


async def say(tree: Handle, order: ResumeOrder) -> str:
    """Send an order by update, and return its result."""
    return str(await tree.execute_update("resume", order, result_type=str))


async def send(tree: Handle, order: ResumeOrder) -> None:
    """Send an order by signal."""
    await tree.signal("resume", order)


async def refusal(tree: Handle, order: ResumeOrder) -> tuple[str | None, str]:
    """Return kind and sentence of an update's refusal."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await say(tree, order)
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause.type, caught.value.cause.message


async def waits(host: Host, number: int = 1, rounds: int = 1) -> RoundRecord:
    """Wait until so many rounds are open, and return the one with this number."""

    def there() -> list[RoundRecord]:
        shown = Books(host.written).open()
        return shown if len(shown) == rounds else []

    await host.until(lambda: any(each.number == number for each in there()))
    return next(each for each in there() if each.number == number)


async def listed(client: Client, queue: str, expected: dict[str, str]) -> None:
    """Wait until the Temporal web UI lists exactly these trees as waiting, with their reasons."""
    query = f"TaskQueue = '{queue}' AND SvcState = 'awaiting_human' AND SvcAttention != 'none'"
    shown: dict[str, str] = {}

    async def as_expected() -> bool:
        nonlocal shown
        runs = [each async for each in client.list_workflows(query)]
        shown = {each.id: str(each.typed_search_attributes[search.ATTENTION]) for each in runs}
        return shown == expected

    await until(as_expected, lambda: f"{shown}, not {expected}")


async def over(tree: Handle, host: Host) -> tuple[CloseTree, Books]:
    closed = await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    return closed, books


async def details(tree: Handle) -> str:
    """Return the web UI's details of a running tree."""
    return str((await tree.query("__temporal_workflow_metadata")).current_details)


async def failed_tasks(tree: Handle) -> int:
    """Count the workflow tasks that our code failed: one that fails on every try hangs the tree."""
    events = (await tree.fetch_history()).events
    failed = [each.workflow_task_failed_event_attributes for each in events]
    ours = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE
    return len([each for each in failed if each.cause == ours])


async def shows(tree: Handle, text: str) -> str:
    """Return the details, as soon as they contain the text."""
    shown = ""

    async def said() -> bool:
        nonlocal shown
        shown = await details(tree)
        return text in " ".join(shown.split())

    await until(said, lambda: f"{text!r} is not shown: {shown}")
    return shown
