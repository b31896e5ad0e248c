"""A host that must not work, and a machine that joins: the commands are those of the manual."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from activities.runtimes.table import CODEX
from bridge.machine import daemon_state
from cli import manual
from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, ended_well
from tests.unboxed import shell
from tests.waiting import PATIENCE

pytestmark = pytest.mark.long


def names(machine: Machine) -> list[str]:
    return [host["name"] for host in machine.json("host", "list")]


def worker(machine: Machine) -> str:
    """Start only the worker, without what the daemon looks at first; return the reason why it ends."""
    command = (sys.executable, "-m", "activities.worker")
    done = subprocess.run(command, env=machine.environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.ruling("Q1")
def test_a_host_with_another_key_polls_nothing_and_says_what_to_type(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    one("daemon", "start")
    (two.home / "seal.key").write_bytes(b"x" * 32)
    for said in (two("daemon", "start", code=5).stderr, worker(two), two("doctor", code=1).stdout):
        assert "this home's seal.key is " in said
        assert f"scp one:.service/seal.key {two.home}/seal.key" in said
    assert names(one) == ["one"]
    (two.home / "seal.key").write_bytes((one.home / "seal.key").read_bytes())
    two("daemon", "start")
    assert names(one) == ["one", "two"]


@pytest.mark.ruling("Q1")
def test_the_name_of_a_host_that_works_is_not_taken_over(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two", host='"one"')
    one("daemon", "start")
    for said in (two("daemon", "start", code=5).stderr, worker(two), two("doctor", code=1).stdout):
        assert "the host name one is in use on another machine or in another home" in said
        assert 'set host = "ANOTHER_NAME" in [worker]' in said
    one("daemon", "stop")
    two("daemon", "start")
    assert "the host name one is in use" in one("daemon", "start", code=5).stderr


PROGRAM = """#!{python}
import json, subprocess, sys
if sys.argv[1] == "--version":
    raise SystemExit(print("codex-cli {version}"))
told = subprocess.run([sys.executable, "{agent}"], stdout=subprocess.PIPE, text=True, check=True).stdout
for event in (
    {{"type": "thread.started", "thread_id": "t-1"}},
    {{"type": "item.completed", "item": {{"type": "agent_message", "text": told}}}},
    {{"type": "turn.completed", "usage": {{"input_tokens": 10, "output_tokens": 5}}}},
):
    print(json.dumps(event))
"""
"""A program that prints as codex does, and plays."""


@pytest.fixture
def play(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Install codex, logged in, on two machines; each runs three jobs at once, without a box."""
    for path in (tmp_path / "person/.codex", tmp_path / "bin"):
        path.mkdir(parents=True)
    (tmp_path / "person/.codex/auth.json").write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    made = Play.on(fleet, fleet.machine("one"), fleet.machine("two"))
    program, version = tmp_path / "bin/codex", ".".join(map(str, CODEX.minimum))
    program.write_text(PROGRAM.format(python=sys.executable, version=version, agent=made.folder / "agent.py"))
    program.chmod(0o755)
    for machine in fleet.machines:
        machine.home.mkdir(mode=0o700)
    return made


def blocks(language: str) -> list[str]:
    """Return the blocks of the manual's page above its first section."""
    return re.findall(rf"```{language}\n(.*?)```", manual.text("hosts").partition("\n## ")[0], re.DOTALL)


def typed(machine: Machine, line: str) -> str:
    """Type a line of the manual's page into a shell in the repository; return what it prints."""
    done = subprocess.run(
        ("bash", "--norc", "-c", line),
        env=machine.environment,
        cwd=machine.repo,
        timeout=PATIENCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.ruling("Q1.join", "Q1.init")
def test_five_commands_of_the_manual_lead_from_nothing_to_a_tree_on_two_machines(fleet: Fleet, play: Play) -> None:
    one, two = fleet.machines
    subprocess.run(["git", "clone", "-q", str(fleet.hub()), str(one.repo)], check=True)
    own = f"max_parallel_jobs = 3\n{shell('PLANS', 'HOST').replace('shell', 'codex')}"
    [config], [lines] = blocks("toml"), blocks("console")
    url = fleet.postgres.database(fleet.database, one.lines[1].port)
    given = {"10.0.0.5:7233": one.lines[0].address, "team": fleet.namespace, '"web-1"': '"one"'}
    given["postgresql://service@10.0.0.5:5432/postgres"] = url
    for said, meant in given.items():
        assert config.count(said) == 1
        config = config.replace(said, meant)
    (one.home / "config.toml").write_text(config + own)
    (two.home / "config.toml").write_text(f'[worker]\nhost = "two"\n{own}')

    init, invite, join, ask, tree = (line.partition("  # ")[0] for line in lines.splitlines())
    told = typed(one, init)
    assert f"local/shop: registered ({one.repo}), for every host at {fleet.folder / 'hub.git'}" in told
    assert f"created the namespace {fleet.namespace}" in told
    (play.folder / "marks").unlink()  # of the tiny job

    printed, shape = typed(one, invite).split(), join.split()
    assert (len(printed), printed[:3], printed[4:]) == (len(shape), shape[:3], ["--from", "ssh://one"])
    state = daemon_state.status(one.seen.home).state
    assert state is not None
    bridge = str(state.bridge_url)
    two.repo.mkdir()  # an empty folder: nothing is cloned there
    assert "has joined the fleet" in typed(two, " ".join([*printed[:4], "--from", bridge]))
    assert [(host["name"], host["state"]) for host in two.json("host", "list")] == [("one", "works"), ("two", "works")]
    again = fleet.machine("three")(*printed[1:4], "--from", bridge, code=3)
    assert "was used already" in again.stderr

    names = ("leg-a", "leg-b", "leg-c", "leg-d")  # more than a host runs at once, and each waits for all of them
    legs = [{"id": leg, "agent": "lead", "action": "ask", "prompt": "look"} for leg in names]
    play.answers(none={"delegations": legs}, **{leg.replace("-", "_"): {"wait": "go"} for leg in names})
    root = typed(one, ask).split()[0]
    play.wait_for("begin", 1 + len(names))
    ran = {leg: play.places(leg) for leg in names}
    assert {host for hosts in ran.values() for host in hosts} == {"one", "two"}
    play.go()
    ended_well(play, two, [root], 2 + len(names))
    drawn = typed(one, tree.replace("JOB", root))
    assert {leg: re.findall(rf"{leg} lead ask: .*?, on (\w+)", drawn) for leg in names} == ran
