"""Slots of a host: no run waits for a slot that it does not need (ruling C8)."""

import asyncio
import os
import threading
from contextlib import AsyncExitStack
from contextvars import ContextVar

import pytest

from activities.host.slots import AT_ONCE, SlotNeed, Slots, in_turn
from activities.settings.model import Settings
from tests.waiting import until


def slots(jobs: int = 8, repo: int = 0, **runtimes: int) -> Slots:
    sections = {name: {"max_parallel": limit} for name, limit in runtimes.items()}
    return Slots(
        Settings.model_validate(
            {"worker": {"max_parallel_jobs": jobs, "max_parallel_per_repo": repo}, "runtimes": sections}
        )
    )


class Host:
    """Runs that hold their slots until they are released, in the order in which they got them."""

    def __init__(self, held: Slots) -> None:
        self.slots = held
        self.runs: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.let_go: dict[str, asyncio.Event] = {}

    async def wants(self, *names: str, tree: str = "t", repo: str = "r", runtime: str = "shell") -> None:
        for name in names:
            self.let_go[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(name, SlotNeed(tree, repo, runtime)))
            await asyncio.sleep(0)
        await self.settled()

    async def _run(self, name: str, need: SlotNeed) -> None:
        async with self.slots.taken(need):
            self.runs.append(name)
            await self.let_go[name].wait()

    async def ends(self, name: str) -> None:
        self.let_go[name].set()
        await self.tasks[name]
        await self.settled()

    async def settled(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    async def __aenter__(self) -> "Host":
        return self


@pytest.mark.ruling("N3")
async def test_while_the_host_is_held_nothing_begins() -> None:
    async with Host(slots()) as host:
        await host.wants("a")
        host.slots.hold("no room")
        await host.wants("b")
        assert host.runs == ["a"]
        host.slots.hold("")
        await host.settled()
        assert host.runs == ["a", "b"]


@pytest.mark.ruling("C8.limits")
async def test_a_host_runs_no_more_than_it_has_places_for() -> None:
    async with Host(slots(jobs=2)) as host:
        await host.wants("a", "b", "c")
        assert host.runs == ["a", "b"]
        await host.ends("a")
        assert host.runs == ["a", "b", "c"]


@pytest.mark.ruling("C8.limits")
@pytest.mark.parametrize("limits", [slots(jobs=3, repo=1), slots(jobs=3, runtime_a=1)], ids=["repo", "runtime"])
async def test_one_at_its_limit_delays_no_other(limits: Slots) -> None:
    async with Host(limits) as host:
        await host.wants("a", "b", "c", repo="busy", runtime="runtime_a")
        await host.wants("x", "y", repo="calm", runtime="shell")
        assert host.runs[:2] == ["a", "x"]
        assert set(host.runs) <= {"a", "x", "y"}
        await host.ends("a")
        assert "b" in host.runs


@pytest.mark.ruling("C8")
async def test_places_go_to_the_tree_that_has_the_fewest() -> None:
    async with Host(slots(jobs=2)) as host:
        await host.wants("w1", "w2", "w3", "w4", tree="wide")
        await host.wants("n1", "n2", tree="narrow")
        await host.ends("w1")
        await host.ends("w2")
        assert host.runs[2:] == ["n1", "w3"]


async def test_who_stops_waiting_takes_nothing_along() -> None:
    async with Host(slots(jobs=1)) as host:
        await host.wants("a", "b", "c")
        host.tasks["b"].cancel()
        await host.settled()
        await host.ends("a")
        assert host.runs == ["a", "c"]


async def test_a_run_cancelled_as_it_gets_its_slot_passes_it_on() -> None:
    async with Host(slots(jobs=1)) as host:
        await host.wants("a", "b", "c")
        host.let_go["a"].set()
        await asyncio.sleep(0)
        host.tasks["b"].cancel()
        await host.settled()
        assert host.runs in (["a", "c"], ["a", "b", "c"])
        assert "c" in host.runs


@pytest.mark.ruling("engine:runs")
async def test_a_run_that_goes_on_already_does_not_wait_and_counts() -> None:
    limited = slots(jobs=1)
    async with AsyncExitStack() as held:
        for _ in range(3):
            await held.enter_async_context(limited.taken(SlotNeed("t", "r", "shell"), runs_already=True))
        async with Host(limited) as host:
            await host.wants("a")
            assert host.runs == []
            await held.aclose()
            await host.settled()
            assert host.runs == ["a"]


pytestmark = pytest.mark.ruling("engine:runs")
NAME: ContextVar[str] = ContextVar("NAME")


async def test_what_waits_elsewhere_keeps_no_attempt_from_beginning() -> None:
    goes_on = threading.Event()
    everywhere = [asyncio.create_task(asyncio.to_thread(goes_on.wait)) for _ in range((os.cpu_count() or 1) + 40)]
    try:
        async with asyncio.timeout(60):
            assert await in_turn(lambda word: word, "begun") == "begun"
    finally:
        goes_on.set()
        await asyncio.gather(*everywhere)


async def test_few_functions_run_at_once_and_all_get_their_turn() -> None:
    goes_on, inside = threading.Event(), []

    def turn(number: int) -> int:
        inside.append(number)
        goes_on.wait()
        return number

    tasks = [asyncio.create_task(in_turn(turn, number)) for number in range(3 * AT_ONCE)]
    try:
        await until(lambda: len(inside) >= AT_ONCE)
        await asyncio.sleep(0.05)
        assert len(inside) == AT_ONCE
    finally:
        goes_on.set()
    assert await asyncio.gather(*tasks) == list(range(3 * AT_ONCE))


async def test_a_turn_knows_the_call_that_it_is_part_of() -> None:
    """Code in a thread needs the activity's context."""
    NAME.set("this call")
    assert await in_turn(NAME.get) == "this call"
