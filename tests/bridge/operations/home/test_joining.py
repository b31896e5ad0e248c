"""Joining a fleet: a token that works once and for a while, an answer for its holder alone, a home that stays whole."""

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from activities.sealing import seal_key
from activities.sealing.invitation import Invitation
from activities.settings.home import Home
from activities.store import schema
from activities.store.queries import now
from activities.store.registry import host_rows
from bridge.operations.health import doctor
from bridge.operations.health.findings import Finding, Level
from bridge.operations.home import joining
from bridge.operations.home.joining import Joined
from bridge.operations.service import Service
from cli.main import main
from tests.bridge.conftest import Live
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError

pytestmark = pytest.mark.ruling("Q1.join")

AGAIN = "on a host of the fleet: service host invite"


def fleet(home: Home, database: Path) -> Service:
    """Return a host of a fleet; its database stands for PostgreSQL."""
    home.ensure().config.write_text(
        f'[temporal]\naddress = "10.0.0.7:7233"\nnamespace = "team"\nport = 7300\n[store]\nurl = "sqlite:///{database}"\n'
        '[worker]\nhost = "web-1"\nmax_parallel_jobs = 3\n[orchestrate]\nmax_delegation_depth = 2\n'
        '[prices."lab/model 5"]\ninput = 1.5\noutput = 3.0\n'
    )
    service = Service(home)
    key = seal_key.fingerprint(seal_key.ensure(home.root))
    host_rows.form(service.store, host_rows.Cluster(key, "team", host_rows.release()))
    return service


@dataclass(frozen=True)
class Scene:
    """A host of a fleet whose bridge listens, and a machine without a home."""

    there: Live
    new: Service

    @property
    def token(self) -> str:
        return joining.invite(self.there.service).token

    def join(self, token: str, source: str = "", host: str = "") -> Joined:
        return joining.join(Service(self.new.home), token, source or self.there.url, host)

    def refusal(self, token: str, source: str = "", host: str = "") -> ServiceError:
        """Return why joining is refused; the home stays as it was."""
        before = content(self.new.home)
        with pytest.raises(ServiceError) as refused:
            self.join(token, source, host)
        assert content(self.new.home) == before
        return refused.value


def content(home: Home) -> dict[str, bytes] | None:
    if not home.root.exists():
        return None
    return {path.name: path.read_bytes() for path in home.root.iterdir() if path.is_file() and path.suffix != ".lock"}


@pytest.fixture
def scene(home: Home, tmp_path: Path, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(doctor, "temporal", lambda _: iter(()))
    return Scene(listening(fleet(home, tmp_path / "fleet.db")), Service(Home(tmp_path / "new")))


def test_a_machine_with_a_token_gets_what_all_hosts_have_in_common_and_keeps_what_is_its_own(scene: Scene) -> None:
    joined = scene.join(scene.token, host="web-2")
    assert (joined.host, joined.namespace) == ("web-2", "team")
    new, old = Service(scene.new.home).settings, scene.there.service.settings
    for same in ("temporal.address", "temporal.namespace", "store.url", "orchestrate.max_delegation_depth"):
        section, key = same.split(".")
        assert getattr(getattr(new, section), key) == getattr(getattr(old, section), key), same
    assert new.prices == old.prices
    assert (new.worker.host, new.worker.max_parallel_jobs, new.temporal.port) == ("web-2", 8, 7233)
    assert seal_key.every(scene.new.home.root) == seal_key.every(scene.there.service.home.root)
    assert stat.S_IMODE(scene.new.home.seal_key.stat().st_mode) == 0o600


def test_a_token_works_once(scene: Scene, tmp_path: Path) -> None:
    token = scene.token
    scene.join(token, host="web-2")
    other = Scene(scene.there, Service(Home(tmp_path / "other")))
    refusal = other.refusal(token, host="web-3")
    assert refusal.message.startswith("the invitation was used already, at ")
    assert refusal.message.endswith(" by web-2")
    assert refusal.hint == AGAIN


def test_a_token_expires(scene: Scene) -> None:
    token = scene.token
    with scene.there.service.store.begin() as connection:
        connection.execute(update(schema.invites).values(expires_at=now(connection) - 1))
    assert scene.refusal(token).message.startswith("the invitation expired at ")


def test_a_token_of_another_fleet_is_not_known(scene: Scene, tmp_path: Path) -> None:
    foreign = joining.invite(fleet(Home(tmp_path / "foreign"), tmp_path / "foreign.db")).token
    refusal = scene.refusal(foreign)
    assert (type(refusal), refusal.hint) == (RefusedError, AGAIN)
    assert refusal.message == "the host web-1 knows no such invitation: it is of another fleet"


def test_what_is_no_token_is_said_and_asks_nobody(scene: Scene) -> None:
    token = scene.token
    other = "x" if token[40] != "x" else "y"
    broken = (token[:-3], token.replace("join1-", "join2-"), token[:40] + other + token[41:])
    for text in ("", "join1-", "join1-AAAA", "hello", "join1-é", *broken):
        assert isinstance(scene.refusal(text), UsageError), text


def test_whoever_hears_the_answer_learns_nothing(scene: Scene) -> None:
    invitation = Invitation.read(scene.token)
    assert invitation is not None
    shown = joining.request(invitation, "web-2")
    answer = httpx.post(f"{scene.there.url}/join", headers={joining.HEADER: shown})
    assert answer.status_code == 200
    key = seal_key.ensure(scene.there.service.home.root)
    assert all(secret not in answer.content for secret in (key, key.hex().encode(), b"fleet.db", b"team"))
    assert invitation.secret.hex() not in shown
    assert Invitation.of(os.urandom(32), invitation.number).decrypt_answer(answer.content) is None
    assert "fleet.db" in (invitation.decrypt_answer(answer.content) or b"").decode()


def test_nobody_without_the_token_s_secret_uses_it_up(scene: Scene) -> None:
    token = scene.token
    invitation = Invitation.read(token)
    assert invitation is not None
    for shown in ("", "x", f"{invitation.number.hex()} {'0' * 64} web-9", f"{'0' * 32} {invitation.proof} web-9"):
        with pytest.raises(NotFoundError):
            joining.answer(scene.there.service, shown)
    scene.join(token)


def test_a_home_with_work_or_another_key_of_its_own_is_refused_before_the_token_is_used(scene: Scene) -> None:
    token, home = scene.token, scene.new.home.ensure()
    key = seal_key.ensure(home.root)
    refusal = scene.refusal(token)
    assert refusal.message == f"{home.root} has another seal.key than the fleet"
    home.seal_key.unlink()
    home.store.touch()
    assert "holds a service of its own (store.db)" in scene.refusal(token).message
    home.store.unlink()
    seal_key.take(home.root, seal_key.ensure(scene.there.service.home.root), ())
    assert key != seal_key.read(home.root)
    scene.join(token)


def test_keys_that_the_fleet_no_longer_has_go_with_the_next_join(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """`replace-key` withdraws keys that others could have read, and has the other hosts join again."""
    scene.join(scene.token, host="web-2")
    seal_key.add(scene.new.home.root, b"r" * seal_key.BYTES)
    with monkeypatch.context() as broken:
        broken.setattr(doctor, "foundation", lambda _: [Finding("store", Level.WRONG, "away")])
        scene.refusal(scene.token)
    assert len(seal_key.every(scene.new.home.root)) == 2, "a join that fails changes nothing"
    scene.join(scene.token)
    assert seal_key.every(scene.new.home.root) == seal_key.every(scene.there.service.home.root)


def test_settings_that_are_there_stay_and_those_that_differ_are_named(scene: Scene) -> None:
    config = scene.new.home.ensure().config
    config.write_text('# mine\n[worker]\nhost = "web-7"\n\n[temporal]\nui_port = 8300\nnamespace = "mine"\n')
    refusal = scene.refusal(scene.token)
    assert refusal.message == f'temporal.namespace is "mine" in {config}, and in the fleet "team"'
    config.write_text(config.read_text().replace("mine", "team"))
    assert "names this host web-7, not web-8" in scene.refusal(scene.token, host="web-8").message
    assert scene.join(scene.token).host == "web-7"
    assert config.read_text().startswith("# team\n")
    settings = Service(scene.new.home).settings
    assert (settings.temporal.ui_port, settings.temporal.address) == (8300, "10.0.0.7:7233")


def test_a_machine_that_could_not_work_stays_as_it_was(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "foundation", lambda _: [Finding("store", Level.WRONG, "away")])
    refusal = scene.refusal(scene.token, host="web-1")
    assert refusal.message == "this host could not work, so nothing was changed:\nstore: away"
    assert str(refusal.hint).endswith(AGAIN)


def test_a_name_in_use_is_refused_before_the_token_is_used(scene: Scene) -> None:
    token, store = scene.token, scene.there.service.store
    host_rows.see(store, "web-1", slots=1, started_at=1.0, machine="another")
    refusal = scene.refusal(token, host="web-1")
    assert refusal.message.startswith("the host name web-1 is in use, seen ")
    assert str(refusal.hint).startswith("service host join TOKEN --host ANOTHER_NAME  (or wait ")
    scene.join(token, host="web-2")


def test_a_host_that_does_not_answer_is_named_with_another_way(scene: Scene) -> None:
    token = scene.token
    for source, says in (
        ("http://127.0.0.1:1", "http://127.0.0.1:1 does not answer"),
        (f"{scene.there.url}/v1", "does not accept invitations: a token is needed"),
        ("ftp://web-1", "'ftp://web-1' is no address"),
        ("ssh://-oProxyCommand=x", "service cannot be run by ssh://"),
    ):
        assert says in scene.refusal(token, source).message
    scene.join(token)


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home) -> Path:
    """Put an `ssh` on the PATH that runs the command on this machine, in the other host's home."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    typed = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/typed\nwhile [ "$1" != service ]; do shift; done; shift\n'
        f'SERVICE_HOME={home.root} exec {sys.executable} -c "{typed}" "$@"\n'
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path / "typed"


def test_a_host_is_asked_by_ssh(scene: Scene, ssh: Path) -> None:
    token = scene.token
    assert scene.join(token, "ssh://ann@web-1:2222", host="web-2").host == "web-2"
    assert ssh.read_text() == "-p 2222 -- ann@web-1 service host answer\n"
    other = Scene(scene.there, Service(Home(scene.new.home.root.with_name("other"))))
    assert other.refusal(token, "ssh://web-1").message.startswith("the invitation was used already")


def test_one_host_alone_invites_nobody(home: Home) -> None:
    with pytest.raises(RefusedError, match="runs on a database of its own, which no other host can use"):
        joining.invite(Service(home))


def test_what_would_stand_in_the_way_is_said_with_the_invitation(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = fleet(home, tmp_path / "fleet.db")
    home.config.write_text(home.config.read_text().replace("10.0.0.7", "127.0.0.1"))
    assert main(["host", "invite"]) == 0
    printed = capsys.readouterr()
    [command] = printed.out.splitlines()
    assert command.startswith("service host join join1-")
    assert command.endswith(" --from ssh://web-1")
    for says in ("the database is at localhost", "Temporal is at 127.0.0.1", "only listens for its own machine"):
        assert f"warning: {says}" in printed.err.replace("this host's bridge ", "")
    invitation = Invitation.read(command.split()[3])
    assert invitation is not None
    assert joining.answer(service, joining.request(invitation, "web-2"))


@pytest.mark.parametrize(
    ("theirs", "own", "gets"),
    [
        ('addr = "10.0.0.7"\nallow_remote = true', "", {"addr": "0.0.0.0", "allow_remote": True}),
        ('addr = "::"\nallow_remote = true\nport = 9000', "", {"addr": "::", "allow_remote": True}),
        ('addr = "10.0.0.7"\nallow_remote = true', 'addr = "127.0.0.1"', {"addr": "127.0.0.1"}),
        ('addr = "10.0.0.7"\nallow_remote = true', 'url = "https://web-2"', {"url": "https://web-2"}),
        ("", "", {}),
        ("allow_remote = true", "", {}),
        ('url = "https://web-1"', "", {}),
    ],
    ids=["all", "ipv6", "its-own", "its-proxy", "loopback", "allowed-loopback", "proxy"],
)
@pytest.mark.ruling("Q3")
def test_the_bridge_of_a_new_host_listens_for_the_others_if_that_of_the_fleet_does(
    scene: Scene, theirs: str, own: str, gets: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = scene.there.service.home
    there.config.write_text(f"{there.config.read_text()}[bridge]\n{theirs}\n")

    def answered(invitation: Invitation, _source: str, name: str) -> bytes:
        return joining.answer(Service(there), joining.request(invitation, name))

    monkeypatch.setattr(joining, "_fetch", answered)
    scene.new.home.ensure().config.write_text(f"[bridge]\n{own}\n")
    scene.join(joining.invite(Service(there)).token)
    typed = Service(scene.new.home).reading.typed
    assert {path[1]: value for path, value in typed.items() if path[0] == "bridge"} == gets
