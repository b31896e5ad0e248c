"""Kill, cancel and terminate, at every point of a tree's life (rulings G1, G2)."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError

from activities.takeover import LOST
from tests.temporal.books import Books
from tests.temporal.host import Host, Line, an_input, ended, name_of, script, serving, start
from tests.temporal.orders import kill
from tests.tree.simulator import delegation, outcome
from tests.waiting import soon, until
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.rows import Records
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState
from workflows.temporal import calls
from workflows.tree.commands import CloseTree

TWO = (delegation("a"), delegation("b", deps=("a",)))


async def killed(
    client: Client, queue: str, held: str, *orders: bool, lines: dict[str, Line | list[Line]] | None = None
) -> tuple[Host, Books, CloseTree]:
    """Kill a tree while one run is held; release the run unless the last order stops it."""
    host = Host(script(lines or {"root": TWO}), held={held})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running(held)
        for immediate in orders:
            await kill(tree, immediate=immediate)
        if not any(orders):
            await host.until(lambda: "delegation_killed" in Books(host.written).kinds())
            host.release(held)
        closed = await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert books.kinds().count("delegation_killed") == 1
    assert closed.task_state is TaskState.CANCELLED
    return host, books, closed


@pytest.mark.ruling("G2")
@pytest.mark.parametrize("immediate", [False, True])
async def test_before_the_tree_was_ever_seen_by_a_worker(client: Client, queue: str, immediate: bool) -> None:
    host = Host(script({"root": TWO}))
    tree = await start(client, queue)
    await kill(tree, immediate=immediate)
    async with serving(client, queue, host):
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert closed.task_state is TaskState.CANCELLED
    assert set(host.names) <= {"root", "finalize"}, "no leg was ever begun"


@pytest.mark.ruling("G2")
async def test_a_root_that_is_cancelled_before_it_began_and_is_taken_back_late(client: Client, queue: str) -> None:
    """No row is written before the claim is known: the end is shown once nothing can begin."""
    host, tree = Host(script({"root": TWO})), await start(client, queue)
    order = list[str]()

    async def late(offer: calls.OfferKey) -> None:
        await asyncio.sleep(0.05)
        order.append("claim")

    async def seen(rows: Records) -> None:
        order.append("rows")

    host.before_take_back, host.before_write = late, seen
    await kill(tree)
    await tree.cancel()
    async with serving(client, queue, host):
        closed = await soon(ended(tree))
    assert closed.task_state is TaskState.CANCELLED
    assert host.runs == []
    assert order[0] == "claim"


@pytest.mark.ruling("G2")
async def test_while_the_root_runs_it_ends_first(client: Client, queue: str) -> None:
    host, books, _ = await killed(client, queue, "root", False)
    assert host.names == ["root", "finalize"]
    assert books.kinds().count("delegation_dropped") == 1


@pytest.mark.ruling("G2")
async def test_while_the_root_runs_at_once(client: Client, queue: str) -> None:
    host, books, _ = await killed(client, queue, "root", True)
    assert (host.names, host.cancelled) == (["root"], ["root"])
    assert books.states() == {JobState.CANCELLED: 1}


@pytest.mark.ruling("G1", "G2")
async def test_running_legs_finish_waiting_ones_never_start_and_one_finalize_sums_up(
    client: Client, queue: str
) -> None:
    host, books, _ = await killed(client, queue, "a", False)
    assert host.names == ["root", "a", "finalize"]
    assert {leg: books.named(leg).state for leg in "ab"} == {"a": "succeeded", "b": "cancelled"}


@pytest.mark.ruling("G2", "F4")
async def test_no_part_starts_after_a_kill_whose_activity_lasts_until_the_running_part_ends(
    client: Client, queue: str
) -> None:
    """The server or a worker may die between a kill that was taken and its activity."""
    host = Host(script({"root": TWO}), held={"a"})

    async def late(records: Records) -> None:
        if records == Records():
            host.release("a")
            await until(a_has_ended)

    async def a_has_ended() -> bool:
        fields = [event.WhichOneof("attributes") for event in (await tree.fetch_history()).events]
        end = "child_workflow_execution_completed_event_attributes"
        return end in fields and "workflow_task_completed_event_attributes" in fields[fields.index(end) :]

    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        host.before_write = late
        await kill(tree)
        await soon(ended(tree))
        history = await tree.fetch_history()
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert {leg: books.named(leg).state for leg in "ab"} == {"a": "succeeded", "b": "cancelled"}
    started = [each for each in history.events if each.HasField("child_workflow_execution_started_event_attributes")]
    assert (len(started), host.names) == (1, ["root", "a", "finalize"])


@pytest.mark.ruling("G2")
async def test_at_once_running_legs_are_stopped_too(client: Client, queue: str) -> None:
    host, books, _ = await killed(client, queue, "a", True)
    assert (host.names, host.cancelled) == (["root", "a", "finalize"], ["a"])
    assert {leg: books.named(leg).state for leg in "ab"} == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.ruling("G2")
@pytest.mark.parametrize(("lost", "how"), [("a", LOST), ("root", LOST), ("a", "OperationalError")])
async def test_what_is_stopped_ends_cancelled_although_its_worker_dies_or_its_store_fails_meanwhile(
    client: Client, queue: str, lost: str, how: str
) -> None:
    """The next call finds the order to stop."""
    host = Host(script({"root": TWO}), held={lost})

    def stopped(run: JobOutcome) -> JobOutcome:
        if host.cancelled == [lost]:
            host.answer = lambda run: outcome(run, None, state=JobState.CANCELLED, reason="stopped by order")
            host.release(lost)
            raise ApplicationError("it went wrong", type=how)
        return run

    host.on_cancel = stopped
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running(lost)
        await kill(tree, immediate=True)
        closed = await soon(ended(tree))
    books = Books(host.written)
    job = books.jobs[host.run(lost).job_id]
    assert (job.state, job.reason.partition(":")[0]) == (JobState.CANCELLED, "stopped by order")
    assert (closed.task_state, host.names.count(lost)) == (TaskState.CANCELLED, 2)


@pytest.mark.ruling("G2.stops")
async def test_what_runs_is_stopped_although_its_call_waits_to_be_repeated(client: Client, queue: str) -> None:
    """The case `stopped, rows written: record delegation_killed, 1, clock of worker -1 day` of the matrix of faults.
    The server ends such a call at once.
    """
    host = Host(script({"root": TWO}))
    answer = host.answer

    def died_once(run: JobRun) -> JobOutcome:
        if name_of(run) != "a":
            return answer(run)
        if host.names.count("a") == 1:
            raise ApplicationError("its worker died", next_retry_delay=timedelta(minutes=5))
        return outcome(run, None, state=JobState.CANCELLED, reason="stopped by order")

    host.answer = died_once
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        leg = client.get_workflow_handle(host.run("a").job_id)

        async def waits() -> bool:
            pending = (await leg.describe()).raw_description.pending_activities
            return any(each.attempt == 2 for each in pending)

        await until(waits)
        await kill(tree, immediate=True)
        await soon(ended(tree))
    job = Books(host.written).named("a")
    assert (job.state, job.reason.partition(":")[0]) == (JobState.CANCELLED, "stopped by order")
    assert host.names.count("a") == 2


@pytest.mark.ruling("G2")
async def test_twice_is_one_kill(client: Client, queue: str) -> None:
    host, _, _ = await killed(client, queue, "a", False, True)
    assert host.names == ["root", "a", "finalize"]
    assert host.cancelled == ["a"]


@pytest.mark.ruling("D3", "G2")
@pytest.mark.parametrize("immediate", [False, True])
async def test_between_two_attempts_there_is_no_third_and_no_pause(client: Client, queue: str, immediate: bool) -> None:
    host = Host(script({"root": (delegation("a", retry=2),), "a": None}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until(lambda: any(job.attempt == 2 for job in Books(host.written).jobs.values()))
        await kill(tree, immediate=immediate)
        await soon(ended(tree))
        history = await tree.fetch_history()
    assert any(each.HasField("timer_started_event_attributes") for each in history.events)
    assert not any(each.HasField("timer_fired_event_attributes") for each in history.events), "no pause was over"
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert host.names == ["root", "a", "finalize"]
    assert books.named("a").state is JobState.FAILED


@pytest.mark.ruling("G2")
async def test_in_a_nested_tree(client: Client, queue: str) -> None:
    lines: dict[str, Line | list[Line]] = {"root": (delegation("a"), delegation("z")), "a": (delegation("deep"),)}
    host, books, _ = await killed(client, queue, "deep", True, lines=lines)
    assert "deep" in host.cancelled
    assert books.named("deep").state is JobState.CANCELLED
    assert host.names[-1] == "finalize"


@pytest.mark.ruling("G2")
@pytest.mark.parametrize("held", ["root", "a"])
async def test_a_cancel_from_outside_is_a_kill_at_once(client: Client, queue: str, held: str) -> None:
    host = Host(script({"root": TWO}), held={held})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running(held)
        await tree.cancel()
        closed = await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert host.cancelled == [held]
    assert (closed.task_state, books.task.reason) == (TaskState.CANCELLED, "killed by temporal")


@pytest.mark.ruling("G2")
async def test_a_cancel_before_the_first_task(client: Client, queue: str) -> None:
    host = Host(script({"root": TWO}))
    tree = await start(client, queue)
    await tree.cancel()
    async with serving(client, queue, host):
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert closed.task_state is TaskState.CANCELLED


@pytest.mark.ruling("G2")
async def test_a_cancel_while_rows_are_written_leaves_no_job_behind(client: Client, queue: str) -> None:
    host, ordered, cancelled = Host(script({"root": TWO})), asyncio.Event(), asyncio.Event()

    async def slow(records: Records) -> None:
        if any(job.delegation_id for job in records.jobs):
            ordered.set()
            await cancelled.wait()

    host.before_write = slow
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await ordered.wait()
        await tree.cancel()
        cancelled.set()
        closed = await soon(ended(tree))
        state = (await tree.describe()).status
    Books(host.written).check(host.runs, Bounds())
    assert state is WorkflowExecutionStatus.CANCELED
    assert closed.task_state is TaskState.CANCELLED


@pytest.mark.ruling("D2", "G2", "B3")
async def test_a_terminated_child_is_a_failed_leg(client: Client, queue: str) -> None:
    legs = (delegation("a", failure_policy="continue"), delegation("b"))
    host = Host(script({"root": legs}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue, an_input())
        await host.until_running("a")
        await client.get_workflow_handle(host.run("a").job_id).terminate(reason="by hand")
        closed = await soon(ended(tree))
        host.release("a")
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert books.named("a").state is JobState.FAILED
    assert books.named("a").reason == f"terminated from outside by {client.identity}: by hand"
    assert closed.task_state is TaskState.DONE


@pytest.mark.ruling("D2")
async def test_a_cancelled_child_is_a_cancelled_leg(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a", failure_policy="continue"),)}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        await client.get_workflow_handle(host.run("a").job_id).cancel()
        await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert (books.named("a").state, host.cancelled) == (JobState.CANCELLED, ["a"])


@pytest.mark.ruling("D2")
async def test_a_child_whose_id_is_taken_is_a_failed_leg(client: Client, queue: str) -> None:
    host, first = Host(script({"root": (delegation("a", failure_policy="continue"),)})), an_input()
    await client.start_workflow("Squatter", id=f"{first.root_job_id}.1", task_queue=f"{queue}-nobody")
    async with serving(client, queue, host):
        tree = await start(client, queue, first)
        closed = await soon(ended(tree))
    books = Books(host.written)
    assert "already started" in books.named("a").reason.lower()
    assert (books.named("a").state, closed.task_state) == (JobState.FAILED, TaskState.DONE)
    await client.get_workflow_handle(f"{first.root_job_id}.1").terminate()
