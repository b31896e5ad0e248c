"""The team of `service init`, played by a model that obeys its prompts literally: README's order ends merged.

Two legs conflict and a check fails on the way; nobody is asked. The model's whole knowledge is `literal.TABLE`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from activities.settings.model import Settings
from bridge.operations.registry import team
from tests.e2e import literal
from tests.e2e.conftest import Installed, set_up
from tests.e2e.script import git
from tests.unboxed import NO_BOX

pytestmark = [pytest.mark.ruling("P2", "P3", "P5", "O6")]

ORDER = "Build a rate limiter, and have it verified"
PROGRAMS = team.Programs("runtime_a", "runtime_b")
TEST = """\
import unittest

import limits


class Limits(unittest.TestCase):
    def test_limit(self):
        self.assertTrue(limits.allowed(3))
        self.assertFalse(limits.allowed(4))
"""
AGENTS = "# How to work here\n\nTests: `python3 -B -m unittest -q`\n"


@dataclass(frozen=True)
class Walk:
    """The tree once it is over."""

    service: Installed
    root: str

    @cached_property
    def tree(self) -> dict[str, Any]:
        return self.service.tree(self.root)

    @cached_property
    def jobs(self) -> list[tuple[str, str, str]]:
        """Each job's leg or kind of continuation, its state, and its decision, in order."""
        return [
            (job["delegation_id"] or job["continuation"], job["state"], job["decision"]) for job in self.tree["jobs"]
        ]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    service = set_up(tmp_path_factory.mktemp("literal"))
    for name, text in (("test_limits.py", TEST), ("AGENTS.md", AGENTS)):
        service.repo.joinpath(name).write_text(text)
    git(service.repo, "add", ".")
    git(
        service.repo, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "Ask for a limit"
    )
    settings(service)
    for member in team.members(PROGRAMS, "acme/shop", [], Settings().builds_with):
        new = member.new
        can = ("--capabilities", new.capabilities or "", "--autonomy", new.autonomy or "", "--role", new.role or "")
        service("agent", "add", new.name, "--runtime", new.runtime, "--repo", "acme/shop", *can)
    service("daemon", "start")
    try:
        yield ordered(service, ORDER)
    finally:
        service("daemon", "stop")


def ordered(service: Installed, order: str) -> Walk:
    """Order it of the lead, and wait for the end."""
    root = service.json("agent", "ask", "lead", order, "--repo", "acme/shop")["job_id"]
    service.wait_for(lambda: service.tree(root)["over"])
    return Walk(service, root)


def settings(service: Installed) -> None:
    """Have the literal model answer in place of codex and claude."""
    lines = []
    for program, runtime in (("codex", "runtime_a"), ("claude", "runtime_b")):
        command = service.tmp / program
        command.write_text(f'#!/bin/sh\nLITERAL={program} exec {sys.executable} -B {literal.__file__} "$@"\n')
        command.chmod(0o755)
        lines += [f"[runtimes.{runtime}]", f"command = {json.dumps([str(command)])}", NO_BOX]
    service.home.joinpath("config.toml").write_text("\n".join(lines) + "\n")
    for variable, program in (("CODEX_HOME", "codex"), ("CLAUDE_CONFIG_DIR", "claude")):
        folder = service.tmp / f"{program}-home"
        folder.mkdir()
        service.extra[variable] = str(folder)
    service.extra.update({"ANTHROPIC_API_KEY": "any", "OPENAI_API_KEY": "any"})


def test_the_daily_order_ends_done_with_a_conflict_and_a_failed_check_on_the_way(walk: Walk) -> None:
    assert walk.jobs == [
        ("none", "succeeded", "approved"),
        ("limiter", "succeeded", "implemented"),
        ("notes", "succeeded", "implemented"),
        ("normal", "succeeded", "approved"),
        ("resolve-notes", "succeeded", "implemented"),
        ("check-resolve-notes", "succeeded", "changes_requested"),
        ("replan", "succeeded", "approved"),
        ("repair", "succeeded", "implemented"),
        ("check-repair", "succeeded", "approved"),
        ("normal", "succeeded", "implemented"),
    ]
    assert (walk.tree["task"]["state"], walk.tree["task"]["waits_for"]) == ("done", "")
    agents = {job["agent"] for job in walk.tree["jobs"]}
    assert agents == {team.LEAD, team.BUILDER, team.CHECKER}


def test_its_work_is_merged_by_one_command(walk: Walk) -> None:
    walk.service("job", "merge", walk.root, "--into-mine")
    repo = walk.service.repo
    notes = git(repo, "show", "HEAD:NOTES.md")
    assert [text for text in ("The limit is in limits.py.", "Three calls are allowed.") if text not in notes] == []
    done = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=repo, check=False)
    assert done.returncode == 0


def test_every_habit_of_the_table_is_taught_on_the_way(walk: Walk) -> None:
    prompts = [walk.service("job", "prompt", job["job_id"]).stdout for job in walk.tree["jobs"]]
    untaught = [habit for habit, words in literal.TABLE.items() if not any(words in prompt for prompt in prompts)]
    assert untaught == []


@pytest.mark.long
@pytest.mark.ruling("P1")
@pytest.mark.parametrize(
    ("habit", "state", "last"),
    [
        ("changes by a leg", "done", ["none"]),
        ("checks later", "blocked", ["notes", "check-limiter-notes"]),
        ("looks for commands", "blocked", ["check-resolve-notes", "replan"]),
        ("may run", "blocked", ["check-resolve-notes", "replan"]),
        ("has it checked", "done", ["resolve-notes", "normal"]),
        ("checks again", "done", ["repair", "normal", "check-all", "normal"]),
    ],
)
def test_without_a_word_of_the_table_it_ends_elsewhere(walk: Walk, habit: str, state: str, last: list[str]) -> None:
    other = ordered(walk.service, f"{ORDER} {literal.WITHOUT.format(habit)}")
    assert other.tree["task"]["state"] == state, other.jobs
    assert [name for name, *_ in other.jobs][-len(last) :] == last


@pytest.mark.ruling("P1")
@pytest.mark.parametrize(("without", "state"), [("", "done"), (literal.WITHOUT.format("asks to be told"), "blocked")])
def test_a_leg_that_fails_is_issued_again_by_a_coordinator_that_is_told(walk: Walk, without: str, state: str) -> None:
    other = ordered(walk.service, f"{ORDER} {literal.SLIPS} {without}")
    assert other.tree["task"]["state"] == state, other.jobs
    assert ("notes", "failed", "failed") in other.jobs
