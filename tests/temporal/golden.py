"""Histories of small trees of each release, kept as files and replayed forever: a release that cannot continue them
breaks trees.

`python -m tests.temporal.golden` writes the shapes that have no file of this release yet. Existing files are never
overwritten: running trees of that release look like them.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio.client import Client, WorkflowHandle
from temporalio.testing import TimeSkipper, TimeSkippingConfig

from activities.store.registry.host_rows import release
from tests.temporal import golden_pipelines
from tests.temporal.books import Books
from tests.temporal.github_office import Office, at_desk
from tests.temporal.golden_pipelines import quiet
from tests.temporal.host import Handle, Host, Script, an_input, ended, script, serving, start
from tests.temporal.orders import blocked, kill, latest, reopened, reset, steps, taken_up
from tests.temporal.people import asking, human, order, say, waits
from tests.temporal.server import PLAIN, serve
from tests.tree.simulator import delegation
from tests.waiting import soon, until
from workflows.policy.moving import Move
from workflows.temporal.delegation import DelegatedAttempt
from workflows.temporal.github_desk import GithubDesk, Push, Turn
from workflows.temporal.messages import TreeStart

FOLDER = Path(__file__).parent / "golden"
"""It has a folder for each release."""
PAIR = (delegation("a"), delegation("b", deps=("a",)))


async def plain(client: Client, queue: str) -> Handle:
    async with serving(client, queue, Host(script({}))):
        tree = await start(client, queue)
        await ended(tree)
    return tree


async def fan_out(client: Client, queue: str) -> Handle:
    async with serving(client, queue, Host(script({"root": (*PAIR, delegation("c", retry=1))}))):
        tree = await start(client, queue)
        await ended(tree)
    return tree


async def replan(client: Client, queue: str) -> Handle:
    check = (delegation("check", action="review", synthesis_rule="verify"),)
    again = (delegation("check", action="review", synthesis_rule="verify", model="deep"),)
    lines = script({"root": check, "check": ["changes_requested", "approved"], "replan": again})
    async with serving(client, queue, Host(lines)):
        tree = await start(client, queue)
        await ended(tree)
    return tree


async def killed(client: Client, queue: str) -> Handle:
    host = Host(script({"root": PAIR}), held={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        await kill(tree, immediate=True)
        await ended(tree)
    return tree


async def taken_back(client: Client, queue: str) -> Handle:
    """A tree that is killed when one leg has begun and another waits for a slot."""
    host = Host(script({"root": (delegation("a"), delegation("b"))}), held={"b"}, waiting={"a"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("b")
        await kill(tree)
        await host.until(lambda: "back" in host.claims.values())
        host.release("b")
        await ended(tree)
    return tree


async def paused_while_legs_wait(client: Client, queue: str) -> Handle:
    """A tree that pauses while one leg has begun unheard and another waits for a slot, and is killed at once later."""
    legs = (delegation("b"), delegation("asks"), delegation("c"))
    host = Host(asking({"root": legs}, "asks"), held={"b", "asks", "c"}, waiting={"c"}, reports=False)
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("b", "asks")
        host.release("asks")
        await host.until(lambda: "back" in host.claims.values())
        host.waiting.clear()
        await say(tree, order(tree.id, "answer", "q-asks: red"))
        await host.until_running("c")
        await kill(tree, immediate=True)
        await ended(tree)
    return tree


async def reset_while_a_leg_runs(client: Client, queue: str) -> Handle:
    """Taken up, the first leg ends by itself; the second, begun by the new run, is stopped."""
    host = Host(script({"root": PAIR}), held={"a", "b"})
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until_running("a")
        await reset(client, tree, (await steps(client, tree))[0])
        await taken_up(client, host.run("a").job_id)
        host.release("a")
        await host.until_running("b")
        await kill(latest(client, tree), immediate=True)
        await ended(latest(client, tree))
    return tree


async def continued_as_new(client: Client, queue: str) -> Handle:
    async with serving(client, queue, Host(script({"root": PAIR}))):
        tree = await start(client, queue, TreeStart(input=an_input(), host=queue, history_limit=1))
        await ended(tree)
    return tree


async def reopened_by_an_operator(client: Client, queue: str) -> Handle:
    host = Host(script({"root": PAIR, "a": ["failed", "approved"]}))
    async with serving(client, queue, host):
        await blocked(client, queue, host)
        tree = await start(client, queue, reopened(queue, host, host.run("a").job_id))
        await ended(tree)
    return tree


async def _paused(client: Client, queue: str, answer: Script, until: str = "round_opened") -> Handle:
    """A tree that still waits for a person."""
    host = Host(answer)
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await host.until(lambda: until in Books(host.written).kinds())
        await host.until(lambda: len(host.ended) == len(host.runs))
        await quiet(tree)
    return tree


async def asks(client: Client, queue: str) -> Handle:
    return await _paused(client, queue, asking({"root": PAIR}, "root"))


async def failure(client: Client, queue: str) -> Handle:
    return await _paused(client, queue, script({"root": (human("a"), delegation("b")), "a": "failed"}))


async def joined(client: Client, queue: str) -> Handle:
    legs = (delegation("a"), delegation("b"))
    return await _paused(client, queue, asking({"root": legs}, "a", "b"), until="round_joined")


async def nested(client: Client, queue: str) -> Handle:
    legs = (delegation("deep", agent="lead"), delegation("after", deps=("deep",)))
    return await _paused(client, queue, asking({"root": legs, "deep": (delegation("inner"),)}, "inner"))


async def near_its_end(client: Client, queue: str) -> Handle:
    """A pause with both reminders sent, an hour before its end."""
    host, skipper = Host(asking({"root": PAIR}, "root")), TimeSkipper(client, config=TimeSkippingConfig(enabled=False))
    async with serving(client, queue, host):
        tree = await start(skipper.client, queue, patience=timedelta(days=7))
        await waits(host)
        await skipper.fast_forward(tree, timedelta(hours=23))
        await host.until(lambda: Books(host.written).kinds().count("round_reminder") == 2)
        await quiet(tree)
    return tree


async def paused_after_continuing(client: Client, queue: str) -> Handle:
    host = Host(asking({"root": PAIR}, "normal"))
    async with serving(client, queue, host):
        tree = await start(client, queue, TreeStart(input=an_input(), host=queue, history_limit=1))
        await waits(host)
        await quiet(latest(client, tree))
    return tree


async def answered(client: Client, queue: str) -> Handle:
    """A tree with a failure that was retried and then approved, and that is over."""
    host = Host(script({"root": (human("a"),), "a": "failed"}))
    async with serving(client, queue, host):
        tree = await start(client, queue)
        await waits(host)
        await say(tree, order(tree.id, "retry", "again"))
        await waits(host, number=2)
        await say(tree, order(tree.id, "continue"))
        await ended(tree)
    return tree


async def placed(client: Client, queue: str) -> Handle:
    """A tree of a fleet: no host can run its leg at first, and the leg moves when its host is lost."""
    host = Host(script({"root": (delegation("a"),)}), held={"a"}, placements=["", queue])
    async with serving(client, queue, host):
        tree = await start(client, queue, TreeStart(input=an_input(), host=queue, placed=True))
        await host.until(lambda: "a" in host.names)
        lost = Move(job_id=host.run("a").job_id, attempt=1, host=queue, reason="its host is lost", last_seen=1.0)
        await client.get_workflow_handle(lost.job_id).signal(DelegatedAttempt.move, lost)
        await host.until(lambda: host.names.count("a") == 2)
        host.held.clear()
        await ended(tree)
    return tree


async def github_desk(client: Client, queue: str) -> WorkflowHandle[GithubDesk, str]:
    """A write, a push that fails, a wait of half an hour that a ring ends, and nothing more to do."""
    pushes = (Push(fact_id="root-publish", host="here"),)
    turns: list[Turn | Exception] = [Turn(says="wrote", again=0.1), Turn(says="pushes", pushes=pushes, again=1800.0)]
    office = Office([*turns, Turn(says="nothing to do")])
    async with at_desk(client, queue, office) as desk:
        await until(lambda: office.pushed)
        await desk.signal(GithubDesk.ring)
        await soon(desk.result())
    return desk


_WHOLE = (
    plain,
    fan_out,
    replan,
    killed,
    taken_back,
    paused_while_legs_wait,
    reset_while_a_leg_runs,
    continued_as_new,
    reopened_by_an_operator,
    answered,
    placed,
)
_PAUSED = (asks, failure, joined, nested, near_its_end, paused_after_continuing)
_TREES: dict[str, Callable[[Client, str], Awaitable[Handle]]] = {shape.__name__: shape for shape in _WHOLE + _PAUSED}
_Recorded = Callable[[Client, str], Awaitable[WorkflowHandle[Any, Any]]]
SHAPES: dict[str, _Recorded] = {**_TREES, **golden_pipelines.SHAPES, "github_desk": github_desk}


async def record(client: Client, shape: str, folder: Path) -> None:
    """Record every run of the workflow, and its first leg's or stage's, without names of the machine."""
    tree = await SHAPES[shape](client, f"golden-{uuid4().hex[:8]}")
    wanted = f"WorkflowId IN ('{tree.id}', '{tree.id}.1')"
    if shape in golden_pipelines.SHAPES:
        wanted += f" OR ParentWorkflowId = '{tree.id}'"
    runs = [run async for run in client.list_workflows(wanted)]
    for number, run in enumerate(sorted(runs, key=lambda run: run.start_time)):
        history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        text = re.sub(r'"[0-9]+@[^"]*"', '"somebody"', history.to_json())
        text = re.sub(r'"stackTrace": *"(?:[^"\\]|\\.)*"', '"stackTrace": ""', text)
        events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in json.loads(text)["events"])
        (folder / f"{shape}-{number}.json").write_text(f'{{"events": [\n{events}\n]}}\n')


async def main() -> None:
    folder = FOLDER / release()
    folder.mkdir(exist_ok=True)
    async with serve(PLAIN) as client:
        for shape in SHAPES:
            if not list(folder.glob(f"{shape}-*.json")):
                await record(client, shape, folder)


if __name__ == "__main__":
    asyncio.run(main())
