"""Replacement of a seal key that others could have read, once nothing sealed with it is running (ruling N1)."""

import asyncio
from pathlib import Path

import pytest

from activities.sealing import seal_key
from activities.settings.home import Home
from bridge.daemon import replace_seal_key
from bridge.operations.github import desk
from bridge.operations.health import doctor
from bridge.operations.health.findings import Finding, Level
from bridge.operations.pipelines import definitions
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.waiting import until
from workflows.model.errors import UnreachableError
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("N1")


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """Create a store, and a key whose file was readable by others."""
    made = Service(Home(tmp_path / "home"))
    seeds.write(made, seeds.task(state=TaskState.DONE, ended_at=9.0), seeds.job(state=JobState.SUCCEEDED))
    seal_key.ensure(made.home.root)
    made.home.seal_key.chmod(0o644)
    made.home.ensure()
    return made


def finding(service: Service) -> Finding:
    [problem] = doctor.seals(Service(service.home))
    return problem


@pytest.mark.ruling("Q1")
def test_the_key_of_a_fleet_stays_though_its_store_is_elsewhere(bare_home: Home) -> None:
    key = seal_key.ensure(bare_home.ensure().root)
    replace_seal_key.turn(bare_home, alone=False)
    assert seal_key.read(bare_home.root) == key


def test_it_is_replaced_when_nothing_is_under_way(service: Service) -> None:
    before = seal_key.read(service.home.root)
    assert finding(service).level is Level.WRONG
    replace_seal_key.turn(service.home, alone=True)
    assert seal_key.read(service.home.root) not in (before, None)
    assert service.home.seal_key.stat().st_mode & 0o777 == 0o600
    assert finding(service).level is Level.OK
    assert service.home.seal_key_new.exists(), "schedules are still to be sealed"
    again = seal_key.read(service.home.root)
    replace_seal_key.turn(service.home, alone=True)
    assert seal_key.read(service.home.root) == again, "once"


@pytest.mark.parametrize("state", [TaskState.OPEN, TaskState.AWAITING_HUMAN, TaskState.BLOCKED])
def test_it_stays_for_what_is_under_way_and_that_is_told(service: Service, state: TaskState) -> None:
    seeds.write(service, seeds.task(state=state, revision=2))
    before = seal_key.read(service.home.root)
    replace_seal_key.turn(service.home, alone=True)
    assert seal_key.read(service.home.root) == before
    problem = finding(service)
    assert (problem.level, "could speak as the service" in problem.says) == (Level.WRONG, True)
    assert f"rm '{service.home.seal_key}'" in problem.fix


def test_it_stays_where_other_hosts_have_it(service: Service) -> None:
    before = seal_key.read(service.home.root)
    replace_seal_key.turn(service.home, alone=False)
    assert seal_key.read(service.home.root) == before
    service.home.config.write_text('[temporal]\naddress = "127.0.0.1:1"\n')
    assert "every host" in finding(service).fix


def test_one_that_was_removed_is_made_anew_and_schedules_with_it(service: Service) -> None:
    service.home.seal_key.unlink()
    replace_seal_key.turn(service.home, alone=True)
    assert seal_key.read(service.home.root)
    assert service.home.seal_key_new.exists()
    assert finding(service).level is Level.OK


async def test_schedules_and_the_desk_are_sealed_anew_once_everything_runs(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, renewed, running = list[Service](), list[Service](), list[bool]()
    service.home.config.write_text('[github]\ntoken_env = "GITHUB_TOKEN"\n')

    async def schedule_again(of: Service) -> None:
        put.append(of)
        if len(put) == 1:
            raise UnreachableError("not yet")

    async def renew(of: Service) -> None:
        renewed.append(of)

    monkeypatch.setattr(definitions, "schedule_again", schedule_again)
    monkeypatch.setattr(desk, "renew", renew)
    monkeypatch.setattr(replace_seal_key, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(replace_seal_key, "AGAIN_SECONDS", 0.01)
    replace_seal_key.turn(service.home, alone=True)
    work = asyncio.create_task(replace_seal_key.seal_schedules(service.home, lambda: bool(running)))
    await asyncio.sleep(0.1)
    assert put == []
    running.append(True)
    await until(work.done)
    assert (len(put), len(renewed)) == (2, 1)
    assert not service.home.seal_key_new.exists()


async def test_a_home_that_is_opened_while_the_daemon_runs_is_closed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replace_seal_key, "AGAIN_SECONDS", 0.01)
    work = asyncio.create_task(replace_seal_key.keep_closed(service.home))
    service.home.root.chmod(0o777)
    await asyncio.sleep(0.1)
    assert not work.done(), "what others may write to is a matter for a person"
    service.home.root.chmod(0o755)
    await until(lambda: service.home.root.stat().st_mode & 0o777 == 0o700)
    work.cancel()
