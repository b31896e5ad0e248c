"""kill -9 of the worker at random moments, repeatedly: every command runs once, every outcome is recorded."""

import asyncio
import random
import sys
from pathlib import Path

import pytest

from activities.runs.os_processes import marks
from activities.runs.supervised_run import home_mark
from activities.settings.home import Home
from activities.store import attempt_rows
from bridge.operations.jobs import jobs
from bridge.operations.orders import new_jobs
from bridge.operations.orders.new_jobs import NewJob
from bridge.operations.service import Service
from tests.e2e.conftest import set_up
from tests.e2e.killed_worker import KilledWorker, use_default_namespace
from tests.temporal.server import serve
from tests.waiting import until
from workflows.model.states import JobState

pytestmark = [pytest.mark.long, pytest.mark.ruling("engine:runs")]

KILLS = 20
AGENT = """\
echo ran >> "$PROOF.$SERVICE_JOB_ID"
setsid sleep 600 &
sleep 0.$(($$ % 9))
echo '{"service_result": {"decision": "approved", "summary": "survived"}}'
"""


async def all_ended(service: Service, started: list[str]) -> None:
    await until(lambda: all(jobs.get(service, job).ended_at for job in started))


@pytest.mark.skipif(sys.platform != "linux", reason="leftovers are found in /proc")
async def test_twenty_kills_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = random.Random(7)
    installed = await asyncio.to_thread(set_up, tmp_path)
    await asyncio.to_thread(installed.agent, "scout", AGENT)
    use_default_namespace(installed)
    service = Service(Home(installed.home))
    async with serve() as client:
        address = client.service_client.config.target_host
        monkeypatch.setenv("SERVICE_TEMPORAL_ADDRESS", address)
        worker = KilledWorker(installed, address)
        started = []
        await worker.start()
        for number in range(KILLS):
            action = "implement" if number % 2 else "ask"
            started.append(await new_jobs.start(service, NewJob("scout", action, "look", "acme/shop")))
            await asyncio.sleep(moments.uniform(0.0, 1.2))
            worker.kill()
            await worker.start()
        await all_ended(service, started)
        worker.kill()
    for job in started:
        record = jobs.get(service, job)
        assert (record.state, record.summary) == (JobState.SUCCEEDED, "survived"), record.reason
        assert (tmp_path / f"proof.{job}").read_text() == "ran\n"
        assert [run.ended_at is not None for run in attempt_rows.of_job(service.store, job)] == [True]
    ours = home_mark(Home(installed.home).runs)
    assert not [pid for pid, mark in marks() if mark.endswith(f"@{ours}")]
