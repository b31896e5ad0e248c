"""The box of a run, from its settings, its program and the machine (ruling N2)."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.agents.adapter import CannotLaunchError, Launch, ProgramCall
from activities.agents.registry import adapters_of
from activities.boxes import probes, try_boxes
from activities.boxes.box import Box, Network
from activities.boxes.probes import Proof
from activities.boxes.try_boxes import Machine
from activities.host import boxing
from activities.host.boxing import Wanted
from activities.runtimes.known_runtimes import PROGRAMS
from activities.settings.home import Home
from activities.settings.model import Settings
from tests.activities.agents.recorded import RUNTIMES, a_call, a_run
from workflows.contract.models import AutonomyPolicy

pytestmark = pytest.mark.ruling("N2")
GOOD = Machine(bwrap="", own_network=True)
LOGINS = {"codex": ".codex/auth.json", "claude": ".claude/.credentials.json", "kimi": ".kimi-code/credentials/kimi"}


@pytest.fixture
def users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the home of a user who has logged in to every program."""
    monkeypatch.setattr(try_boxes, "look", lambda _: GOOD)
    monkeypatch.setattr(probes, "proof_of", lambda *_: Proof())
    for login in LOGINS.values():
        (tmp_path / "h" / login).parent.mkdir(parents=True)
        (tmp_path / "h" / login).write_text("{}")
    (tmp_path / "h" / ".claude" / "settings.json").write_text("{}")
    (tmp_path / "h" / ".claude" / "history.jsonl").write_text("everything that was ever asked")
    return tmp_path / "h"


def boxed(home: Home, users_home: Path, runtime: str, launch: Launch, **section: Any) -> Box | None:
    settings = Settings.model_validate({"runtimes": {runtime: section}})
    environ = {"HOME": str(users_home), "PATH": "/usr/bin:/bin"}
    work = home.worktrees / "w"
    work.mkdir(parents=True, exist_ok=True)
    return boxing.box_of(home, settings, environ, Wanted(runtime, launch, (), work))


def of_program(home: Home, users_home: Path, program: str, **section: Any) -> Box:
    environ = {"HOME": str(users_home), "PATH": "/usr/bin:/bin"}
    adapter = adapters_of(Settings(), environ)[RUNTIMES[program]]
    call: ProgramCall = a_call(home.root, a_run(program, AutonomyPolicy.DANGER_FULL_ACCESS))
    box = boxed(home, users_home, RUNTIMES[program], adapter.launch(call), **section)
    assert box
    return box


@pytest.mark.parametrize("program", LOGINS)
def test_a_box_shows_the_program_s_own_folder_and_nothing_of_the_operator_s(
    home: Home, users_home: Path, program: str
) -> None:
    """The operator's sessions were mounted whole and writable; a file planted there would run outside the box."""
    box = of_program(home, users_home, program)
    assert not [place for place in box.places if place.resolve().is_relative_to(users_home)]
    own = home.root / "home"
    sessions = {own / name for name in PROGRAMS[program].writes}
    assert own in box.scratch
    assert sessions <= set(box.writable)
    shown = [place for place, writable in box.places.items() if not writable and place.is_relative_to(own)]
    assert [path for place in shown for path in (place, *place.rglob("*")) if path.name == Path(LOGINS[program]).name]
    assert {place for place in box.writable if place.is_relative_to(own)} == sessions
    assert box.network is Network.MODEL
    assert box.hosts


@pytest.mark.parametrize("named", [{}, {"adapter": "script", "command": ["tool"]}])
def test_shell_agents_and_scripts_reach_the_internet_and_not_this_machine_unless_the_settings_name_it(
    home: Home, users_home: Path, named: dict[str, Any]
) -> None:
    runtime = "runtime_b" if named else "shell"
    launch = Launch(("true",), {})
    expected: list[tuple[dict[str, Any], Network, tuple[str, ...]]] = [
        ({}, Network.MODEL, ("*",)),
        ({"hosts": ["127.0.0.1:5432"]}, Network.MODEL, ("*", "127.0.0.1:5432")),
        ({"network": "model", "hosts": ["a.example"]}, Network.MODEL, ("a.example",)),
        ({"network": "none"}, Network.NONE, ()),
        ({"network": "full"}, Network.FULL, ()),
    ]
    for section, network, hosts in expected:
        box = boxed(home, users_home, runtime, launch, **named, **section)
        assert box
        assert (box.network, box.hosts) == (network, hosts)
    assert boxed(home, users_home, runtime, launch, **named, box="none") is None


def test_the_provider_of_the_operator_s_own_variables_is_let_through(home: Home, users_home: Path) -> None:
    named = {"A_BASE_URL": "https://llm.corp/v1", "B_BASE_URL": "http://localhost:81", "OTHER": "https://x"}
    launch = Launch(("true",), named)
    box = boxed(home, users_home, "shell", launch, network="model", hosts=["more.example"])
    assert box
    assert box.hosts == ("more.example", "llm.corp:443", "127.0.0.1:81")


def test_a_provider_with_an_impossible_host_is_said_and_only_where_hosts_matter(home: Home, users_home: Path) -> None:
    for url in ("http://127.1/v1", "https://llm_1:443", "https://llm.corp.", "https://llm:99999", "http://[::1"):
        launch = Launch(("true",), {"A_BASE_URL": url})
        with pytest.raises(CannotLaunchError) as refused:
            boxed(home, users_home, "shell", launch, network="model")
        assert refused.value.message.startswith("A_BASE_URL names the host ")
        assert boxed(home, users_home, "shell", launch, network="full")


@pytest.mark.parametrize(
    ("there", "proof", "why"),
    [
        (Machine("missing"), Proof(), "bwrap: missing"),
        (GOOD, Proof(escaped=("read a key",)), "bwrap: in it a program can read a key"),
        (GOOD, Proof("no room"), "bwrap: no room"),
        (replace(GOOD, own_network=False), Proof(), "bwrap: network none needs a network namespace"),
    ],
)
@pytest.mark.parametrize("box", ["auto", "bwrap"])
def test_a_box_that_does_not_hold_runs_nothing_and_its_way_out_is_named(
    home: Home, users_home: Path, monkeypatch: pytest.MonkeyPatch, there: Machine, proof: Proof, why: str, box: str
) -> None:
    monkeypatch.setattr(try_boxes, "look", lambda _: there)
    monkeypatch.setattr(probes, "proof_of", lambda *_: proof)
    monkeypatch.setattr(try_boxes, "allowing", lambda: "sudo allow it")
    with pytest.raises(CannotLaunchError) as refused:
        boxed(home, users_home, "shell", Launch((), {}), network="none", box=box)
    assert "without one none is run" in refused.value.message
    assert why in refused.value.message
    in_containers = "(in a container, the container is the box)"
    command = f'sudo allow it, or set [runtimes.shell].box = "none" {in_containers}; then: service doctor'
    assert refused.value.hint == command


def test_a_folder_that_an_agent_has_sent_elsewhere_is_not_handed_over(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root hands anything over")
    (tmp_path / "cache").mkdir()
    (tmp_path / "private/here").mkdir(parents=True)
    (tmp_path / "cache/tool").symlink_to(tmp_path / "private")
    os.chown(tmp_path / "cache", 64_100, 64_100)
    work = tmp_path / "work"
    box = Box(Network.NONE, work, tmp_path, write=(tmp_path / "cache/tool/here",), uid=64_100)
    with pytest.raises(CannotLaunchError) as refused:
        boxing.hand_over(box)
    assert "leads elsewhere by a link" in refused.value.message
    assert refused.value.hint == "service help boxes"
    assert (tmp_path / "private/here").stat().st_uid == 0
