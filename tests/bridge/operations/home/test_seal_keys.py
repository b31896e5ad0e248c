"""The seal key is replaced while nothing is under way, and no host works (rulings Q10, N1)."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy.exc import OperationalError

from activities.sealing import seal_key
from activities.settings.home import Home
from activities.store.registry import host_rows
from bridge.machine.locks import FileLock
from bridge.operations.home import seal_keys
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.keys import turn
from tests.rows import ROOT
from workflows.model.errors import RefusedError
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("Q10")


def host(folder: Path, name: str, first: Home | None = None) -> Service:
    """Return a host of a fleet, whose database stands for PostgreSQL, with the key of its first host."""
    home = Home(folder / name).ensure()
    home.config.write_text(f'[worker]\nhost = "{name}"\n[store]\nurl = "sqlite:///{folder}/fleet.db"\n')
    if first:
        home.seal_key.write_bytes(seal_key.ensure(first.root))
        home.seal_key.chmod(0o600)
    else:
        seal_key.ensure(home.root)
    return Service(home)


def beat(service: Service) -> None:
    key = seal_key.fingerprint(sealing(service))
    host_rows.see(service.store, service.settings.host, slots=1, started_at=1.0, key=key)


def sealing(service: Service) -> bytes:
    return seal_key.ensure(service.home.root)


@pytest.fixture
def one(tmp_path: Path) -> Service:
    return host(tmp_path, "one")


def test_all_keys_of_a_home_of_0_2_0_are_replaced_by_a_new_one(one: Service) -> None:
    turn(one.home.root)
    seeds.write(one, seeds.task(state=TaskState.DONE, ended_at=9.0), seeds.job(state=JobState.SUCCEEDED))
    former = seal_key.every(one.home.root)
    replaced = seal_keys.replace(one)
    [new] = seal_key.every(one.home.root)
    assert new not in former
    assert (replaced.key, replaced.hosts) == (seal_key.fingerprint(new)[: seal_key.SHOWN], ())
    assert one.home.seal_key_new.exists(), "schedules are still to be sealed"


@pytest.mark.parametrize("state", [TaskState.OPEN, TaskState.AWAITING_HUMAN, TaskState.BLOCKED])
def test_what_is_under_way_is_named_and_ends_only_if_that_is_meant(one: Service, state: TaskState) -> None:
    seeds.write(one, seeds.task(state=state), seeds.job(state=JobState.SUCCEEDED))
    former = sealing(one)
    with pytest.raises(RefusedError, match=f"{ROOT} would end") as refused:
        seal_keys.replace(one)
    first, *_, last = map(str.strip, str(refused.value.hint).splitlines())
    assert (first, last.partition("  ")[0]) == ("service job list", "service host replace-key --now")
    assert sealing(one) == former
    seal_keys.replace(one, now=True)
    assert sealing(one) != former


def test_a_home_whose_daemon_runs_is_refused(one: Service) -> None:
    lock = FileLock.take(one.home.daemon_lock, wait=0)
    assert lock is not None
    with pytest.raises(RefusedError, match="one would go on with the former key"):
        seal_keys.replace(one)
    lock.release()


def test_a_store_that_is_away_changes_no_key(one: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    former = sealing(one)
    monkeypatch.setattr(host_rows, "every", Mock(side_effect=OperationalError("", None, Exception("away"))))
    with pytest.raises(OperationalError):
        seal_keys.replace(one, now=True)
    assert sealing(one) == former


def test_no_host_may_work_and_the_others_join_again(one: Service, tmp_path: Path) -> None:
    two = host(tmp_path, "two", one.home)
    host_rows.form(one.store, host_rows.Cluster(seal_key.fingerprint(sealing(one)), "service", "0.2.0"))
    for service in (one, two):
        beat(service)
    with pytest.raises(RefusedError, match="one, two would go on with the former key") as refused:
        seal_keys.replace(one)
    assert str(refused.value.hint).splitlines()[0] == "on one: service daemon stop"
    for name in ("one", "two"):
        host_rows.stop(one.store, name, started_at=1.0)
    one.home.seal_key_open.touch()
    replaced = seal_keys.replace(one)
    assert replaced.hosts == ("two",)
    [new] = seal_key.every(one.home.root)
    known = host_rows.cluster(one.store)
    assert known is not None
    assert known.key == seal_key.fingerprint(new)
    assert not one.home.seal_key_open.exists()
