"""A tree as people see it: its result, its rows, its search attributes, its details in the web UI."""

import json

import pytest
from temporalio.client import Client

from tests.temporal.books import Books
from tests.temporal.host import Host, an_input, ended, play, script, serving, start
from tests.tree.simulator import delegation
from workflows.contract.models import Decision
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState
from workflows.temporal import search


async def test_a_tree_that_does_not_delegate_runs_its_root_and_closes(client: Client, queue: str) -> None:
    host = Host(script({}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        closed = await ended(tree)
        described = await tree.describe()
    assert (closed.task_state, closed.decision) == (TaskState.DONE, Decision.APPROVED)
    assert [run.job_id for run in host.runs] == [tree.id]
    assert [job.state for records in host.written for job in records.jobs] == [
        JobState.QUEUED,
        JobState.RUNNING,
        JobState.SUCCEEDED,
    ]
    assert described.typed_search_attributes[search.STATE] == "done"
    Books(host.written).check(host.runs, Bounds())


@pytest.mark.ruling("B1")
async def test_a_fan_out_runs_its_legs_as_children_and_ends_in_one_continuation(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a"), delegation("b", deps=("a",)))}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await ended(tree)
        child = await client.get_workflow_handle(f"{tree.id}.1").describe()
    assert host.names == ["root", "a", "b", "normal"]
    assert [run.job_id for run in host.runs] == [tree.id, *(f"{tree.id}.{n}" for n in (1, 2, 3))]
    assert (child.parent_id, child.typed_search_attributes[search.STATE]) == (tree.id, "succeeded")
    assert await child.static_summary() == "a · coder implement · a goal"
    assert f"service job show {tree.id}.1" in str(await child.static_details())
    Books(host.written).check(host.runs, Bounds())


async def test_the_web_ui_is_told_where_the_tree_stands(client: Client, queue: str) -> None:
    host = Host(script({"root": (delegation("a"),)}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until(lambda: JobState.RUNNING in {each.state for each in Books(host.written).of_leg("a")})
        text = str(await tree.query("__temporal_workflow_metadata"))
        host.release("a")
        await ended(tree)
    assert "jobs 1 of 64" in text
    assert ".1 a coder implement: running" in text


@pytest.mark.ruling("B3")
async def test_rows_are_written_before_what_follows_from_them_begins(client: Client, queue: str) -> None:
    host = Host(script({"root": tuple(delegation(f"l{n}") for n in range(4))}))
    known: dict[str, list[JobState]] = {}
    answer = host.answer

    def look(run: JobRun) -> JobOutcome:
        known[run.job_id] = [Books(host.written).jobs[run.job_id].state]
        return answer(run)

    host.answer = look
    await play(client, queue, host, an_input())
    assert {state for seen in known.values() for state in seen} <= {JobState.QUEUED, JobState.RUNNING}
    assert len(known) == 6


@pytest.mark.ruling("B3")
async def test_the_timeline_of_the_web_ui_names_what_each_write_tells_of(client: Client, queue: str) -> None:
    """The timeline shows names of local activities, and not their summaries."""
    async with serving(client, queue, Host(script({"root": (delegation("a"),)}))):
        tree = await start(client, queue)
        await ended(tree)
        history = await tree.fetch_history()
    markers = [
        event.marker_recorded_event_attributes
        for event in history.events
        if event.marker_recorded_event_attributes.marker_name == "core_local_activity"  # and not a patch of the course
    ]
    names = [json.loads(each.details["data"].payloads[0].data)["activity_type"] for each in markers]
    assert (names[0], names[-1]) == ("record tree_started", "record tree_ended")
    assert {"record batch_settled", "record job_ended", "record job_begun"} <= set(names)
    assert "record" not in names
