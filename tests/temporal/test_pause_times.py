"""The duration of a pause: a day of server time, its reminders, its end, and the clocks it stops (F8)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from temporalio.client import Client
from temporalio.testing import TimeSkipper, TimeSkippingConfig

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, Line, an_input, ended, script, serving, start
from tests.temporal.orders import latest, runs_of
from tests.temporal.people import asking, human, order, say, send, waits
from tests.tree.simulator import delegation
from tests.waiting import soon
from workflows.model.rounds import RoundEnd
from workflows.model.rows import RoundRecord
from workflows.model.settings import Bounds, TreeSettings
from workflows.model.states import TaskState
from workflows.temporal import search
from workflows.temporal.messages import TreeStart
from workflows.tree.commands import CloseTree

pytestmark = pytest.mark.long

WEEK = timedelta(days=7)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LEGS = (delegation("a"), delegation("b"))


@asynccontextmanager
async def paused(client: Client, queue: str, host: Host) -> AsyncIterator[tuple[TimeSkipper, Handle, RoundRecord]]:
    """Start a tree that waits for a person, and whose time the test controls."""
    skipper = TimeSkipper(client, config=TimeSkippingConfig(enabled=False))
    async with serving(client, queue, host):
        tree = await start(skipper.client, queue, patience=WEEK)
        yield skipper, tree, await waits(host)


async def over(tree: Handle, host: Host) -> tuple[CloseTree, Books]:
    closed = await soon(ended(tree))
    books = Books(host.written)
    books.check(host.runs, Bounds())
    return closed, books


@pytest.mark.ruling("F8", "spec:limits.escalation_ttl", "spec:states.escalation_ttl")
async def test_a_pause_lasts_a_day_with_two_reminders_and_ends_in_the_finalize(client: Client, queue: str) -> None:
    host = Host(asking({"root": LEGS}, "root"))
    async with paused(client, queue, host) as (skipper, tree, shown):
        assert await skipper.fast_forward(tree, 11 * HOUR)
        assert "round_reminder" not in Books(host.written).kinds()
        assert await skipper.fast_forward(tree, 2 * HOUR)
        await host.until(lambda: Books(host.written).kinds().count("round_reminder") == 1)
        assert await skipper.fast_forward(tree, 10 * HOUR + 59 * MINUTE)
        await host.until(lambda: Books(host.written).kinds().count("round_reminder") == 2)
        assert [each.round_id for each in Books(host.written).open()] == [shown.round_id]
        assert host.names == ["root"]
        assert not await skipper.fast_forward(tree, 2 * MINUTE), "it ended before they were over"
        closed, books = await over(tree, host)
    assert shown.expires_at - shown.opened_at == 86_400
    reminded = [event.at - shown.opened_at for event in books.events.values() if event.kind == "round_reminder"]
    assert [round(each / 864) for each in reminded] == [50, 90], "percent of a day"
    assert all(each >= share * 864 for each, share in zip(reminded, (50, 90), strict=True)), "never early"
    assert books.rounds[shown.round_id].end is RoundEnd.EXPIRED
    assert host.names == ["root", "finalize"]
    assert "nobody answered round 1" in closed.reason
    assert "within 1d" in closed.reason


@pytest.mark.ruling("F4", "F8")
async def test_extend_moves_the_end_and_the_reminders_come_again(client: Client, queue: str) -> None:
    host = Host(asking({"root": LEGS}, "root"))
    async with paused(client, queue, host) as (skipper, tree, shown):
        assert await skipper.fast_forward(tree, 23 * HOUR)
        assert (await say(tree, order(tree.id, "extend", "48h"))).startswith("extend is accepted\n  longer by 48h\n")
        assert await skipper.fast_forward(tree, 48 * HOUR + 59 * MINUTE)
        assert Books(host.written).open()[0].expires_at - shown.expires_at == 48 * 3600
        assert Books(host.written).kinds().count("round_reminder") == 4
        assert not await skipper.fast_forward(tree, 2 * MINUTE)
        closed, _ = await over(tree, host)
    assert "within 3d" in closed.reason


@pytest.mark.ruling("F8", "C4", "spec:limits.wall_clock")
async def test_the_time_of_a_pause_is_nobodys(client: Client, queue: str) -> None:
    """A pause of twenty hours in a tree with a budget of two."""
    host = Host(asking({"answered": LEGS}, "root"))
    async with paused(client, queue, host) as (skipper, tree, _):
        assert await skipper.fast_forward(tree, 20 * HOUR)
        await say(tree, order(tree.id, "answer", "red"))
        closed, books = await over(tree, host)
    assert closed.task_state is TaskState.DONE
    assert host.names == ["root", "answered", *host.names[2:4], "normal"]
    assert "delegation_walltime_exceeded" not in books.kinds()


@pytest.mark.ruling("F8", "C4", "spec:limits.wall_clock")
async def test_the_time_that_is_no_pause_still_counts(client: Client, queue: str) -> None:
    """A budget of two hours, and twenty hours without a pause: the check above can fail."""
    host = Host(asking({"root": LEGS}, "root"))
    fields = an_input().model_copy(update={"created_at": time.time() - 3 * 3600})
    async with serving(client, queue, host):
        tree = await start(client, queue, fields)
        await waits(host)
        host.answer = asking({"answered": LEGS})
        await say(tree, order(tree.id, "answer", "red"))
        _, books = await over(tree, host)
    assert books.kinds().count("delegation_walltime_exceeded") == 1


def short_ttl(seconds: float) -> TreeSettings:
    return TreeSettings(escalation_ttl_seconds=seconds)


@pytest.mark.ruling("F8", "spec:limits.escalation_ttl")
async def test_a_short_pause_by_the_clock_on_the_wall(client: Client, queue: str) -> None:
    host, began = Host(asking({"root": LEGS}, "root")), time.monotonic()
    async with serving(client, queue, host):
        tree = await start(client, queue, an_input().model_copy(update={"settings": short_ttl(4)}))
        _, books = await over(tree, host)
    assert time.monotonic() - began >= 4
    assert "round_reminder" in books.kinds(), "the second is not said when it comes after the end"
    assert [each.end for each in books.rounds.values()] == [RoundEnd.EXPIRED]


@pytest.mark.ruling("F8", "engine:restores")
async def test_it_does_not_continue_as_new_in_a_pause_and_does_after_it(client: Client, queue: str) -> None:
    """A run that may continue at every step does so before and after the pause; the list of paused trees follows."""
    host = Host(asking({"root": LEGS}, "root"), held={"finalize"})
    skipper = TimeSkipper(client, config=TimeSkippingConfig(enabled=False))
    async with serving(client, queue, host):
        first = TreeStart(input=an_input(), host=queue, history_limit=1)
        tree = latest(client, await start(skipper.client, queue, first, patience=WEEK))
        await waits(host)
        run = (await tree.describe()).run_id
        assert await skipper.fast_forward(tree, 13 * HOUR)
        await send(tree, order(tree.id, "extend", "1h"))
        await host.until(lambda: "round_extended" in Books(host.written).kinds())
        assert await skipper.fast_forward(tree, 11 * HOUR)
        described = await tree.describe()
        assert described.run_id == run, "one run for as long as the pause lasts"
        assert described.typed_search_attributes[search.ATTENTION] == "ask"
        last = asyncio.create_task(skipper.fast_forward(tree, 2 * HOUR))
        await host.until_running("finalize")
        described = await tree.describe()
        assert described.run_id != run
        assert described.typed_search_attributes.get(search.ATTENTION) is None
        host.release("finalize")
        _, books = await over(tree, host)
        assert not await last, "it ended before they were over"
    assert [each.end for each in books.rounds.values()] == [RoundEnd.EXPIRED]
    assert await runs_of(client, tree) == 3, "before the root, before the finalize"


@pytest.mark.ruling("F3", "F4", "engine:restores")
@pytest.mark.parametrize("verb", ["answer", "continue", "abort", "retry"])
async def test_what_a_person_says_is_carried_over_into_the_next_run(client: Client, queue: str, verb: str) -> None:
    """Sent by update to a tree that continues as new wherever it can: one result, and nothing is lost."""
    asks = verb == "answer"
    lines: dict[str, Line | list[Line]] = {"root": (human("bad"), delegation("good")), "bad": ["failed", "approved"]}
    host = Host(asking({"answered": LEGS}, "root") if asks else script(lines))
    async with serving(client, queue, host):
        tree = latest(client, await start(client, queue, TreeStart(input=an_input(), host=queue, history_limit=1)))
        await waits(host)
        assert (await say(tree, order(tree.id, verb, "red" if asks else ""))).startswith(f"{verb} is accepted\n")
        closed, books = await over(tree, host)
        runs = await runs_of(client, tree)
    ends = {"answer": "answered", "continue": "continued", "abort": "aborted", "retry": "retried"}
    assert [each.end for each in books.rounds.values()] == [ends[verb]]
    assert closed.task_state is TaskState.DONE
    after = {"answer": ["answered", "a", "b", "normal"], "retry": ["bad", "normal"], "continue": ["normal"]}
    assert sorted(host.names[1 if asks else 3 :]) == sorted(after.get(verb, ["finalize"]))
    assert runs >= 3
