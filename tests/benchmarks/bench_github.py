"""GitHub requests of 20 idle repositories in an hour: `python -m tests.benchmarks.bench_github`.

Runs the real desk against the tests' small GitHub, with a clock that advances when the desk waits. BENCH_MINUTES (60).
"""

import asyncio
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from activities.settings.home import Home
from activities.store.database import open_store
from tests.bridge.github.conftest import working
from tests.bridge.github.idle import REPOS, Clock, idle, twenty
from tests.github.hub import Hub

MINUTES = float(os.environ.get("BENCH_MINUTES", "60"))
SETTINGS = {
    "as set up": "",
    "with the merge gate as a check": "check = true",
    "polled once a minute": 'poll = "1m"',
}


async def count_calls(settings: str) -> str:
    with tempfile.TemporaryDirectory() as folder, Hub() as hub:
        home = Home(Path(folder)).ensure()
        open_store(home).dispose()
        hub.repo("acme/tool")
        async with working(home, hub, settings) as office:
            twenty(office)
            clock, began = Clock(), time.perf_counter()
            with patch.object(time, "time", clock):
                outcome = await idle(office, clock, MINUTES)
    free = sum(call.free for call in outcome.asked)
    most = max(Counter(call.path.split("/")[3] for call in outcome.asked if "/repos/" in call.path).values())
    return (
        f"{len(outcome.asked) - free:6} counted  {free:6} free  {most / MINUTES:5.1f} a minute and repository at most"
        f"  {outcome.turns:6} turns  {time.perf_counter() - began:5.0f} s to play"
    )


def main() -> None:
    print(f"{REPOS} idle repositories, {MINUTES:g} minutes")
    for name, settings in SETTINGS.items():
        print(f"{name:32} {asyncio.run(count_calls(settings))}", flush=True)


if __name__ == "__main__":
    main()
