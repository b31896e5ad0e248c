"""Strings at their bounds on a real server, and a store that refuses rows for good (ruling B6)."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import TimeSkipper, TimeSkippingConfig

from activities.store import permanent_errors
from tests.temporal.books import Books
from tests.temporal.host import Host, an_input, ended, play, says, script, serving, start
from tests.temporal.orders import latest
from tests.tree.largest import BLOB, the_largest_leg
from tests.tree.simulator import delegation
from tests.waiting import soon
from workflows.contract.models import Ephemeral, HumanQuestion, Runtime
from workflows.contract.size_limits import BOUNDS, COUNTS, DELEGATIONS_BYTES, size
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import Kill
from workflows.model.rows import Records
from workflows.model.settings import Bounds, TreeSettings
from workflows.model.states import JobState, TaskState
from workflows.model.workers import Worker
from workflows.temporal import search
from workflows.temporal.calls import REFUSED
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import TreeStart
from workflows.tree.state import TreeMemory

pytestmark = pytest.mark.ruling("B6")


def widest(name: str) -> str:
    """Return the longest text its bound allows, of characters of two bytes each."""
    bound = BOUNDS[name]
    text = "\u00e9" * min(bound.characters, bound.bytes // 2)
    assert size(text) - 2 <= bound.bytes
    return text


def a_leg(number: int) -> Any:
    worker = Ephemeral(
        runtime=Runtime.RUNTIME_C,
        role=widest("role"),
        model=widest("model"),
        effort=widest("effort"),
        capabilities=(widest("capability"),) * COUNTS["capabilities"],
    )
    return delegation(
        f"{number}".ljust(BOUNDS["id"].characters, "x"),
        None,
        "review",
        phase=widest("phase"),
        fingerprint=f"{number}" + widest("fingerprint")[1:],
        worktree="w" * BOUNDS["worktree"].characters,
        retry=1,
    ).model_copy(update={"agent": None, "ephemeral": worker})


async def test_a_tree_with_every_string_at_its_bound_runs_asks_and_ends(client: Client, queue: str) -> None:
    asks = (HumanQuestion(id="q" * 64, prompt=widest("question"), choices=(widest("choice"),)),)
    legs = tuple(a_leg(n) for n in range(3))
    plain = script({"root": legs})

    def answer(run: JobRun) -> JobOutcome:
        if run.delegation_id and run.continuation == "none":
            return says(run, "implemented", summary=widest("summary"), reason=widest("reason"))
        return plain(run)

    root = Worker(name=widest("agent"), runtime="runtime_a", model=widest("model"), role=widest("role"))
    tree = an_input(worker=root, title=widest("title"), phase=widest("phase"), repo="o/" + "r" * 198)
    host = Host(answer)
    closed = await play(client, queue, host, tree)
    assert closed.task_state is TaskState.DONE
    Books(host.written).check(host.runs, Bounds())
    child = await client.get_workflow_handle(f"{tree.root_job_id}.1").describe()
    assert child.typed_search_attributes[search.AGENT] == widest("role")
    assert asks


def unstorable(when: Any) -> Any:
    """Return a store that refuses some rows for good."""

    async def before_write(records: Records) -> None:
        if when(records):
            permanent_errors.write_or_refuse(lambda: "\ud800".encode())

    return before_write


async def test_a_row_the_store_never_takes_leaves_a_tree_that_can_be_seen_and_killed(
    client: Client, queue: str
) -> None:
    def refuses(records: Records) -> bool:
        return any(job.phase == "\u00e9" for job in records.jobs)

    host = Host(script({"root": (delegation("a", phase="\u00e9"),)}), held={"a"}, before_write=unstorable(refuses))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        books = Books(host.written)
        assert "record_refused" in books.kinds()
        assert books.named("a").state in {JobState.QUEUED, JobState.RUNNING}
        assert books.named("a").phase == "?"
        text = str(await tree.query("__temporal_workflow_metadata"))
        assert ".1 a coder implement" in text
        await tree.signal(DelegationTree.kill, Kill(actor="ann", immediate=True))
        closed = await soon(ended(tree))
    assert closed.task_state is TaskState.CANCELLED
    books = Books(host.written)
    books.check(host.runs, Bounds())
    refused = [event for event in books.events.values() if event.kind == "record_refused"]
    assert all(str(event.data["why"]).startswith("UnicodeEncodeError") for event in refused)


async def test_a_tree_of_which_the_store_takes_nothing_fails_with_the_reason(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a"),)}), before_write=unstorable(lambda records: bool(records.jobs)))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        with pytest.raises(WorkflowFailureError) as failed:
            await soon(tree.result())
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == REFUSED
    assert "the store refuses the rows of this tree: UnicodeEncodeError" in cause.message
    assert "service doctor" in cause.message


@pytest.mark.long
async def test_the_largest_texts_and_questions_of_a_whole_tree_are_carried_into_its_next_run(
    client: Client, queue: str
) -> None:
    """A pause without an answer: the finalize after it belongs to a run that starts with the tree's whole state."""
    letter, legs = "\u00e9", tuple(the_largest_leg(n, "\u00e9", DELEGATIONS_BYTES // 62) for n in range(62))
    asks = (HumanQuestion(id="q", prompt=widest("question"), choices=(widest("choice"),)),)
    plain = script({"root": legs})

    def answer(run: JobRun) -> JobOutcome:
        if run.continuation != "none" or not run.delegation_id:
            return plain(run)
        texts = {"summary": letter * 2_000, "findings": letter * 4_000, "reason": letter * 2_000}
        return says(run, "changes_requested", human_questions=asks, touched_files=(letter * 250,) * 100, **texts)

    names, bounds = {leg.id for leg in legs}, Bounds(max_delegation_width=62)
    host = Host(answer, held=names | {"finalize"})
    skipper = TimeSkipper(client, config=TimeSkippingConfig(enabled=False))
    first = TreeStart(input=an_input(settings=TreeSettings(bounds=bounds)), host=queue, history_limit=20)
    async with serving(client, queue, host):
        tree = latest(client, await start(skipper.client, queue, first, patience=timedelta(days=7)))
        await host.until(lambda: names <= set(host.names))
        host.release(*names)
        await host.until(lambda: all(Books(host.written).named(name).ended_at for name in names))
        (waiting,) = Books(host.written).open()
        assert len(waiting.questions) == len(names)
        before = (await tree.describe()).run_id
        over = asyncio.create_task(skipper.fast_forward(tree, timedelta(hours=25)))
        await host.until_running("finalize")
        after = await tree.describe()
        history = await client.get_workflow_handle(tree.id, run_id=after.run_id).fetch_history()
        host.release("finalize")
        closed = await soon(ended(tree))
        await over
    assert after.run_id != before, "it has gone on as new"
    (carried,) = history.events[0].workflow_execution_started_event_attributes.input.payloads
    assert 0.5 * BLOB < len(carried.data) < 0.9 * BLOB
    brief = host.run("finalize").brief
    assert brief is not None
    assert [leg.summary for leg in brief.legs] == [widest("summary")] * len(names)
    assert len(brief.answers) == len(names)
    assert closed.task_state is TaskState.DONE
    Books(host.written).check(host.runs, bounds)


@pytest.mark.ruling("F8.told")
async def test_people_are_told_of_a_row_that_the_store_never_takes(client: Client, queue: str) -> None:
    def refuses(records: Records) -> bool:
        return any(job.phase == "\u00e9" for job in records.jobs)

    host = Host(script({"root": (delegation("a", phase="\u00e9"),)}), before_write=unstorable(refuses))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await soon(ended(tree))
        refused = [each.event_id for each in Books(host.written).events.values() if each.kind == "record_refused"]
        assert refused
        await host.until(lambda: set(refused) <= set(host.notified))
    assert len(host.notified) == len(set(host.notified)), "each once"


@dataclass
class Forgetful(Host):
    """A host whose store never accepts the state of a tree."""

    tries: set[int] = field(default_factory=set)
    """The attempts of the call: a repeated workflow task makes the call anew, again as a first attempt."""

    @activity.defn(name="keep_tree")
    async def keep_tree(self, state: TreeMemory) -> None:
        self.kept.append(state)
        self.tries.add(activity.info().attempt)
        permanent_errors.write_or_refuse(lambda: "\ud800".encode())


@pytest.mark.ruling("D4")
async def test_a_blocked_tree_whose_state_cannot_be_kept_fails_with_the_reason(client: Client, queue: str) -> None:
    host = Forgetful(script({"root": (delegation("a"),), "a": "failed"}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        with pytest.raises(WorkflowFailureError) as failed:
            await soon(tree.result())
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == REFUSED
    assert "the store refuses the state of this blocked tree, which could not be opened again: Unicode" in cause.message
    assert "service doctor" in cause.message
    assert host.tries == {1}, "what is refused for good is not tried again"
    assert Books(host.written).task_state is TaskState.BLOCKED
