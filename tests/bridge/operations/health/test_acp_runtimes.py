"""`service runtime check` and doctor's boxes, for programs that speak ACP: they are asked by `initialize` (S7)."""

import sys
from pathlib import Path

import pytest

from activities.boxes import probes, try_boxes
from activities.boxes.probes import Proof
from activities.boxes.try_boxes import Machine
from activities.runtimes.known_runtimes import OPENCODE
from activities.settings.home import Home
from bridge.operations.health import boxes, runtimes
from bridge.operations.health.runtimes import RuntimeStatus
from bridge.operations.service import Service
from cli.main import main
from tests import acp_agent

pytestmark = [pytest.mark.ruling("S7")]
KNOWN = ".".join(map(str, OPENCODE.minimum))


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a person on a machine that has one program, `opencode`, which is the fake agent."""
    for folder in ("bin", "user"):
        (tmp_path / folder).mkdir()
    for name in OPENCODE.passes:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    install(tmp_path / "user", f"#!{sys.executable}\n{Path(acp_agent.__file__).read_text()}")
    (tmp_path / "user" / "version").write_text(KNOWN)
    return tmp_path / "user"


def install(user: Path, text: str) -> None:
    program = user.parent / "bin/opencode"
    program.write_text(text)
    program.chmod(0o755)


def log_in(user: Path) -> None:
    login = user / ".local/share/opencode/auth.json"
    login.parent.mkdir(parents=True)
    login.write_text('{"a provider": {"type": "api", "key": "any"}}')


def seen(home: Home) -> RuntimeStatus:
    (runtime,) = runtimes.check_runtimes(Service(home), "opencode")
    return runtime


def test_name_version_and_login_are_told_as_the_program_tells_them(home: Home, user: Path) -> None:
    runtime = seen(home)
    assert (runtime.works, runtime.version, runtime.logged_in) == (False, KNOWN, False)
    assert (runtime.says, runtime.fix) == (f"fake {KNOWN} by ACP, not logged in", OPENCODE.way_in)
    log_in(user)
    runtime = seen(home)
    assert (runtime.works, runtime.logged_in, runtime.fix) == (True, True, "")
    assert runtime.says == f"fake {KNOWN} by ACP, logged in"


def test_an_older_version_is_told_with_the_command_that_updates_it(home: Home, user: Path) -> None:
    log_in(user)
    (user / "version").write_text("1.2.3")
    runtime = seen(home)
    assert f"older than {KNOWN}, with which it is known to work" in runtime.says
    assert runtime.fix == "npm install -g opencode-ai@latest"


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo nonsense; exit 4", "it ended with exit status 4 before it answered initialize"),
        ("exec sleep 600", "it did not answer initialize in 1 s"),
        ('read line; echo \'{"id": 1, "result": {"protocolVersion": 7}}\'; cat', "it speaks version 7"),
    ],
)
def test_a_program_that_does_not_speak_acp_says_so_and_is_ended(
    home: Home, user: Path, monkeypatch: pytest.MonkeyPatch, does: str, says: str
) -> None:
    monkeypatch.setattr(runtimes, "ACP_SECONDS", 1.0 if "sleep" in does else 60.0)
    install(user, f"#!/bin/sh\necho $$ > {user / 'pid'}\n{does}\n")
    runtime = seen(home)
    assert runtime.works is False
    assert f"does not speak ACP: {says}" in runtime.says
    assert not Path("/proc", (user / "pid").read_text().strip()).exists()


def test_the_list_has_those_that_are_here_or_set_up_and_no_other(
    home: Home, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.config.write_text('[runtimes.mine]\nadapter = "acp"\ncommand = ["opencode"]\n')
    assert main(["runtime", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("opencode", "mine"))
    assert not any(name in printed for name in ("copilot", "qwen", "kimi-acp"))


@pytest.mark.ruling("N2")
def test_doctor_says_in_which_box_they_run(home: Home, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "proof_of", lambda *_: Proof())
    monkeypatch.setattr(try_boxes, "look", lambda _: Machine(bwrap="", own_network=True))
    home.config.write_text('[runtimes.mine]\nadapter = "acp"\ncommand = ["opencode"]\nbox = "none"\n')
    first, second = (finding.says for finding in boxes.box_findings(Service(home)))
    assert first.startswith("mine runs in no box")
    assert "for opencode, shell, by bwrap" in second


def test_an_agent_is_registered_by_one_line(home: Home, user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--runtime", "opencode", "--capabilities", "ask,implement", "--autonomy", "workspace-write")
    assert main(["agent", "add", "mine", *words]) == 0
    capsys.readouterr()
    assert main(["agent", "show", "mine"]) == 0
    assert "opencode" in capsys.readouterr().out
