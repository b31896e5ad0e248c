"""Bare Temporal workflows of a tree's shape: the cost of equal work without the service."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow

MINUTE = timedelta(seconds=60)


@activity.defn
async def nothing(word: str) -> str:
    return word


@workflow.defn
class BareChild:
    @workflow.run
    async def run(self, queue: str) -> str:
        return await workflow.execute_activity(nothing, "leg", task_queue=queue, start_to_close_timeout=MINUTE)


@workflow.defn
class BareTree:
    """A coordinator's activity, children of one activity each, and a continuation's activity."""

    @workflow.run
    async def run(self, legs: int, queue: str) -> int:
        await workflow.execute_activity(nothing, "root", task_queue=queue, start_to_close_timeout=MINUTE)
        own = workflow.info().workflow_id
        children = [workflow.execute_child_workflow(BareChild.run, queue, id=f"{own}.{n}") for n in range(legs)]
        done = await asyncio.gather(*children)
        await workflow.execute_activity(nothing, "normal", task_queue=queue, start_to_close_timeout=MINUTE)
        return len(done)


@workflow.defn
class BareChain:
    """A chain of activities."""

    @workflow.run
    async def run(self, length: int, queue: str) -> int:
        for number in range(length):
            await workflow.execute_activity(nothing, f"s{number}", task_queue=queue, start_to_close_timeout=MINUTE)
        return length
