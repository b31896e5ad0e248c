"""README's daily order in a repository with a failing test, and the tree that comes of it, by shape.

The team is the one that `service init` registers; its model is `literal.obey`.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.e2e.conftest import Installed
from tests.e2e.literal import APART, EPHEMERAL, MARKS, ONE, RIGHT, SLIPS, WITHOUT
from tests.e2e.script import git
from tests.e2e.typist import typist

ORDER = "Build a rate limiter, and have it verified"
TEST = """\
import unittest

import limits


class Limits(unittest.TestCase):
    def test_limit(self):
        self.assertTrue(limits.allowed(3))
        self.assertFalse(limits.allowed(4))
"""
AGENTS = "# How to work here\n\nTests: `python3 -B -m unittest -q`\n"
BEGUN = [
    ("none", "succeeded", "approved"),
    ("limiter", "succeeded", "implemented"),
    ("notes", "succeeded", "implemented"),
    ("normal", "succeeded", "approved"),
]
REPAIRED = [
    ("replan", "succeeded", "approved"),
    ("repair", "succeeded", "implemented"),
    ("check-repair", "succeeded", "approved"),
]
RESOLVED, OVER = ("resolve-notes", "succeeded", "implemented"), ("normal", "succeeded", "implemented")
SHAPES = {
    "plain": (f"{ORDER} {RIGHT} {APART}", [*BEGUN, ("check-all", "succeeded", "approved"), OVER]),
    "conflict": (
        f"{ORDER} {RIGHT}",
        [*BEGUN, RESOLVED, ("check-resolve-notes", "succeeded", "approved"), OVER],
    ),
    "failed check": (
        f"{ORDER} {APART}",
        [*BEGUN, ("check-all", "succeeded", "changes_requested"), *REPAIRED, OVER],
    ),
    "lost leg": (
        f"{ORDER} {RIGHT} {APART} {SLIPS}",
        [
            *BEGUN[:2],
            ("notes", "failed", "failed"),
            BEGUN[3],
            ("notes-again", "succeeded", "implemented"),
            ("check-notes-again", "succeeded", "approved"),
            OVER,
        ],
    ),
    "lost leg of one": (
        f"{ORDER} {ONE} {RIGHT} {SLIPS}",
        [
            BEGUN[0],
            ("limiter", "failed", "failed"),
            ("check-limiter", "skipped", None),
            ("replan", "succeeded", "approved"),
            ("limiter-again", "succeeded", "implemented"),
            ("check-limiter-again", "succeeded", "approved"),
            OVER,
        ],
    ),
    "lost merge": (
        f"{ORDER} {RIGHT} {MARKS}",
        [
            *BEGUN,
            ("resolve-notes", "failed", None),
            ("check-resolve-notes", "skipped", None),
            ("replan", "succeeded", "approved"),
            ("resolve-notes-again", "succeeded", "implemented"),
            ("check-resolve-notes-again", "succeeded", "approved"),
            OVER,
        ],
    ),
    "both": (
        ORDER,
        [*BEGUN, RESOLVED, ("check-resolve-notes", "succeeded", "changes_requested"), *REPAIRED, OVER],
    ),
}
SHAPES["left out"] = (
    f"{ORDER} {RIGHT} {WITHOUT.format('brings it there')}",
    [*BEGUN, ("check-all", "succeeded", "approved"), OVER],
)
SHAPES["workers of its own"] = (f"{ORDER} {EPHEMERAL}", SHAPES["both"][1])
"""The order of each shape, and what becomes of it: each job's leg or kind of continuation, state and decision."""


@dataclass(frozen=True)
class Walk:
    """The tree of an order."""

    service: Installed
    root: str

    @cached_property
    def tree(self) -> dict[str, Any]:
        """Wait for the end, and return it."""
        self.service.wait_for(lambda: self.service.tree(self.root)["over"])
        return self.service.tree(self.root)

    @cached_property
    def jobs(self) -> list[tuple[str, str, str]]:
        """Each job's leg or kind of continuation, its state, and its decision, in order."""
        return [
            (job["delegation_id"] or job["continuation"], job["state"], job["decision"]) for job in self.tree["jobs"]
        ]

    @property
    def ended(self) -> tuple[str, str]:
        """Return the state of the task, and whom it waits for."""
        return self.tree["task"]["state"], self.tree["task"]["waits_for"]

    def prompts(self) -> list[str]:
        return [self.service("job", "prompt", job["job_id"]).stdout for job in self.tree["jobs"]]


def register(service: Installed, builder: str, checker: str) -> Walk:
    """Commit the failing test, and type `service init`; return the tiny job that it has done."""
    repo = service.repo
    for name, text in (("test_limits.py", TEST), ("AGENTS.md", AGENTS)):
        repo.joinpath(name).write_text(text)
    git(repo, "add", ".")
    git(repo, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "Ask for a limit")
    words = ("init", "--yes", "--builder", builder, "--checker", checker, "--json")
    done = typist().type(words, service.environment, repo, "")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return Walk(service, json.loads(done.stdout)["check"]["job_id"])


def order(service: Installed, words: str) -> Walk:
    """Order it of the lead."""
    return Walk(service, service.json("agent", "ask", "lead", words, "--repo", "acme/shop")["job_id"])


def resolve(walk: Walk) -> Walk:
    """Have what is left out resolved by an agent, and merge its work; nothing is merged before."""
    service = walk.service
    service("job", "merge", walk.root, "--into-mine", code=3)
    resolved = Walk(service, service.json("job", "resolve", walk.root)["job_id"])
    assert resolved.ended == ("done", "")
    service("job", "merge", resolved.root)
    return resolved


def merge(walk: Walk) -> str:
    """Merge the work into a branch of the operator's, run the tests there, and return the notes."""
    repo = walk.service.repo
    git(repo, "switch", "-q", "-c", f"mine-{walk.root}", "main")
    walk.service("job", "merge", walk.root, "--into-mine")
    done = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=repo, check=False)
    assert done.returncode == 0
    return git(repo, "show", "HEAD:NOTES.md")
