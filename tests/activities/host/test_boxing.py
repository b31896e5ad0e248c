"""Which box a run gets: what its settings, its program and the machine come to (ruling N2)."""

import os
from pathlib import Path
from typing import Any

import pytest

from activities.agents.adapter import CannotLaunchError, Launch, ProgramCall
from activities.agents.registry import adapters_of
from activities.boxes import machine
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.machine import Machine
from activities.host import boxing
from activities.host.boxing import Wanted
from activities.settings.home import Home
from activities.settings.model import RuntimeSection, Settings
from tests.activities.agents.recorded import RUNTIMES, a_call, a_run
from workflows.contract.models import AutonomyPolicy

pytestmark = pytest.mark.ruling("N2")
GOOD = Machine(bwrap="", landlock=7, own_network=True)
LOGINS = {"codex": ".codex/auth.json", "claude": ".claude/.credentials.json", "kimi": ".kimi-code/credentials/kimi"}


@pytest.fixture
def users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody who has logged in everywhere."""
    monkeypatch.setattr(machine, "look", lambda _: GOOD)
    for login in LOGINS.values():
        (tmp_path / "h" / login).parent.mkdir(parents=True)
        (tmp_path / "h" / login).write_text("login")
    (tmp_path / "h" / ".claude" / "settings.json").write_text("{}")
    (tmp_path / "h" / ".claude" / "history.jsonl").write_text("everything that was ever asked")
    return tmp_path / "h"


def boxed(home: Home, users_home: Path, runtime: str, launch: Launch, **section: Any) -> Box | None:
    settings = Settings.model_validate({"runtimes": {runtime: section}})
    environ = {"HOME": str(users_home), "PATH": "/usr/bin:/bin"}
    work = home.worktrees / "w"
    work.mkdir(parents=True, exist_ok=True)
    return boxing.box_of(home, settings, environ, Wanted(runtime, launch, (), work, home.runs / "job-1.1"))


def of_program(home: Home, users_home: Path, program: str, **section: Any) -> Box:
    environ = {"HOME": str(users_home), "PATH": "/usr/bin:/bin"}
    adapter = adapters_of(Settings(), environ)[RUNTIMES[program]]
    call: ProgramCall = a_call(home.root, a_run(program, AutonomyPolicy.DANGER_FULL_ACCESS))
    box = boxed(home, users_home, RUNTIMES[program], adapter.launch(call), **section)
    assert box
    return box


@pytest.mark.parametrize("program", LOGINS)
def test_a_program_finds_its_own_login_and_no_other(home: Home, users_home: Path, program: str) -> None:
    box = of_program(home, users_home, program)
    assert users_home / LOGINS[program] in box.writable
    for other in set(LOGINS) - {program}:
        theirs = users_home / LOGINS[other]
        assert not any(theirs.is_relative_to(place) for place in box.places)
    assert box.network is Network.MODEL
    assert box.hosts


def test_settings_and_instructions_cannot_be_changed_and_histories_are_not_there(home: Home, users_home: Path) -> None:
    """What it could plant there would run outside, when its owner uses the program."""
    box = of_program(home, users_home, "claude")
    assert users_home / ".claude" / "settings.json" in box.readable
    assert not any((users_home / ".claude" / "history.jsonl").is_relative_to(place) for place in box.places)
    assert users_home / ".claude" in box.scratch


def test_shell_agents_have_the_whole_network_unless_the_settings_say_less(home: Home, users_home: Path) -> None:
    launch = Launch(("true",), {})
    for said, network in (("", Network.FULL), ("model", Network.MODEL), ("none", Network.NONE)):
        box = boxed(home, users_home, "shell", launch, network=said)
        assert box
        assert box.network is network
    assert boxed(home, users_home, "shell", launch, box="none") is None


def test_the_provider_of_the_operator_s_own_variables_is_let_through(home: Home, users_home: Path) -> None:
    named = {"A_BASE_URL": "https://llm.corp/v1", "B_BASE_URL": "http://localhost:81", "OTHER": "https://x"}
    launch = Launch(("true",), named)
    box = boxed(home, users_home, "shell", launch, network="model", hosts=["more.example"])
    assert box
    assert box.hosts == ("more.example", "llm.corp:443", "127.0.0.1:81")


def test_without_a_network_of_its_own_bubblewrap_is_refused_and_says_what_to_set(
    home: Home, users_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "look", lambda _: Machine(bwrap="", landlock=7, own_network=False))
    with pytest.raises(CannotLaunchError) as refused:
        boxed(home, users_home, "shell", Launch(("true",), {}), network="none")
    assert "no network of its own" in refused.value.message
    assert 'network = "full"' in refused.value.hint


@pytest.mark.parametrize(
    ("said", "there", "kind"),
    [
        ("auto", Machine("", 7), BoxKind.BWRAP),
        ("auto", Machine("missing", 7), BoxKind.LANDLOCK),
        ("auto", Machine("missing", 0), None),
        ("bwrap", Machine("missing", 7), None),
        ("landlock", Machine("", 0), None),
        ("landlock", Machine("", 7), BoxKind.LANDLOCK),
    ],
)
def test_the_best_box_or_the_one_that_was_said_or_none(said: Any, there: Machine, kind: BoxKind | None) -> None:
    section = RuntimeSection(box=said)
    if kind:
        assert boxing.kind_of(section, "shell", there) is kind
        return
    with pytest.raises(CannotLaunchError) as refused:
        boxing.kind_of(section, "shell", there)
    assert "without one no agent is run" in refused.value.message


def test_a_folder_that_an_agent_has_sent_elsewhere_is_not_handed_over(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root hands anything over")
    (tmp_path / "cache").mkdir()
    (tmp_path / "private/here").mkdir(parents=True)
    (tmp_path / "cache/tool").symlink_to(tmp_path / "private")
    os.chown(tmp_path / "cache", 64_100, 64_100)
    work = tmp_path / "work"
    box = Box(BoxKind.BWRAP, Network.NONE, work, tmp_path, tmp_path, write=(tmp_path / "cache/tool/here",), uid=64_100)
    with pytest.raises(CannotLaunchError) as refused:
        boxing.hand_over(box)
    assert "leads elsewhere by a link" in refused.value.message
    assert refused.value.hint == "service help boxes"
    assert (tmp_path / "private/here").stat().st_uid == 0
