"""Take-over of eight running agents from a killed worker (-9), before the server's timeouts."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store import job_rows
from bridge.operations.jobs import jobs
from bridge.operations.orders import new_jobs, trees
from bridge.operations.orders.new_jobs import NewJob
from bridge.operations.service import Service
from tests.e2e.conftest import Installed, set_up
from tests.e2e.killed_worker import KilledWorker, use_default_namespace
from tests.temporal.server import serve
from tests.waiting import until
from workflows.model.rows import JobRecord
from workflows.model.states import JobState

pytestmark = [pytest.mark.long, pytest.mark.ruling("engine:runs")]

AGENTS = 8
AGENT = """\
echo ran >> "$PROOF.$SERVICE_JOB_ID"
while [ ! -e "$PROOF.go" ]; do sleep 0.1; done
echo '{"service_result": {"decision": "approved", "summary": "survived"}}'
"""
SAID = {"decision": "approved", "summary": "shared out"}
LEG = {"agent": "scout", "action": "ask"}
LEGS = [LEG | {"id": f"leg-{n}", "prompt": f"look at {n}"} for n in range(AGENTS + 2)]
LEAD = f"""\
test "$SERVICE_CONTINUATION" = none || exec echo '{json.dumps({"service_result": SAID})}'
echo '{json.dumps({"service_result": SAID | {"delegations": LEGS}})}'
"""
"""Delegates two legs more than run at once."""

UNHURRIED = """
from datetime import timedelta
from activities import worker
from workflows.temporal import calls

calls.HEARTBEAT = worker.STICKY_TIMEOUT = timedelta({})
worker.main()
"""
"""A worker with this heartbeat timeout."""


@dataclass
class Running:
    """Eight jobs, each with an agent that waits for its release."""

    installed: Installed
    service: Service
    address: str
    started: list[str]

    def worker(self, patience: str) -> KilledWorker:
        return KilledWorker(self.installed, self.address, ("-c", UNHURRIED.format(patience)))

    async def start(self) -> None:
        job = NewJob("scout", "ask", "look", "acme/shop")
        self.started = [await new_jobs.start(self.service, job) for _ in range(AGENTS)]
        await until(lambda: all(self.proof(job).exists() for job in self.started))

    def proof(self, job: str) -> Path:
        return self.installed.tmp / f"proof.{job}"

    def legs(self, root: str) -> list[JobRecord]:
        return [job for job in job_rows.tree(self.service.store, root) if job.delegation_id]

    def began(self, job: JobRecord) -> bool:
        return self.proof(job.job_id).exists()

    async def end_well(self) -> None:
        """Release the agents, and check that each continued and its command ran once."""
        (self.installed.tmp / "proof.go").touch()
        await until(lambda: all(jobs.get(self.service, job).ended_at for job in self.started))
        for job in self.started:
            record = jobs.get(self.service, job)
            assert (record.state, record.summary) == (JobState.SUCCEEDED, "survived"), record.reason
            assert self.proof(job).read_text() == "ran\n"


@pytest.fixture
async def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    installed = await asyncio.to_thread(set_up, tmp_path)
    await asyncio.to_thread(installed.agent, "scout", AGENT)
    await asyncio.to_thread(installed.agent, "lead", LEAD)
    with (installed.home / "config.toml").open("a") as config:
        config.write(f"[worker]\nmax_parallel_jobs = {AGENTS}\n")
    use_default_namespace(installed)
    async with serve() as client:
        address = client.service_client.config.target_host
        monkeypatch.setenv("SERVICE_TEMPORAL_ADDRESS", address)
        yield Running(installed, Service(Home(installed.home)), address, [])


async def test_the_next_worker_takes_over_what_a_killed_one_held(running: Running) -> None:
    worker = running.worker("hours=1")
    await worker.start()
    await running.start()
    worker.kill()
    await worker.start()
    await running.end_well()
    worker.kill()


@pytest.mark.ruling("B5", "G2")
async def test_a_kill_that_came_while_no_worker_lived_is_read_before_queued_legs_begin(running: Running) -> None:
    worker = KilledWorker(running.installed, running.address)
    await worker.start()
    root = await new_jobs.start(running.service, NewJob("lead", "ask", "share it out", "acme/shop"))
    await until(lambda: sum(map(running.began, running.legs(root))) == AGENTS)
    worker.kill()
    await trees.kill(running.service, root, actor="ann", immediate=False)
    (running.installed.tmp / "proof.go").touch()
    await worker.start()
    await until(lambda: jobs.tree(running.service, root).task.ended_at)
    legs = running.legs(root)
    assert len(legs) == AGENTS + 2
    assert sum(map(running.began, legs)) == AGENTS
    worker.kill()


async def test_two_workers_that_both_live_run_nothing_twice(running: Running) -> None:
    """One worker was stopped for longer than the server waits, and continues beside its successor."""
    stopped, other = running.worker("seconds=2"), running.worker("seconds=2")
    await stopped.start()
    await running.start()
    os.kill(stopped.pid, signal.SIGSTOP)
    await other.start()
    os.kill(stopped.pid, signal.SIGCONT)
    await running.end_well()
    stopped.kill()
    other.kill()
