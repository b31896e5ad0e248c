"""Attempts have a few threads of their own, which nothing else uses."""

import asyncio
import os
import threading
from contextvars import ContextVar

import pytest

from activities.host import turns
from activities.host.turns import in_turn
from tests.waiting import until

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

    tasks = [asyncio.create_task(in_turn(turn, number)) for number in range(3 * turns.AT_ONCE)]
    try:
        await until(lambda: len(inside) >= turns.AT_ONCE)
        await asyncio.sleep(0.05)
        assert len(inside) == turns.AT_ONCE
    finally:
        goes_on.set()
    assert await asyncio.gather(*tasks) == list(range(3 * turns.AT_ONCE))


async def test_a_turn_knows_the_call_that_it_is_part_of() -> None:
    """Code in a thread needs the activity's context."""
    NAME.set("this call")
    assert await in_turn(NAME.get) == "this call"
