"""The GitHub process as a member of the group: only with an account, and no other member receives its secrets (L2,
L8).
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.daemon import control, foreground
from bridge.daemon.member import MemberProgram
from bridge.daemon.options import DaemonOptions
from bridge.machine.daemon_state import DaemonState, GroupPhase, StateFile
from bridge.machine.locks import FileLock
from bridge.operations.service import Service
from cli.main import main

pytestmark = pytest.mark.ruling("L2", "L8")

TOKEN, HOOK = "ghp_of_the_account", "what signs deliveries"
ACCOUNT = '[github]\ntoken_env = "DESK_TOKEN"\nwebhook_secret_env = "HOOK_SECRET"\n'
APP = '[github]\napp_id = "1"\ninstallation_id = "2"\nprivate_key_file = "{key}"\n'


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", TOKEN)
    monkeypatch.setenv("HOOK_SECRET", HOOK)


@pytest.fixture
def lock(home: Home) -> Iterator[FileLock]:
    taken = FileLock.take(home.server_lock, wait=0)
    assert taken is not None
    yield taken
    taken.release()


def options(home: Home) -> DaemonOptions:
    any_port = {"temporal_port": 0, "bridge_port": 0}
    return control._options(Service(home), None, None, strict_ports=False).model_copy(update=any_port)


def members(home: Home, lock: FileLock, *, embedded: bool) -> dict[str, MemberProgram]:
    first = DaemonState(pid=os.getpid(), phase=GroupPhase.STARTING, started_at=datetime.now(UTC), version="1")
    state, wanted = StateFile(home.daemon_state, first), options(home)
    programs = (
        foreground._embedded_members(home, wanted, state, lock)
        if embedded
        else foreground._external_members(home, wanted, state)
    )
    return {member.name: member for member in programs}


def test_without_an_account_there_is_no_such_member(home: Home, lock: FileLock) -> None:
    home.config.write_text("[github]\ncheck = true\n")
    assert list(members(home, lock, embedded=True)) == ["server", "worker", "bridge", "commands"]
    assert options(home).github_command == ()


@pytest.mark.parametrize("embedded", [True, False])
def test_each_secret_is_handed_to_the_one_that_needs_it(home: Home, lock: FileLock, embedded: bool) -> None:
    home.config.write_text(ACCOUNT)
    programs = members(home, lock, embedded=embedded)
    assert list(programs)[-4:] == ["worker", "bridge", "github", "commands"]
    assert {name for name, each in programs.items() if TOKEN in each.env.values()} == {"github"}
    assert {name for name, each in programs.items() if HOOK in each.env.values()} == {"bridge"}
    assert programs["github"].argv[-2:] == ("-m", "bridge.github")


def test_a_github_app_needs_no_variable(home: Home, lock: FileLock, tmp_path: Path) -> None:
    home.config.write_text(APP.format(key=tmp_path / "key.pem"))
    programs = members(home, lock, embedded=False)
    assert "github" in programs
    assert programs["worker"].env["PATH"] == os.environ["PATH"]


def test_what_the_daemon_is_started_with_holds_no_secret(home: Home) -> None:
    home.config.write_text(ACCOUNT)
    text = options(home).model_dump_json()
    assert "DESK_TOKEN" in text
    assert TOKEN not in text
    assert HOOK not in text


@pytest.mark.parametrize("words", [["start"], ["run"]])
@pytest.mark.parametrize("value", [None, "", "  ", "two words", "n\u00f6n"])
def test_a_missing_token_is_a_sentence_before_anything_starts(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], value: str | None
) -> None:
    home.config.write_text(ACCOUNT)
    monkeypatch.delenv("DESK_TOKEN") if value is None else monkeypatch.setenv("DESK_TOKEN", value)
    assert main(["daemon", *words]) == 2
    output = capsys.readouterr().err
    assert output.startswith("error: ")
    assert "DESK_TOKEN" in output
    assert "try: export DESK_TOKEN=..." in output
    assert not home.daemon_state.exists()


@pytest.mark.parametrize(("mode", "why"), [(0o644, "is open to others"), (None, "cannot be read")])
def test_so_is_a_key_that_is_open_or_not_there(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int | None, why: str
) -> None:
    key = tmp_path / "key.pem"
    home.config.write_text(APP.format(key=key))
    if mode is not None:
        key.touch(mode)
        key.chmod(mode)
    assert main(["daemon", "start"]) == 2
    assert why in capsys.readouterr().err
    assert not home.daemon_state.exists()


def test_a_daemon_that_runs_needs_no_token_to_be_told_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.config.write_text(ACCOUNT)
    lock = FileLock.take(home.daemon_lock, wait=0)
    assert lock is not None
    running = DaemonState(pid=os.getpid(), phase=GroupPhase.RUNNING, started_at=datetime.now(UTC), version="1")
    StateFile(home.daemon_state, running)
    monkeypatch.delenv("DESK_TOKEN")
    assert main(["daemon", "start"]) == 0
    lock.release()
