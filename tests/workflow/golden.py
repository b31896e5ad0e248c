"""Histories of small trees, kept as files and replayed forever: a release that cannot go on from them breaks trees.

`python -m tests.workflow.golden` writes the shapes that have no file yet. One that has a file is never written again:
it is what trees that wait out there look like.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

from temporalio.client import Client

from tests.tree.simulator import delegation
from tests.workflow.host import Handle, Host, an_input, script, serving, start
from tests.workflow.server import serve
from tests.workflow.test_kill import kill
from tests.workflow.test_retry import blocked, reopened
from workflows.delegation_tree import TreeStart

FOLDER = Path(__file__).parent / "golden"
PAIR = (delegation("a"), delegation("b", deps=("a",)))


async def plain(client: Client, queue: str) -> Handle:
    async with serving(client, queue, Host(script({}))):
        tree = await start(client, queue)
        await tree.result()
    return tree


async def fan_out(client: Client, queue: str) -> Handle:
    async with serving(client, queue, Host(script({"root": (*PAIR, delegation("c", retry=1))}))):
        tree = await start(client, queue)
        await tree.result()
    return tree


async def replan(client: Client, queue: str) -> Handle:
    check = (delegation("check", action="review", synthesis_rule="verify"),)
    again = (delegation("check", action="review", synthesis_rule="verify", model="deep"),)
    lines = script({"root": check, "check": ["changes_requested", "approved"], "replan": again})
    async with serving(client, queue, Host(lines)):
        tree = await start(client, queue)
        await tree.result()
    return tree


async def killed(client: Client, queue: str) -> Handle:
    host = Host(script({"root": PAIR}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        await kill(tree, immediate=True)
        await tree.result()
    return tree


async def continued_as_new(client: Client, queue: str) -> Handle:
    async with serving(client, queue, Host(script({"root": PAIR}))):
        tree = await start(client, queue, TreeStart(input=an_input(), host=queue, history_limit=1))
        await tree.result()
    return tree


async def reopened_by_an_operator(client: Client, queue: str) -> Handle:
    host = Host(script({"root": PAIR, "a": ["failed", "approved"]}))
    async with serving(client, queue, host):
        await blocked(client, queue, host)
        tree = await start(client, queue, reopened(queue, host, host.run("a").job_id))
        await tree.result()
    return tree


SHAPES: dict[str, Callable[[Client, str], Awaitable[Handle]]] = {
    shape.__name__: shape for shape in (plain, fan_out, replan, killed, continued_as_new, reopened_by_an_operator)
}


async def record(client: Client, shape: str) -> None:
    """Every run of the tree's workflow, and its first leg's; without a word of the machine it ran on."""
    tree = await SHAPES[shape](client, f"golden-{uuid4().hex[:8]}")
    found = [each async for each in client.list_workflows(f"WorkflowId IN ('{tree.id}', '{tree.id}.1')")]
    for number, each in enumerate(sorted(found, key=lambda each: each.start_time)):
        history = await client.get_workflow_handle(each.id, run_id=each.run_id).fetch_history()
        text = re.sub(r'"[0-9]+@[^"]*"', '"somebody"', history.to_json())
        (FOLDER / f"{shape}-{number}.json").write_text(text)


async def main() -> None:
    async with serve() as client:
        for shape in SHAPES:
            if not list(FOLDER.glob(f"{shape}-*.json")):
                await record(client, shape)


if __name__ == "__main__":
    asyncio.run(main())
