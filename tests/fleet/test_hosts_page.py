"""The manual's page about several hosts, typed from its first line to its last on a fresh PostgreSQL."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

import pytest

from activities.runtimes.known_runtimes import CODEX
from cli import manual
from tests import postgres
from tests.fleet.machines import Fleet, Machine
from tests.fleet.play import Play, ended_well
from tests.unboxed import shell
from tests.waiting import PATIENCE

pytestmark = pytest.mark.long


@pytest.fixture
def fleet(tmp_path: Path, temporal: str) -> Iterator[Fleet]:
    """Make a fleet on a PostgreSQL that has nothing but its administrator."""
    with postgres.running(connections=100, admin="postgres") as server:
        made = Fleet(tmp_path, temporal, server, "service", f"fleet-{uuid4().hex[:8]}")
        try:
            yield made
        finally:
            made.close()


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
    """Return the blocks of the manual's page, in order."""
    return re.findall(rf"```{language}\n(.*?)```", manual.text("hosts"), re.DOTALL)


def typed(machine: Machine, line: str, code: int = 0) -> str:
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
    assert done.returncode == code, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@dataclass
class Page:
    """The page, and what its names stand for in the test."""

    fleet: Fleet
    console: list[str] = field(default_factory=lambda: blocks("console"))
    sql: list[str] = field(default_factory=lambda: blocks("sql"))
    toml: list[str] = field(default_factory=lambda: blocks("toml"))

    @property
    def is_typed(self) -> bool:
        return not (self.console or self.sql or self.toml)

    def administer(self) -> None:
        """Type the next lines of SQL as the administrator."""
        url = f"postgresql://postgres@127.0.0.1:{self.fleet.postgres.port}/postgres"
        subprocess.run(("psql", "-v", "ON_ERROR_STOP=1", url), input=self.sql.pop(0), text=True, check=True)

    def settings(self, meant: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return the next settings, with other values in place of these."""
        text = self.toml.pop(0)
        for printed, value in meant.items():
            assert text.count(printed) == 1, printed
            text = text.replace(printed, value)
        return text

    def commands(self) -> list[str]:
        """Return the next commands, for the hosts of the test."""
        block = self.console.pop(0).replace("web-1", "one").replace("web-2", "two").replace("web-3", "two")
        return [line.partition("  ")[0] for line in block.splitlines()]


@pytest.mark.ruling("Q1.join", "Q1.init", "Q3")
def test_the_page_leads_from_nothing_to_a_tree_on_two_machines_and_on(fleet: Fleet, play: Play) -> None:
    (one, two), page, hub = fleet.machines, Page(fleet), str(fleet.hub())
    subprocess.run(["git", "clone", "-q", hub, str(one.repo)], check=True)
    own = f"max_parallel_jobs = 3\n{shell('PLANS', 'HOST').replace('shell', 'codex')}"
    page.administer()
    given = {"10.0.0.5:7233": one.lines[0].address, '"team"': f'"{fleet.namespace}"', '"web-1"': '"one"'}
    given["10.0.0.5:5432"] = f"127.0.0.1:{one.lines[1].port}"
    bridge = f'[bridge]\nallowed_hosts = ["{socket.gethostname()}"]\n'  # all addresses of the test are loopback
    config = page.settings({**given, "[bridge]\n": own + bridge})
    (one.home / "config.toml").write_text(config)
    (two.home / "config.toml").write_text(f'[worker]\nhost = "two"\n{own}{bridge}')

    init, invite, join, ask, tree = page.commands()
    output = typed(one, init)
    assert f"local/shop: registered ({one.repo}), for every host at {hub}" in output
    assert f"created the namespace {fleet.namespace}" in output
    (play.folder / "marks").unlink()  # of the tiny job

    printed = typed(one, invite).split()[:4]
    assert len(printed) == len(join.split())
    two.repo.mkdir()  # an empty folder: nothing is cloned there
    assert "its bridge listens for the other hosts, as theirs do" in typed(two, " ".join(printed))
    assert [(host["name"], host["state"]) for host in two.json("host", "list")] == [("one", "works"), ("two", "works")]
    assert "was used already" in fleet.machine("three")(*printed[1:], code=3).stderr

    names = ("leg-a", "leg-b", "leg-c", "leg-d")  # more than a host runs at once, and each waits for all of them
    legs = [{"id": leg, "agent": "lead", "action": "ask", "prompt": "look"} for leg in names]
    play.answers(none={"delegations": legs}, **{leg.replace("-", "_"): {"wait": "go"} for leg in names})
    root = typed(one, ask).split()[0]
    play.wait_for("begin", 1 + len(names))
    ran = {leg: play.places(leg) for leg in names}
    assert {host for hosts in ran.values() for host in hosts} == {"one", "two"}
    for machine in (one, two):  # what runs is seen from both
        for job in machine.tree(root)["jobs"][1:]:
            assert machine.json("job", "show", job["job_id"])["live"]["stage"] == "running"
            typed(machine, f"service job log {job['job_id']}")
    play.go()
    ended_well(play, two, [root], 2 + len(names))
    drawn = typed(one, tree.replace("JOB", root))
    assert {leg: re.findall(rf"{leg} lead ask: .*?, on (\w+)", drawn) for leg in names} == ran

    for line in page.commands():  # one step at a time: all of it is there already
        typed(one, line.replace("git@github.com:acme/shop.git", hub))
    leg = next(job["job_id"] for job in one.tree(root)["jobs"] if job["delegation_id"] == "leg-a")
    [elsewhere] = page.commands()
    typed(two, elsewhere.removeprefix("ssh two ").replace("JOB", leg))

    two("daemon", "stop")
    labels = page.settings().partition("\n")[2]
    (two.home / "config.toml").write_text(
        (two.home / "config.toml").read_text().replace("[worker]\n", f"[worker]\n{labels}")
    )
    two("daemon", "start")
    for line in page.commands():
        typed(one, line.replace("--runtime claude", "--runtime codex"))
    job = typed(one, "service agent ask tester look --repo acme/shop").split()[0]
    assert one.wait_until_ended(job)["state"] == "succeeded"
    assert one.json("job", "show", job)["host"] == "two"

    with (one.home / "config.toml").open("a") as settings:
        settings.write(page.settings())
    [lost] = page.commands()
    assert "works" in typed(two, lost, code=3)
    for line in page.commands():  # drain, --wait, --undo
        typed(one, line)

    two("daemon", "stop")
    [remove] = page.commands()
    assert "it still has the seal key and the database's password" in typed(one, remove)
    page.administer()
    one("daemon", "stop")
    replace, start, invite = page.commands()
    typed(one, replace)
    typed(one, start)
    (two.home / "seal.key").unlink()
    typed(two, " ".join(typed(one, invite).split()[:4]))
    job = typed(one, "service agent ask tester look --repo acme/shop").split()[0]
    assert two.wait_until_ended(job)["state"] == "succeeded"
    assert "did" in typed(one, f"service job show {root}"), "what was recorded under the former key is still shown"

    upgrade, *again = page.commands()
    assert upgrade.startswith(".venv/bin/python -m pip install -U")
    for line in again:
        typed(one, line)
    assert page.is_typed
