"""A scripted host: it replaces the activities of a real one, and records its calls."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import Worker

from activities.jobs.record_tree import is_child, request_cancel
from activities.jobs.why_closed import how_it_closed
from tests import waiting
from tests.temporal.server import runs
from tests.tree.simulator import STORY, outcome, tree_input
from tests.waiting import until
from workflows.contract.models import Delegation
from workflows.model import ids
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.rows import Records
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState
from workflows.temporal import calls, search, writes
from workflows.temporal.calls import agents_queue
from workflows.temporal.delegation_tree import DelegationTree
from workflows.temporal.messages import Begun, HostReport, TreeStart
from workflows.temporal.moving import GivenUp, GiveUp
from workflows.temporal.placing import Unplaced
from workflows.temporal.runner import WORKFLOWS
from workflows.tree.commands import CloseTree
from workflows.tree.reducer import root_run
from workflows.tree.state import TreeInput, TreeMemory

PATIENCE = timedelta(seconds=waiting.PATIENCE)
"""A timeout, so that a tree that hangs fails its test."""

Handle = WorkflowHandle[DelegationTree, CloseTree]
Script = Callable[[JobRun], JobOutcome]
Line = str | None | tuple[Delegation, ...]
"""A decision, a crash, or the delegations of an approved result."""


def name_of(run: JobRun) -> str:
    """Return a run's name in tests: its leg's id, `root`, or its continuation's flavour."""
    if run.delegation_id and run.continuation == "none":
        return run.delegation_id
    return "root" if run.parent_job_id is None else run.continuation.value


def says(run: JobRun, line: Line, **fields: Any) -> JobOutcome:
    """Return an outcome with progress: no two jobs report equal side effects."""
    fields = {"progress": f"{run.job_id} {run.attempt}"} | fields
    return outcome(run, "approved", *line, **fields) if isinstance(line, tuple) else outcome(run, line, **fields)


def script(lines: Mapping[str, Line | list[Line]], **fields: Any) -> Script:
    """Return a script: unnamed jobs approve; a list is used line by line, its last line repeatedly."""
    calls: dict[str, int] = {}

    def answer(run: JobRun) -> JobOutcome:
        name = name_of(run)
        line = lines.get(name, "approved")
        if isinstance(line, list):
            calls[name] = calls.get(name, -1) + 1
            line = line[min(calls[name], len(line) - 1)]
        return says(run, line, **fields)

    return answer


@dataclass
class Host:
    """Runs its jobs at once, unless their name is held: then until their release or cancellation."""

    answer: Script
    held: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    """Jobs that find no free slot, and so do not begin."""
    reports: bool = True
    """True if trees receive reports of begins; otherwise they learn of them from outcomes."""
    claims: dict[tuple[str, int, int], str] = field(default_factory=dict)
    runs: list[JobRun] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    written: list[Records] = field(default_factory=list)
    kept: list[TreeMemory] = field(default_factory=list)
    notified: list[str] = field(default_factory=list)
    left: dict[tuple[str, int], JobOutcome | None] = field(default_factory=dict)
    """How given up attempts end, by job and attempt; None if their host keeps them. Any other moves."""
    on_cancel: Callable[[JobOutcome], JobOutcome] = lambda outcome: outcome
    before_write: Callable[[Records], Awaitable[None]] | None = None
    before_keep: Callable[[], Awaitable[None]] | None = None
    before_take_back: Callable[[calls.OfferKey], Awaitable[None]] | None = None
    placements: list[str] = field(default_factory=list)
    """Hosts to place attempts on, the last one repeatedly; an empty one stands for no host."""
    wanted: list[Unplaced] = field(default_factory=list)

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> JobOutcome:
        while name_of(run) in self.waiting:
            activity.heartbeat()
            await asyncio.sleep(0.01)
        if not self._claim(run):
            return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.CANCELLED)
        at = time.time()
        self.runs.append(run)
        await self._report(run, at)
        try:
            while name_of(run) in self.held:
                activity.heartbeat()
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled.append(name_of(run))
            end = self.on_cancel(outcome(run, None, state=JobState.CANCELLED, reason="stopped by order"))
        else:
            end = self.answer(run)
        self.ended.append(name_of(run))
        return end.model_copy(update={"begun_at": at})

    def _claim(self, run: JobRun) -> bool:
        return self.claims.setdefault((run.job_id, run.attempt, run.offer), "begun") == "begun"

    async def _report(self, run: JobRun, at: float) -> None:
        if self.reports:
            report = HostReport(begun=(Begun(job_id=run.job_id, offer=run.offer, at=at),))
            await activity.client().get_workflow_handle(run.root_job_id).signal(DelegationTree.report, report)

    @activity.defn(name="place")
    async def place(self, wanted: Unplaced) -> str:
        self.wanted.append(wanted)
        chosen = self.placements.pop(0) if len(self.placements) > 1 else self.placements[0]
        if not chosen:
            raise ApplicationError("no host has the label gpu", type=calls.WAITS)
        return chosen

    @activity.defn(name="take_back")
    async def take_back(self, offer: calls.OfferKey) -> calls.OfferClaim:
        if self.before_take_back:
            await self.before_take_back(offer)
        key = (offer.job_id, offer.attempt, offer.offer)
        return calls.OfferClaim(begun_at=time.time() if self.claims.setdefault(key, "back") == "begun" else None)

    @activity.defn(name="call_off")
    async def call_off(self, order: calls.CallOff) -> calls.OfferClaim:
        return await self.take_back(order.offer)

    @activity.defn(name="give_up")
    async def give_up(self, order: GiveUp) -> GivenUp:
        offer, move = order.offer, order.move
        begun = self.claims.setdefault((offer.job_id, offer.attempt, offer.offer), "back") == "begun"
        moved = JobOutcome(
            job_id=offer.job_id,
            attempt=offer.attempt,
            state=JobState.CANCELLED,
            begun_at=time.time() if begun else None,
            reason=move.reason,
            moved=True,
        )
        left = self.left.get((offer.job_id, offer.attempt), moved)
        return GivenUp(outcome=left.model_dump(mode="json") if left else None)

    @property
    def activities(self) -> list[Callable[..., object]]:
        return [
            *writes.writers(self.record),
            request_cancel,
            is_child,
            how_it_closed,
            self.take_back,
            self.call_off,
            self.give_up,
            self.place,
            self.keep_tree,
            self.deliver,
        ]

    async def record(self, records: Records) -> None:
        if self.before_write:
            await self.before_write(records)
        self.written.append(records)

    @activity.defn(name="keep_tree")
    async def keep_tree(self, state: TreeMemory) -> None:
        if self.before_keep:
            await self.before_keep()
        self.kept.append(state)

    @activity.defn(name="deliver")
    async def deliver(self, notification_id: str) -> None:
        self.notified.append(notification_id)

    @property
    def names(self) -> list[str]:
        return [name_of(run) for run in self.runs]

    def run(self, name: str, attempt: int = 1) -> JobRun:
        return next(run for run in self.runs if name_of(run) == name and run.attempt == attempt)

    async def until(self, what: Callable[[], object]) -> None:
        await until(what, lambda: f"ran {self.names}, ended {self.ended}")

    async def until_running(self, *names: str) -> None:
        await self.until(lambda: set(names) <= set(self.names))

    def release(self, *names: str) -> None:
        self.held -= set(names)
        self.waiting -= set(names)


@asynccontextmanager
async def serving(client: Client, queue: str, host: Host, *, slots: int = 100, **options: Any) -> AsyncIterator[None]:
    """Run the two workers of a host with so many slots; options are the tree worker's.

    The trees' worker stops first: what runs report when their worker stops reaches no tree before workers serve again.
    """
    quick = timedelta(seconds=0.2)
    trees = Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        activities=host.activities,
        workflow_runner=runs(client),
        sticky_queue_schedule_to_start_timeout=quick,
        **options,
    )
    agents = Worker(
        client,
        task_queue=agents_queue(queue),
        activities=[host.run_job],
        max_concurrent_activities=slots,
        max_heartbeat_throttle_interval=quick,
    )
    async with agents, trees:
        yield


def an_input(**fields: Any) -> TreeInput:
    """Return the input of a tree with an id of its own, created now."""
    root = ids.root_id(time.time_ns() // 1_000_000, uuid4().int)
    return tree_input(root_job_id=root, task_id=ids.task_id(root), created_at=time.time(), **fields)


async def start(
    client: Client,
    queue: str,
    tree: TreeInput | TreeStart | None = None,
    *,
    patience: timedelta = PATIENCE,
    **options: Any,
) -> Handle:
    """Start a tree's workflow as the operation does."""
    first = tree if isinstance(tree, TreeStart) else TreeStart(input=tree or an_input(), host=queue)
    root = first.input.root_job_id
    run = root_run(first.input)
    attributes = search.attributes(run, JobState.RUNNING.value)
    return await client.start_workflow(
        DelegationTree.run,
        first,
        id=root,
        task_queue=queue,
        static_summary="implement: reach the goal",
        search_attributes=attributes,
        execution_timeout=patience,
        **options,
    )


async def play(client: Client, queue: str, host: Host, tree: TreeInput | TreeStart | None = None) -> CloseTree:
    """Play a whole tree, from start to close."""
    async with serving(client, queue, host):
        return await ended(await start(client, queue, tree))


async def ended(tree: Handle) -> CloseTree:
    """Return how the tree closed. For a cancelled one Temporal keeps only that; the rows have the rest."""
    try:
        return await tree.result()
    except WorkflowFailureError as error:
        if isinstance(error.cause, ApplicationError) and error.cause.type in {"Failed", "Blocked"}:
            return CloseTree.model_validate(error.cause.details[0])
        if isinstance(error.cause, CancelledError):
            return CloseTree(
                root_job_id=tree.id,
                task_state=TaskState.CANCELLED,
                decision=None,
                summary="",
                reason="",
                jobs=0,
                usage=Usage(),
                cost_usd=0.0,
            )
        raise


def kinds(written: Sequence[Records]) -> list[str]:
    return [event.kind for records in written for event in records.events if event.kind not in STORY]
