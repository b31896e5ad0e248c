"""kill -9 at the worst moments: the job finishes, and its command ran exactly once."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.boxes.control_group import limits, make
from activities.settings.home import Home
from activities.worker import group_name
from bridge.daemon.supervision import Backoff
from tests.e2e.conftest import Installed, set_up
from tests.e2e.lived_in import check_its_files
from tests.e2e.script import git

SOON = 60.0
"""Seconds until a killed member works and the job goes on; under 6 on a quiet machine."""


class Agent:
    """An agent that reports its begin, and then waits for its release."""

    def __init__(self, service: Installed, name: str) -> None:
        self.service, self.name = service, name
        self.began, self.go = (service.tmp / f"{name}.{what}" for what in ("began", "go"))
        program = service.program(
            name,
            f"echo ran >> '{self.began}'; while [ ! -e '{self.go}' ]; do sleep 0.1; done; echo 1 > made.txt\n"
            """echo '{"service_result": {"decision": "approved", "summary": "survived"}}'\n""",
        )
        service.register(name, program)

    def begin(self, action: str = "ask") -> str:
        return str(self.service.json("agent", action, self.name, "look", "--repo", "acme/shop")["job_id"])

    def run(self, action: str = "ask") -> str:
        job = self.begin(action)
        self.service.wait_for(self.began.exists)
        return job

    def ends_well(self, job: str) -> None:
        self.go.touch()
        shown = self.service.wait_until_ended(job)
        assert (shown["state"], shown["summary"], self.began.read_text()) == ("succeeded", "survived", "ran\n")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    service = set_up(tmp_path_factory.mktemp("crashes"))
    with (service.home / "config.toml").open("a") as config:
        config.write('[orchestrate]\nmerge = "line"\n')
    service("daemon", "start")
    try:
        yield service
    finally:
        service("daemon", "stop")


@pytest.fixture
def agent(service: Installed, request: pytest.FixtureRequest) -> Agent:
    return Agent(service, Path(request.node.name).name.removeprefix("test_").replace("_", "-")[:40])


@pytest.mark.ruling("N2")
def test_agents_are_in_the_control_group_of_their_home_with_the_next_worker_too(service: Installed) -> None:
    if (group := make(f"service-test-{os.getpid()}", limits(80))) is None:
        pytest.skip("this account may make no control group here")
    group.remove()
    proof = service.tmp / "groups"
    answer = '{"service_result": {"decision": "approved", "summary": "looked"}}'
    service.register("where", service.program("where", f"cat /proc/self/cgroup > '{proof}'; echo '{answer}'"))

    def looks() -> None:
        job = service.json("agent", "ask", "where", "look", "--repo", "acme/shop")["job_id"]
        service.wait_until_ended(str(job))
        assert f"/{group_name(Home(service.home))}/" in proof.read_text()
        proof.unlink()

    looks()
    service.kill("worker")
    looks()


@pytest.mark.long
def test_the_worker_dies_while_a_job_waits_to_start(agent: Agent) -> None:
    os.kill(agent.service.pid("worker"), signal.SIGSTOP)  # it holds its polls but takes nothing, so the job only waits
    job = agent.begin()
    assert agent.service.json("job", "show", job)["state"] == "queued"
    agent.service.kill("worker")
    agent.ends_well(job)


def test_the_server_dies_while_a_job_runs(agent: Agent) -> None:
    job = agent.run()
    agent.service.kill("server")
    agent.ends_well(job)


def test_the_worker_dies_while_a_job_runs_and_the_next_one_takes_the_run_over(agent: Agent) -> None:
    job = agent.run("implement")
    os.kill(agent.service.pid("worker"), signal.SIGKILL)
    agent.ends_well(job)


@pytest.mark.ruling("O6")
def test_the_branch_of_a_task_is_moved_by_the_daemon_itself(agent: Agent) -> None:
    service, job = agent.service, agent.run("implement")
    agent.ends_well(job)
    service.wait_for(lambda: "branch_merged" in [event["kind"] for event in service.json("job", "events", job)])
    task = f"service/{service.tree(job)['task']['task_id']}"
    assert git(service.repo, "show", f"{task}:made.txt") == "1\n"


@pytest.mark.long
def test_everything_stops_while_a_job_runs_and_starts_again(agent: Agent) -> None:
    job = agent.run()
    agent.service("daemon", "stop")
    agent.go.touch()
    agent.service("daemon", "start")
    agent.ends_well(job)


@pytest.mark.long
def test_members_that_worked_are_restarted_at_once_each_time_they_are_killed_and_the_job_goes_on(agent: Agent) -> None:
    log = agent.service.home / "logs" / "daemon.log"
    for member in ("worker", "server", "bridge"):
        before = len(log.read_text())
        for _ in range(2):
            job = agent.run()
            time.sleep(Backoff().healthy_after + 0.5)
            killed_at = time.monotonic()
            agent.service.kill(member)
            agent.ends_well(job)
            assert time.monotonic() - killed_at < SOON, member
            agent.began.unlink()
            agent.go.unlink()
        logged = log.read_text()[before:]
        assert logged.count(f"{member} ended (killed by SIGKILL); starting it again in {Backoff().first:g} s") == 2
        assert "worker does not find the server again" not in logged


@pytest.mark.long
def test_members_that_are_stopped_are_started_again_after_a_minute_and_the_job_goes_on(agent: Agent) -> None:
    service, job = agent.service, agent.run()
    stopped = {member: service.pid(member) for member in ("server", "worker", "bridge")}
    for pid in stopped.values():
        os.kill(pid, signal.SIGSTOP)
    service.wait_for(lambda: all(service.pid(name) not in (0, pid) for name, pid in stopped.items()))
    service.wait_for(service.is_well)
    agent.ends_well(job)
    logged, shown = (service.home / "logs" / "daemon.log").read_text(), service("daemon", "status").stdout
    for member in stopped:
        assert f"{member} gave no sign of life for 60 s; starting it again in 0.1 s" in logged
    assert shown.count(", frozen at ") == len(stopped)


@pytest.mark.ruling("N8")
def test_every_file_of_the_home_is_closed_by_itself_after_all_that(service: Installed, tmp_path: Path) -> None:
    """It stops the service, and so comes last."""
    check_its_files(service, tmp_path)
