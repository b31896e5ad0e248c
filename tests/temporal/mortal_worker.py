"""A worker in a process of its own that kills itself (-9) at a given moment of its work.

`python -m tests.temporal.mortal_worker ADDRESS QUEUE HOME MOMENT`; moment 0 never comes.
"""

import asyncio
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.host.context import Context
from activities.jobs.record_tree import TreeRecorder, request_cancel
from activities.pipelines.record_run import RunRecorder
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import claim_rows, job_rows, run_rows, tree_rows
from activities.store.attempt_rows import AttemptRow, Offered
from activities.store.database import open_store
from activities.temporal import data_converter
from tests.temporal.server import runs
from tests.tree.simulator import AGENTS, delegation, outcome
from workflows.contract.models import HumanQuestion
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.pipeline.plan import StageOutcome, StageState
from workflows.pipeline.rows import RunRecords
from workflows.pipeline.stages import StageRun
from workflows.policy import backoff
from workflows.temporal import calls, writes
from workflows.temporal.runner import WORKFLOWS
from workflows.tree.state import TreeMemory

QUESTION = HumanQuestion(id="which", prompt="which?")


def effects(home: Home) -> sqlite3.Connection:
    """Open the record of agents' actions and reports, which outlives the worker."""
    connection = sqlite3.connect(home.root / "effects.db", isolation_level=None, timeout=15)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS began (job TEXT, attempt INT)")
    connection.execute("CREATE TABLE IF NOT EXISTS ended (job TEXT, attempt INT, outcome TEXT)")
    return connection


def answer(run: JobRun) -> JobOutcome:
    """Answer by the tree's shape, in the root's prompt; a leg called `bad` crashes once, a `curious` one asks."""
    first, shape = run.parent_job_id is None, run.assignment.prompt.inline or ""
    legs: tuple[Any, ...] = ()
    if first and shape == "wide":
        legs = tuple(delegation(f"l{n}") for n in range(6))
    elif (first and shape == "deep") or run.delegation_id == "nest":
        legs = (delegation("nest" if first else "inner"), delegation("z"))
    elif first and shape == "blocked":
        legs = (delegation("bad"), delegation("good"), delegation("after", deps=("bad",)))
    elif first and shape == "asks":
        legs = (delegation("bad", failure_policy="escalate_human"), delegation("curious"))
    questions = (QUESTION,) if run.delegation_id == "curious" else ()
    crashes = run.delegation_id == "bad" and run.attempt == 1
    return outcome(
        run,
        None if crashes else "approved",
        *legs,
        agents=AGENTS if legs else (),
        progress=run.job_id,
        human_questions=questions,
    )


def stage_answer(run: StageRun) -> StageOutcome:
    """Answer for a stage: `flaky` fails once, `bad` always; `slow` takes its time."""
    if run.stage_id.startswith("slow"):
        time.sleep(0.3)
    fails = run.stage_id == "bad" or (run.stage_id == "flaky" and run.attempt == 1)
    return StageOutcome(state=StageState.FAILED if fails else StageState.SUCCEEDED, summary=f"{run.job_id} ran")


@dataclass
class MortalHost:
    """A host with real rows in a real store; every step of its work is a moment at which it may die."""

    home: Home
    moment: int
    store: Any = field(init=False)

    def __post_init__(self) -> None:
        self.store = open_store(self.home)

    def passes(self) -> None:
        """Count one moment, and die at the last."""
        self.moment -= 1
        if self.moment == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def record(self, records: Records) -> None:
        self.passes()
        job_rows.write(self.store, records)
        self.passes()

    @activity.defn(name="keep_tree")
    def keep_tree(self, state: TreeMemory) -> None:
        self.passes()
        tree_rows.keep(self.store, state, "here")
        self.passes()

    @activity.defn(name="request_cancel")
    async def request_cancel(self) -> None:
        self.passes()
        await request_cancel()
        self.passes()

    @activity.defn(name="deliver")
    def deliver(self, notification_id: str) -> None:
        self.passes()

    @activity.defn(name="record_run")
    def record_run(self, records: RunRecords) -> None:
        self.passes()
        RunRecorder(Context(self.home, Settings(), self.store)).record_run(records)
        self.passes()

    @activity.defn(name="run_job")
    def run_job(self, run: JobRun) -> JobOutcome:
        row = self.claimed(Offered(run.job_id, run.attempt, run.offer))
        if row is None:
            return JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.CANCELLED)
        line = self.once((run.job_id, run.attempt), lambda: answer(run).model_dump_json())
        return JobOutcome.model_validate_json(line).model_copy(update={"begun_at": row.started_at})

    def claimed(self, offered: Offered) -> AttemptRow | None:
        self.passes()
        return claim_rows.begin(self.store, offered, host="here", run_dir="/nowhere")

    @activity.defn(name="take_back")
    def take_back(self, offer: calls.OfferKey) -> calls.OfferClaim:
        self.passes()
        claim = TreeRecorder(Context(self.home, Settings(), self.store)).take_back(offer)
        self.passes()
        return claim

    @activity.defn(name="call_off")
    def call_off(self, order: calls.CallOff) -> calls.OfferClaim:
        self.passes()
        claim = TreeRecorder(Context(self.home, Settings(), self.store)).call_off(order)
        self.passes()
        return claim

    @activity.defn(name="run_stage")
    def run_stage(self, run: StageRun) -> StageOutcome:
        if self.claimed(Offered(run.job_id, run.attempt)) is None:
            return StageOutcome(state=StageState.CANCELLED)
        run_rows.stage_begins(self.store, run.row)
        line = self.once((run.job_id, run.attempt), lambda: stage_answer(run).model_dump_json())
        outcome = StageOutcome.model_validate_json(line)
        run_rows.stage_ends(self.store, run.row, outcome)
        return outcome

    def once(self, key: tuple[str, int], answer: Callable[[], str]) -> str:
        """Act like a real run: begin once, be found again, report the recorded outcome."""
        self.passes()
        with effects(self.home) as ledger:
            done = ledger.execute("SELECT outcome FROM ended WHERE job = ? AND attempt = ?", key).fetchone()
            if done:
                return str(done[0])
            if not ledger.execute("SELECT 1 FROM began WHERE job = ? AND attempt = ?", key).fetchone():
                ledger.execute("INSERT INTO began VALUES (?, ?)", key)
            self.passes()
            outcome = answer()
            ledger.execute("INSERT INTO ended VALUES (?, ?, ?)", (*key, outcome))
        self.passes()
        return outcome


async def serve(address: str, queue: str, home: Home, moment: int) -> None:
    calls.HEARTBEAT = timedelta(seconds=1)
    backoff.FIRST_RETRY_SECONDS = 0.1
    client = await Client.connect(address, data_converter=data_converter(home, Settings()))
    host, threads = MortalHost(home, moment), ThreadPoolExecutor(8)
    tree_worker = Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        activities=[
            *writes.writers(host.record),
            host.request_cancel,
            host.take_back,
            host.call_off,
            host.keep_tree,
            host.deliver,
            host.record_run,
        ],
        activity_executor=threads,
        workflow_runner=runs(client),
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=0.2),
    )
    agents = Worker(
        client,
        task_queue=calls.agents_queue(queue),
        activities=[host.run_job, host.run_stage],
        activity_executor=threads,
        max_concurrent_activities=4,
    )
    async with tree_worker, agents:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], Home(Path(sys.argv[3])), int(sys.argv[4])))
