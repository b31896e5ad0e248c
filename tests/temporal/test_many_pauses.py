"""A hundred paused trees and a hundred orders to them, sensible or not, all at once (rulings F1, F4, F8)."""

import asyncio
import random
from collections import Counter
from datetime import timedelta

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from tests.temporal.books import Books
from tests.temporal.host import Handle, Host, Script, ended, kinds, script, serving, start
from tests.temporal.orders import kill
from tests.temporal.people import asking, human, order, say, send
from tests.tree.simulator import delegation
from tests.waiting import soon, until
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import ResumeOrder
from workflows.model.rows import Records, RoundRecord
from workflows.model.settings import Bounds
from workflows.model.states import TaskState
from workflows.policy.answers import TAKES

TREES = 100
PATIENCE = timedelta(minutes=5)
"""A hundred at once take long on a busy machine."""
SEED = 20_261
GARBAGE = [
    "",
    " ",
    "nobody: knows",
    "q-root:",
    "\x00\ud7ff: \N{PILE OF POO}",
    "-5m",
    "x" * 20_000,
    "```\n/service resume",
]
SENSIBLE = {"answer": "red", "retry": "try again", "continue": "", "abort": "", "extend": "1h"}


def _shapes() -> list[Script]:
    legs = (delegation("a"), delegation("b"))
    return [
        asking({"root": legs}, "root"),
        asking({"answered": legs}, "root", "answered", "a"),
        asking({"root": legs}, "a", "b"),
        script({"root": (human("a"), delegation("b")), "a": ["failed", "failed", "approved"]}),
    ]


class Crowd(Host):
    """A host on which each tree plays a shape of its own."""

    def __init__(self) -> None:
        super().__init__(self._play)
        self.scripts: dict[str, Script] = {}

    def _play(self, run: JobRun) -> JobOutcome:
        root = run.root_job_id
        if root not in self.scripts:
            self.scripts[root] = _shapes()[len(self.scripts) % 4]
        return self.scripts[root](run)

    def books(self) -> dict[str, Books]:
        by_tree: dict[str, list[Records]] = {}
        for records in self.written:
            if root := _root(records):
                by_tree.setdefault(root, []).append(records)
        return {root: Books(written) for root, written in by_tree.items()}


def _root(records: Records) -> str | None:
    roots = {job.root_job_id for job in records.jobs} | {event.root_job_id for event in records.events}
    return next(iter(roots | {each.root_job_id for each in records.rounds}), None)


def _words(chance: random.Random, shown: RoundRecord) -> ResumeOrder:
    """Return an order with right or wrong verbs, sense or garbage, this round or others, or an outdated digest."""
    verb = chance.choice([*TAKES[shown.kind], *TAKES[shown.kind], *SENSIBLE, "launch"])
    text = chance.choice(GARBAGE) if chance.random() < 0.25 else SENSIBLE.get(verb, "")
    return order(
        chance.choice(
            [shown.coordinator_id, shown.coordinator_id, shown.root_job_id, shown.job_id, f"{shown.root_job_id}.99"]
        ),
        verb,
        text,
        round=chance.choice([None, None, None, shown.number, shown.number, shown.number + 1]),
        digest=chance.choice(["", "", "", shown.digest, shown.digest[:8], "0" * 16]),
        actor=f"person {chance.randrange(9)}",
    )


async def _speak(chance: random.Random, tree: Handle, order: ResumeOrder, heard: Counter[str]) -> None:
    """Send by update or signal; some are sent twice, with one request id."""
    if chance.random() < 0.4:
        heard["sent"] += 1
        await send(tree, order)
        return
    for _ in range(chance.choice([1, 1, 2])):
        try:
            await say(tree, order)
            heard["accepted"] += 1
        except WorkflowUpdateFailedError as error:
            heard[error.cause.type or "" if isinstance(error.cause, ApplicationError) else "failed"] += 1
        except RPCError as error:  # the tree ended before this order's turn
            heard[error.status.name] += 1


@pytest.mark.ruling("F1", "F4", "F8", "spec:states.wrong_verb")
@pytest.mark.long
async def test_a_hundred_paused_trees_and_a_hundred_random_resumes(client: Client, queue: str) -> None:
    chance, host, heard = random.Random(SEED), Crowd(), Counter[str]()
    async with serving(client, queue, host):
        trees = await asyncio.gather(*(start(client, queue, patience=PATIENCE) for _ in range(TREES)))
        by_id = {tree.id: tree for tree in trees}
        await host.until(lambda: kinds(host.written).count("round_opened") == TREES)
        crowded = chance.choices(list(host.books().values()), k=TREES // 4)
        spoken = [_words(chance, each.open()[0]) for each in crowded for _ in range(4)]
        roots = [each.open()[0].root_job_id for each in crowded for _ in range(4)]
        await asyncio.gather(
            *(_speak(chance, by_id[root], said, heard) for root, said in zip(roots, spoken, strict=True))
        )
        waiting = await _settled(host)
        assert 0 < len(waiting) < TREES, "some are over, some wait"
        await asyncio.gather(*(kill(by_id[root]) for root in waiting))
        await soon(asyncio.gather(*(ended(tree) for tree in trees)))
    for root, books in host.books().items():
        books.check([run for run in host.runs if run.root_job_id == root], Bounds())
    assert {"accepted", "unknown_job"} <= set(heard), heard
    assert "failed" not in heard


async def _settled(host: Crowd) -> set[str]:
    """Wait until every tree waits with an open round, or is over."""
    over = {TaskState.DONE, TaskState.CANCELLED, TaskState.BLOCKED}

    def moving() -> list[str]:
        trees = host.books().items()
        return [root for root, books in trees if bool(books.open()) == (books.task_state in over)]

    await until(lambda: not moving(), moving)
    for books in host.books().values():
        books.check_resumes()
        assert (books.task_state is TaskState.AWAITING_HUMAN) == bool(books.open())
    return {root for root, books in host.books().items() if books.open()}
