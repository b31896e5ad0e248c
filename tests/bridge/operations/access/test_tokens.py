"""Named tokens where hosts share a store: one set for all bridges, and a home's own are moved there once (Q10)."""

import asyncio
import stat
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import event

from activities.settings.home import Home
from activities.store.registry import token_rows
from bridge.machine import tokens_file
from bridge.machine.token_scopes import TokenScope
from bridge.machine.tokens_file import NamedTokens
from bridge.operations.access import tokens
from bridge.operations.service import Service
from tests.bridge.http.conftest import caller
from tests.bridge.operations.access.hosts import host
from tests.waiting import PATIENCE
from workflows.model.errors import NotFoundError, RefusedError, UnreachableError

pytestmark = pytest.mark.ruling("Q10")


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Service, Service]:
    monkeypatch.setattr(tokens, "WAIT_SECONDS", PATIENCE)
    return host(tmp_path, "one"), host(tmp_path, "two")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(tokens, "STALE_SECONDS", 0.0)


def test_one_host_keeps_them_in_its_home(bare_home: Home) -> None:
    service = Service(bare_home)
    made = tokens.add(service, "ci", "read")
    assert NamedTokens(bare_home).find(made.encode())
    assert stat.S_IMODE(bare_home.bridge_tokens.stat().st_mode) == 0o600
    assert isinstance(tokens.lookup(service), NamedTokens)
    assert not bare_home.store.exists()


@pytest.mark.usefixtures("at_once")
def test_a_token_opens_every_bridge_until_it_is_taken_back_anywhere(hosts: tuple[Service, Service]) -> None:
    one, two = hosts
    made, bridges = tokens.add(one, "ci", "ask"), [tokens.lookup(each) for each in hosts]
    for bridge in bridges:
        token = bridge.find(made.encode())
        assert token is not None
        assert (token.name, token.scope) == ("ci", TokenScope.ASK)
        assert bridge.find(token.digest.encode()) is None
    with pytest.raises(RefusedError, match="there is a token ci already"):
        tokens.add(two, "ci", "act")
    tokens.remove(two, "ci")
    assert [bridge.find(made.encode()) for bridge in bridges] == [None, None]
    with pytest.raises(NotFoundError, match="there is no token ci"):
        tokens.remove(one, "ci")


def test_a_busy_bridge_reads_them_rarely(hosts: tuple[Service, Service]) -> None:
    made, bridge = tokens.add(hosts[0], "ci", "read"), tokens.lookup(hosts[0])
    statements = list[str]()
    event.listen(hosts[0].store, "before_cursor_execute", lambda *args: statements.append(args[2]))
    assert all(bridge.find(made.encode()) for _ in range(1000))
    assert len(statements) == 1


@pytest.mark.usefixtures("at_once")
def test_a_store_that_is_away_opens_nothing(hosts: tuple[Service, Service], tmp_path: Path) -> None:
    made, bridge = tokens.add(hosts[0], "ci", "read"), tokens.lookup(hosts[0])
    assert bridge.find(made.encode())
    hosts[0].store.dispose()
    (tmp_path / "fleet.db").rename(tmp_path / "away.db")
    with pytest.raises(UnreachableError, match="cannot be read from the store"):
        bridge.find(made.encode())


async def test_a_store_that_is_slow_holds_up_no_other_call(
    hosts: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Event()
    monkeypatch.setattr(token_rows, "every", lambda _: answers.wait(PATIENCE) and [])
    async with caller(hosts[0], Authorization="Bearer a-token") as call:
        waits = asyncio.create_task(call.get("/v1/jobs"))
        await asyncio.sleep(0.1)
        assert (await call.get("/healthz")).status_code == 200
        assert not waits.done()
        answers.set()
        assert (await waits).status_code == 401


@pytest.mark.usefixtures("at_once")
def test_those_in_the_file_of_a_home_are_moved_into_the_store_once(hosts: tuple[Service, Service]) -> None:
    one, two = hosts
    secrets = [tokens_file.add(each.home, name, "read") for each, name in ((one, "ci"), (two, "ci"), (two, "web"))]
    assert [each.name for each in tokens.every(one)] == ["ci"]
    assert [each.name for each in tokens.every(two)] == ["ci", "ci-two", "web"]
    assert [each.home.bridge_tokens.exists() for each in hosts] == [False, False]
    bridge = tokens.lookup(one)
    assert [found and found.name for found in map(bridge.find, map(str.encode, secrets))] == ["ci", "ci-two", "web"]


def test_none_is_lost_where_another_host_has_its_second_name_too(hosts: tuple[Service, Service]) -> None:
    one, two = hosts
    for name in ("ci", "ci-two"):
        tokens.add(one, name, "read")
    secret = tokens_file.add(two.home, "ci", "act")
    token = tokens.lookup(two).find(secret.encode())
    assert token is not None
    assert token.name == f"ci-{token.digest[:8]}"
