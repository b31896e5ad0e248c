"""Trees hear at once that their jobs have begun; of a crowd of jobs most reports are dropped."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.host import tree_reports
from activities.host.tree_reports import TreeReports
from tests.waiting import until
from workflows.contract.models import Action
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.workers import Assignment, Worker
from workflows.temporal.messages import HostReport

pytestmark = pytest.mark.ruling("B5")


@dataclass
class Told:
    """A client that records reports to trees."""

    reports: list[tuple[str, HostReport]] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    """Raised by the next calls."""

    def get_workflow_handle(self, root: str) -> Any:
        return _Handle(self, root)


@dataclass
class _Handle:
    told: Told
    root: str

    async def signal(self, _name: str, report: HostReport) -> None:
        if self.told.faults:
            raise self.told.faults.pop()
        self.told.reports.append((self.root, report))


def a_job(number: int, root: str = "") -> JobRun:
    worker = Worker(name="scripted", runtime="shell", command=("true",))
    work = Assignment(worker=worker, action=Action.ASK, prompt=Text(inline="look"))
    name = f"job-{number:012d}"
    return JobRun(job_id=name, root_job_id=root or name, task_id="task-1", repo="acme/shop", assignment=work)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Told:
    """Make a crowd wait for longer than any test."""
    monkeypatch.setattr(tree_reports, "GATHER_SECONDS", 0.01)
    monkeypatch.setattr(tree_reports, "CROWD_SECONDS", 3600.0)
    return Told()


def reporting(client: Told, jobs: list[JobRun]) -> TreeReports:
    """Make a host on which all these jobs have begun."""
    reports = TreeReports(cast("Client", client), asyncio.get_running_loop())
    for job in jobs:
        reports.begun(job, 1.0)
    return reports


async def test_a_few_are_told_at_once(client: Told) -> None:
    few = [a_job(number) for number in range(tree_reports.CROWD)]
    reporting(client, few)
    await until(lambda: len(client.reports) == len(few))
    assert {root for root, _ in client.reports} == {job.root_job_id for job in few}


async def test_a_tree_is_told_once_the_server_answers_again(client: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_reports, "RETRY_SECONDS", 0.01)
    away = RPCError("nobody answers", RPCStatusCode.UNAVAILABLE, b"")
    client.faults += [away, RuntimeError("Failed client connect")]
    reporting(client, [a_job(1)])
    await until(lambda: client.reports)
    assert client.faults == []


async def test_a_tree_hears_of_jobs_that_begin_one_after_another_together(client: Told) -> None:
    reports = reporting(client, [a_job(1, "job-of-all")])
    await until(lambda: client.reports)
    client.reports.clear()
    for number in (2, 3):
        reports.begun(a_job(number, "job-of-all"), 1.0)
    await until(lambda: len(reports.waiting["job-of-all"]) == 2)
    assert client.reports == []
    for task in list(reports._sending):
        task.cancel()


@pytest.mark.parametrize("root", ["", "job-of-all"])
async def test_reports_of_jobs_that_ended_are_dropped_from_a_crowd(client: Told, root: str) -> None:
    crowd, beside = [a_job(number, root) for number in range(tree_reports.CROWD + 1)], Told()
    reports = reporting(client, crowd)
    reporting(beside, [a_job(900)])
    await until(lambda: beside.reports)
    assert client.reports == [], "one that began later was alone"
    for job in crowd:
        reports.ended(job)
    assert [left for left in reports.waiting.values() if left] == []
    for task in list(reports._sending):
        task.cancel()


async def test_short_jobs_are_not_reported(client: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_reports, "GATHER_SECONDS", 1.0)
    reports = reporting(client, [])
    for number in range(25):
        reports.begun(job := a_job(number, "job-of-all"), 1.0)
        await asyncio.sleep(0.05)
        reports.ended(job)
    assert client.reports == []
    await until(lambda: not reports.waiting)
