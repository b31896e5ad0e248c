"""A tree outlives its runs and its workers: continue-as-new, restarts, no cache at all."""

from datetime import timedelta

import pytest
from temporalio.client import Client
from temporalio.testing import TimeSkipper

from tests.temporal.books import Books
from tests.temporal.host import Host, Line, an_input, ended, play, script, serving, start
from tests.temporal.orders import kill, latest, runs_of
from tests.tree.simulator import delegation
from tests.waiting import soon
from workflows.model.settings import Bounds
from workflows.model.states import JobState, TaskState
from workflows.temporal import search
from workflows.temporal.messages import TreeStart

pytestmark = pytest.mark.long

TASK_TIMEOUT = timedelta(seconds=1)

GENERATIONS: dict[str, Line | list[Line]] = {
    "root": (delegation("a"), delegation("b", deps=("a",))),
    "normal": [tuple(delegation(f"{name}{n}") for name in "cd") for n in range(3)] + ["approved"],
}


def short(queue: str, limit: int = 1) -> TreeStart:
    """Return a tree that continues as new wherever it can."""
    return TreeStart(input=an_input(), host=queue, history_limit=limit)


@pytest.mark.ruling("B1", "engine:restores")
async def test_a_tree_of_many_runs_is_one_tree(client: Client, queue: str) -> None:
    host = Host(script(GENERATIONS))
    async with serving(client, queue, host):
        tree = await start(client, queue, short(queue))
        closed = await ended(tree)
        described = await client.get_workflow_handle(tree.id).describe()
        generations = await runs_of(client, tree)
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert generations >= 6
    assert (closed.task_state, closed.jobs) == (TaskState.DONE, 13)
    assert books.states() == {JobState.SUCCEEDED: 13}
    assert described.typed_search_attributes[search.REPO] == "repo"
    assert described.typed_search_attributes[search.STATE] == "done"


@pytest.mark.ruling("G2")
async def test_a_kill_reaches_whichever_run_it_finds(client: Client, queue: str) -> None:
    host = Host(script(GENERATIONS), held={"c1"})
    async with serving(client, queue, host):
        tree = await start(client, queue, short(queue))
        await host.until_running("c1")
        await kill(latest(client, tree), immediate=True)
        closed = await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert (closed.task_state, host.names[-1]) == (TaskState.CANCELLED, "finalize")


@pytest.mark.parametrize("order", range(4))
async def test_kills_while_it_continues_as_new_are_not_lost(client: Client, queue: str, order: int) -> None:
    host = Host(script(GENERATIONS))
    async with serving(client, queue, host):
        tree = await start(client, queue, short(queue))
        await host.until(lambda: len(host.runs) > 2 * order)
        await kill(latest(client, tree))
        closed = await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    assert books.kinds().count("delegation_killed") == 1
    assert closed.task_state is TaskState.CANCELLED


@pytest.mark.ruling("D3")
async def test_it_does_not_continue_as_new_while_a_pause_or_a_job_is_pending(client: Client, queue: str) -> None:
    lines: dict[str, Line | list[Line]] = {"root": (delegation("a", retry=1), delegation("b")), "a": [None, "approved"]}
    host = Host(script(lines))
    async with serving(client, queue, host):
        tree = await start(TimeSkipper(client).client, queue, short(queue))
        closed = await ended(tree)
        runs = await runs_of(client, tree)
    Books(host.written).check(host.runs, Bounds())
    assert (host.names[-2:], closed.task_state) == (["a", "normal"], TaskState.DONE)
    assert runs == 5, "before the root, the batch, the second attempt and the continuation"


@pytest.mark.parametrize("restart_after", ["root", "a", "normal"])
async def test_a_new_worker_goes_on_where_the_old_one_stood(client: Client, queue: str, restart_after: str) -> None:
    host = Host(script(GENERATIONS), held={restart_after})
    async with serving(client, queue, host):
        tree = await start(client, queue, task_timeout=TASK_TIMEOUT)
        await host.until_running(restart_after)
        host.release(restart_after)
        await host.until(lambda: restart_after in host.ended)
    async with serving(client, queue, host):
        closed = await soon(ended(tree))
    Books(host.written).check(host.runs, Bounds())
    assert (closed.task_state, closed.jobs) == (TaskState.DONE, 13)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(GENERATIONS, id="generations", marks=pytest.mark.long),
        pytest.param({"root": tuple(delegation(f"l{n}") for n in range(16))}, id="fan-out"),
        pytest.param({"root": (delegation("a"), delegation("b")), "a": "failed"}, id="blocked", marks=pytest.mark.long),
        pytest.param({"root": tuple(delegation(f"l{n}") for n in range(17))}, id="refused"),
    ],
)
async def test_a_worker_that_remembers_nothing_plays_the_same_tree(
    client: Client, queue: str, lines: dict[str, Line | list[Line]]
) -> None:
    """Every workflow task replays the whole history, so nothing is hidden by a cache."""
    host = Host(script(lines))
    async with serving(client, queue, host, max_cached_workflows=0):
        closed = await ended(await start(client, queue, task_timeout=TASK_TIMEOUT))
    forgetful = Books(host.written)
    forgetful.check(host.runs, Bounds())
    usual = Host(script(lines))
    assert (await play(client, queue, usual)).jobs == closed.jobs
    assert Books(usual.written).states() == forgetful.states()
    assert sorted(usual.names) == sorted(host.names)
