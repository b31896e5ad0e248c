"""Turning the seal key: every host has the new one before any seals with it; an unused former one goes (Q10)."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from activities.host import seal_keys as at_home
from activities.sealing import payload_seals, seal_key
from activities.settings.home import Home
from activities.store.registry import hosts
from activities.store.registry import seal_keys as stored
from bridge.operations.home import seal_keys
from bridge.operations.pipelines import definitions
from bridge.operations.service import Service
from tests.waiting import PATIENCE
from workflows.model.errors import NotFoundError, RefusedError, UnreachableError

pytestmark = pytest.mark.ruling("Q10")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_keys, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(seal_keys, "BEATS_SECONDS", 0.3)
    monkeypatch.setattr(payload_seals, "LOOK_SECONDS", 0.0)

    async def nothing_open(_service: Service, _left_at: float) -> list[str]:
        return []

    monkeypatch.setattr(seal_keys, "_sealed_with", nothing_open)


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
    """Do what a worker does every ten seconds."""
    at_home.follow(service.home.root, service.store)
    keys = tuple(at_home.by_fingerprint(service.home.root))
    hosts.see(service.store, service.settings.host, slots=1, started_at=1.0, key=keys[0], keys=keys)


@pytest.fixture
def beating(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Service], None]]:
    """Return a function that starts the beats of a host until the end of the test; they may be slow."""
    monkeypatch.setattr(seal_keys, "BEATS_SECONDS", PATIENCE)
    end, threads = threading.Event(), list[threading.Thread]()

    def go_on(service: Service) -> None:
        while not end.is_set():
            beat(service)
            time.sleep(0.02)

    def begin(service: Service) -> None:
        beat(service)
        threads.append(threading.Thread(target=go_on, args=(service,)))
        threads[-1].start()

    yield begin
    end.set()
    for thread in threads:
        thread.join()


def sealing(service: Service) -> bytes:
    return seal_key.ensure(service.home.root)


def is_away(store: Engine, name: str) -> None:
    hosts.stop(store, name, started_at=1.0)


def test_one_host_turns_its_key_at_once(tmp_path: Path) -> None:
    service = Service(Home(tmp_path / "home").ensure())
    former = sealing(service)
    turned = seal_keys.rotate(service)
    assert (turned.former, turned.hosts) == (seal_key.fingerprint(former)[:12], ())
    assert seal_key.every(service.home.root) == (sealing(service), former)
    assert sealing(service) != former
    assert seal_keys.remove(service, turned.former).key == turned.former
    assert seal_key.every(service.home.root) == (sealing(service),)


def test_every_host_has_the_new_key_before_one_seals_with_it(
    tmp_path: Path, beating: Callable[[Service], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = host(tmp_path, "one")
    two = host(tmp_path, "two", one.home)
    former, turn, had = sealing(one), stored.rotate, list[bool]()

    def looks_first(engine: Engine, fingerprint: str) -> None:
        had.extend(fingerprint in at_home.by_fingerprint(each.home.root) for each in (one, two))
        assert {sealing(one), sealing(two)} == {former}
        turn(engine, fingerprint)

    monkeypatch.setattr(stored, "rotate", looks_first)
    beating(two)
    turned = seal_keys.rotate(one)
    assert had == [True, True]
    assert sealing(one) == sealing(two) != former
    assert (turned.hosts, turned.behind) == (("two",), ())
    [key, now] = stored.every(one.store)
    assert key.left_at
    assert (now.wrapped, seal_key.fingerprint(sealing(one))) == ("", now.fingerprint)
    with pytest.raises(RefusedError, match="all hosts seal with"):
        seal_keys.remove(one, turned.key)
    with pytest.raises(NotFoundError, match=f"former keys are {turned.former}"):
        seal_keys.remove(one, "zz")
    seal_keys.remove(one, turned.former)
    beat(two)
    assert seal_key.every(two.home.root) == (sealing(two),)


def test_a_host_that_is_away_is_named_and_the_turn_goes_on_when_it_is_back(tmp_path: Path) -> None:
    one = host(tmp_path, "one")
    two = host(tmp_path, "two", one.home)
    former = sealing(one)
    beat(two)
    is_away(one.store, "two")
    with pytest.raises(RefusedError, match=r"waits for two \(no sign of life since") as refused:
        seal_keys.rotate(one)
    assert "on two: service daemon start" in refused.value.hint
    assert {sealing(one), sealing(two)} == {former}
    beat(two)
    is_away(one.store, "two")
    turned = seal_keys.rotate(one)
    assert turned.behind == ("two",)
    assert len(stored.every(one.store)) == 2, "the turn that was begun went on"
    with pytest.raises(RefusedError, match=r"two .* still seals with the key"):
        seal_keys.remove(one, turned.former)
    beat(two)
    seal_keys.remove(one, turned.former)


def test_with_wait_it_waits_for_a_host_that_is_away(tmp_path: Path, beating: Callable[[Service], None]) -> None:
    one = host(tmp_path, "one")
    two = host(tmp_path, "two", one.home)
    beat(two)
    is_away(one.store, "two")
    said = list[str]()

    def back_soon(what: str) -> None:
        said.append(what)
        if len(said) == 3:
            beating(two)

    assert seal_keys.rotate(one, wait=True, step=back_soon).behind == ()
    assert said[0].startswith("waiting for two (no sign of life since")
    assert said[0].endswith("which does not have the new key")


def test_what_crosses_the_store_reveals_no_key(tmp_path: Path) -> None:
    one = host(tmp_path, "one")
    two = host(tmp_path, "two", one.home)
    stranger = host(tmp_path, "stranger")
    stranger.home.seal_key.unlink()
    own = seal_key.ensure(stranger.home.root)
    beat(two)
    is_away(one.store, "two")
    with pytest.raises(RefusedError):
        seal_keys.rotate(one)
    [_, new] = seal_key.every(one.home.root)
    assert new.hex() not in (tmp_path / "fleet.db").read_bytes().decode("latin-1")
    at_home.follow(stranger.home.root, stranger.store)
    assert seal_key.every(stranger.home.root) == (own,)


def test_a_key_that_others_could_have_read_is_not_rotated(tmp_path: Path) -> None:
    service = Service(Home(tmp_path / "home").ensure())
    seal_key.ensure(service.home.root)
    service.home.seal_key_open.touch()
    with pytest.raises(RefusedError, match="must be replaced, not rotated"):
        seal_keys.rotate(service)


def test_a_rotation_succeeds_while_temporal_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedules and open trees get the new seal later, before the former key is removed."""
    service = Service(Home(tmp_path / "home").ensure())
    away = AsyncMock(side_effect=UnreachableError("Temporal cannot be reached", "service doctor"))
    with monkeypatch.context() as broken:
        broken.setattr(definitions, "schedule_again", away)
        rotated = seal_keys.rotate(service)
        assert seal_key.fingerprint(sealing(service))[:12] == rotated.key
        with pytest.raises(UnreachableError):
            seal_keys.remove(service, rotated.former)
    assert seal_keys.remove(service, rotated.former).key == rotated.former


def test_a_replacement_that_the_store_does_not_record_changes_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = host(tmp_path, "one")
    former = sealing(one)
    monkeypatch.setattr(stored, "forget", Mock(side_effect=OperationalError("", None, Exception("away"))))
    with pytest.raises(OperationalError):
        seal_keys.replace(one)
    assert sealing(one) == former


def test_a_key_that_is_lost_or_was_read_is_replaced_while_no_host_works(tmp_path: Path) -> None:
    """A turn that has begun goes with it."""
    one = host(tmp_path, "one")
    two = host(tmp_path, "two", one.home)
    hosts.form(one.store, hosts.Cluster(seal_key.fingerprint(seal_key.ensure(one.home.root)), "service", "0.2.0"))
    for each in (one, two):
        beat(each)
    with pytest.raises(RefusedError):
        seal_keys.rotate(one)
    with pytest.raises(RefusedError, match="one, two would go on with the former key") as refused:
        seal_keys.replace(one)
    assert str(refused.value.hint).splitlines()[0] == "on one: service daemon stop"
    for name in ("one", "two"):
        is_away(one.store, name)
    one.home.seal_key_open.touch()
    replaced = seal_keys.replace(one)
    assert replaced.hosts == ("two",)
    at_home.follow(one.home.root, one.store)
    [new] = seal_key.every(one.home.root)
    assert seal_key.fingerprint(new)[:12] == replaced.key
    known = hosts.cluster(one.store)
    assert known is not None
    assert known.key == seal_key.fingerprint(new)
    assert not one.home.seal_key_open.exists()
