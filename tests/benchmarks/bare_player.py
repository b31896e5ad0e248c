"""Bare Temporal with a process per job: its workers and its client, in one process.

The workflows are those of `bare.py`; their activity runs the program of the product's agents. Orders and answers are
lines of JSON, as in `product_player.py`.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from bridge.daemon.server import NAMESPACE
from tests.benchmarks.bare import BareChild, BareTree
from tests.benchmarks.no_op_agents import AT_ONCE, answer_of, command

TREES, AGENTS = "bare", "bare-agents"


class Player:
    """The client."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._legs = 0

    @activity.defn(name="nothing")
    async def program(self, word: str) -> str:
        """Run a job's program to its end."""
        answer = answer_of(self._folder, self._legs if word == "root" else None)
        pipe = asyncio.subprocess.PIPE
        argv = command(self._folder, answer, answer)
        process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, cwd=self._folder)
        output, _ = await process.communicate(b"reach the goal")
        json.loads(output)
        assert process.returncode == 0
        return output.decode()

    async def tree(self, legs: int) -> dict[str, Any]:
        """Time a coordinator, so many children, and a continuation."""
        self._legs = legs
        began = time.perf_counter()
        done = await self._client.execute_workflow(BareTree.run, args=[legs, AGENTS], id=_name(), task_queue=TREES)
        assert done == legs
        return {"seconds": time.perf_counter() - began}

    async def burst(self, count: int) -> dict[str, Any]:
        """Time workflows of one activity, all at once."""
        began = time.perf_counter()
        starts = (
            self._client.start_workflow(BareChild.run, AGENTS, id=_name(), task_queue=TREES) for _ in range(count)
        )
        handles = await asyncio.gather(*starts)
        started = time.perf_counter() - began
        await asyncio.gather(*(handle.result() for handle in handles))
        return {"seconds": time.perf_counter() - began, "started": started}


def _name() -> str:
    return f"bare-{uuid4().hex}"


async def main(address: str, folder: Path) -> None:
    client = await Client.connect(address, namespace=NAMESPACE)
    player = Player(client, folder)
    trees = Worker(client, task_queue=TREES, workflows=[BareTree, BareChild])
    agents = Worker(client, task_queue=AGENTS, activities=[player.program], max_concurrent_activities=AT_ONCE)
    async with trees, agents:
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            answer = await getattr(player, order.pop("do"))(**order)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
    os._exit(0)
