"""Cost of seals: trees with and without them, in turns, on one server: `python -m tests.benchmarks.bench_seals`.

Also with encryption. Times are medians of the ratios of adjacent runs; bytes are those of all histories of a tree.
Prints figures for people; asserts nothing.
"""

import asyncio
import os
import statistics
import sys
import tempfile
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter

from activities.settings.home import Home
from activities.settings.model import Settings, Temporal
from activities.temporal import data_converter
from tests.benchmarks.bench_tree import Play, ours, server, time_play

ROUNDS = {4: 21, 16: 11}


async def size_of(client: Client, tree: str, legs: int) -> int:
    """Return the histories' bytes of the root and all its children."""
    names = [tree, *(f"{tree}.{number}" for number in range(1, legs + 1))]
    histories = [await client.get_workflow_handle(name).fetch_history() for name in names]
    return sum(event.ByteSize() for history in histories for event in history.events)


async def compare(client: Client, what: str, one: Play, other: Play, legs: int) -> str:
    """Compare in turns, so that other load affects both sides."""
    times: list[tuple[float, float]] = []
    last = ["", ""]
    for round_ in range(ROUNDS[legs]):
        taken = [0.0, 0.0]
        for side in (0, 1) if round_ % 2 else (1, 0):
            taken[side], last[side] = await time_play((one, other)[side], legs)
        times.append((taken[0], taken[1]))
    left, right = (statistics.median(pair[side] for pair in times) for side in (0, 1))
    ratio = statistics.median(a / b for a, b in times)
    sizes = [await size_of(client, name, legs) for name in last]
    return (
        f"{legs:3} legs, {what}: {left * 1000:6.0f} ms / {right * 1000:6.0f} ms = {ratios(ratio)}   "
        f"histories: {sizes[0]:,} / {sizes[1]:,} bytes = {ratios(sizes[0] / sizes[1])}"
    )


def ratios(value: float) -> str:
    return f"{value:5.3f}"


def with_converter(client: Client, converter: DataConverter) -> Client:
    return Client(**(client.config() | {"data_converter": converter}))


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).ensure()
        hiding = data_converter(home, Settings(temporal=Temporal(encrypt=True)))
        async with server(home) as sealing:
            without, hidden = (with_converter(sealing, converter) for converter in (pydantic_data_converter, hiding))
            async with (
                ours(sealing, home, "sealed") as sealed,
                ours(without, home, "plain") as plain,
                ours(hidden, home, "encrypted") as encrypted,
            ):
                for legs in ROUNDS:
                    print(await compare(sealing, "sealed / plain   ", sealed, plain, legs), flush=True)
                    print(await compare(sealing, "encrypted / plain", encrypted, plain, legs), flush=True)
        print(f"load average: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.flush()
    os._exit(0)
