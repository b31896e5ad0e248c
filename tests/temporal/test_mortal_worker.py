"""kill -9 at every kind of moment: before and after rows are written, before and after an agent acts and reports."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from temporalio.client import Client

from activities.settings.home import Home
from activities.store import event_rows, job_rows, round_rows, tree_rows
from activities.store.database import open_store
from tests import keys
from tests.depth import cases
from tests.temporal.books import Books
from tests.temporal.deaths import SEED, TASK_TIMEOUT, worker
from tests.temporal.host import Handle, an_input, ended, start
from tests.temporal.mortal_worker import effects
from tests.temporal.orders import kill
from tests.temporal.people import order, send
from tests.waiting import soon
from workflows.model.long_texts import Text
from workflows.model.rounds import RoundKind
from workflows.model.rows import Records
from workflows.model.settings import Bounds
from workflows.model.states import TaskState
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import TreeStart
from workflows.tree.commands import CloseTree
from workflows.tree.events import RetryRequested

SHAPES = ("plain", "wide", "deep", "blocked", "wide", "deep")
MOMENTS = cases(3, 7)
PATIENCE = timedelta(minutes=5)


async def a_tree(client: Client, queue: str, shape: str) -> Handle:
    first = TreeStart(input=an_input(prompt=Text(inline=shape)), host=queue, history_limit=30)
    return await start(client, queue, first, task_timeout=TASK_TIMEOUT, patience=PATIENCE)


def books(store: Engine, root: str) -> Books:
    """Return the stored rows of a tree."""
    rows = Records(
        task=job_rows.task_of(store, root),
        jobs=tuple(job_rows.tree(store, root)),
        events=tuple(event_rows.of_tree(store, root)),
        rounds=tuple(round_rows.of_tree(store, root)),
    )
    return Books([rows])


def begun(home: Home, root: str) -> Counter[tuple[str, int]]:
    rows = effects(home).execute("SELECT job, attempt FROM began WHERE job = ? OR job LIKE ?", (root, f"{root}.%"))
    return Counter(rows.fetchall())


@pytest.mark.ruling("engine:restores", "G1", "D1")
async def test_whenever_the_worker_dies_nothing_is_lost_and_nothing_happens_twice(
    client: Client, queue: str, tmp_path: Path
) -> None:
    home, chance = keys.give(Home(tmp_path / "home").ensure()), random.Random(SEED)
    store = open_store(home)
    trees = [await a_tree(client, queue, shape) for shape in SHAPES]
    for death in range(MOMENTS):
        async with worker(client, queue, home, chance.randint(2, 14)) as process:
            assert await soon(process.wait()) == -9
        if death == MOMENTS // 2:
            await kill(trees[-1])
    async with worker(client, queue, home, 0):
        closed = await soon(asyncio.gather(*(ended(tree) for tree in trees)))
        blocked = trees[SHAPES.index("blocked")]
        again = await reopen(client, queue, store, blocked)
        states = [await tree.query(DelegationTree.state) for tree in trees]
    assert again.task_state is TaskState.DONE
    assert [end.task_state for end in closed[:4]] == [TaskState.DONE] * 3 + [TaskState.BLOCKED]
    for tree, state in zip(trees, states, strict=True):
        tree_books, ran = books(store, tree.id), begun(home, tree.id)
        tree_books.check([], Bounds())
        assert set(ran.values()) == {1} or (tree is trees[-1] and not ran), "every attempt acted once, if it ever began"
        attempted = {(job.job_id, job.attempt) for job in tree_books.jobs.values() if job.started_at is not None}
        assert attempted <= set(ran)
        assert set(tree_books.jobs) == set(state.jobs), "no row of a job that never was"


@pytest.mark.ruling("engine:restores", "F3", "F4")
@pytest.mark.long
async def test_whenever_the_worker_dies_what_people_said_counts_once(
    client: Client, queue: str, tmp_path: Path
) -> None:
    """They answer as soon as they are asked, whether a worker is alive or not."""
    home, chance = keys.give(Home(tmp_path / "home").ensure()), random.Random(SEED)
    store = open_store(home)
    trees = {tree.id: tree for tree in [await a_tree(client, queue, "asks") for _ in range(4)]}
    answering = asyncio.create_task(answer_everything(store, trees))
    for _ in range(MOMENTS - 2):
        async with worker(client, queue, home, chance.randint(2, 12)) as process:
            assert await soon(process.wait()) == -9
    async with worker(client, queue, home, 0):
        closed = await soon(asyncio.gather(*(ended(tree) for tree in trees.values())))
    answering.cancel()
    assert [end.task_state for end in closed] == [TaskState.DONE] * len(trees)
    for root in trees:
        tree_books, ran = books(store, root), begun(home, root)
        tree_books.check([], Bounds())
        assert set(ran.values()) == {1}, "every attempt acted once"
        assert len(ran) == 5, "the root, a leg twice, a leg, the continuation"
        ends = sorted(str(each.end) for each in round_rows.of_tree(store, root))
        assert ends == ["answered", "retried"]
        assert tree_books.kinds().count("resume_accepted") == 2


async def answer_everything(store: Engine, trees: Mapping[str, Handle]) -> None:
    """Answer like a person who sends everything twice by mistake, and never waits for a result."""
    done: set[str] = set()
    while True:
        for row in round_rows.open_rounds(store):
            if row.round_id not in done:
                verb = "answer" if row.kind is RoundKind.ASK else "retry"
                resume = order(row.coordinator_id, verb, "red", request_id=row.round_id, round=row.number)
                await send(trees[row.root_job_id], resume)
                await send(trees[row.root_job_id], resume)
                done.add(row.round_id)
        await asyncio.sleep(0.05)


async def reopen(client: Client, queue: str, store: Engine, tree: Handle) -> CloseTree:
    row = tree_rows.get(store, tree.id)
    assert row is not None
    assert row.state is not None
    state = row.state
    bad = next(job.job_id for job in state.jobs.values() if job.delegation_id == "bad")
    order = RetryRequested(now=time.time(), actor="ann", job_id=bad)
    first = TreeStart(input=state.input, host=queue, state=state, retry=order)
    return await ended(await start(client, queue, first))
