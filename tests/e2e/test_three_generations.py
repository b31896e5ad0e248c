"""Three generations of the real programs: a conflict, a failed check, a repair on the line, a check that passes.

Codex writes code, Kimi writes docs that conflict with it, Claude leads and checks. Each inspects its own repository.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import set_up
from tests.e2e.programs import PROGRAMS, need, sections, variables
from tests.e2e.stage import Stage, git, result
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.ruling("O2", "O3", "O4", "P5")]

TEST = "from limits import allowed\n\n\ndef test_limit():\n    assert allowed(3)\n    assert not allowed(4)\n"
CODE = "LIMIT = 3\n\n\ndef allowed(calls):\n    return calls < LIMIT\n"
LOOK = {"run": "git branch --list && git log --oneline --graph base line HEAD"}
AGAIN, OVER = "[[fake:second]]", "[[fake:over]]"
"""Parts of summaries that select the coordinator's next scenario."""


def leg(name: str, agent: str, action: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "agent": agent, "action": action, "prompt": f"Do {name}. [[fake:{name}]]"} | more


def check(name: str, *deps: str) -> dict[str, Any]:
    return leg(name, "claude-free-dev", "review", deps=list(deps), synthesis_rule="verify")


def implemented(summary: str, *changes: str) -> dict[str, Any]:
    return result(decision="implemented", summary=summary, changes_made=list(changes))


CHECKS = [{"run": "python -m pytest -q -p no:cacheprovider"}, {"run": "git diff --stat base...HEAD"}, LOOK]
FIRST = [
    leg("code", "codex-dev", "implement"),
    leg("docs", "kimi-dev", "implement"),
    check("verify", "code"),
]
SECOND = [leg("fix", "codex-dev", "implement"), leg("resolve", "codex-dev", "implement", worktree="@merge:docs")]
FAILED = {"title": "allowed(3) is refused", "severity": "high", "file": "limits.py"}
SCENARIOS: dict[str, list[dict[str, Any]]] = {
    "lead": [LOOK, result(summary="code, docs and a check", delegations=FIRST)],
    "code": [
        LOOK,
        {"write_file": {"path": "limits.py", "content": CODE}},
        {"write_file": {"path": "NOTES.md", "content": "# Notes\n\nThe limit is in limits.py.\n"}},
        implemented("write the limit", "limits.py: created", "NOTES.md: created"),
    ],
    "docs": [
        {"write_file": {"path": "NOTES.md", "content": "# Notes\n\nThree calls are allowed.\n"}},
        implemented("write the notes", "NOTES.md: created"),
    ],
    "verify": [
        *CHECKS,
        result(decision="changes_requested", summary=f"the third call is refused {AGAIN}", findings=[FAILED]),
    ],
    "second": [LOOK, result(summary="repair it", delegations=[*SECOND, check("again", "fix", "resolve")])],
    "fix": [
        LOOK,
        {"run": "cat limits.py && sed -i 's/calls <=* LIMIT/calls <= LIMIT/' limits.py"},
        implemented("allow the third call", "limits.py: <="),
    ],
    "resolve": [
        LOOK,
        {"run": "cat NOTES.md; git status"},
        {"run": "git show leg/docs:NOTES.md > NOTES.md; echo 'It is in limits.py.' >> NOTES.md"},
        LOOK,
        implemented("bring both notes together", "NOTES.md: both"),
    ],
    "again": [
        *CHECKS,
        {"run": "git log --format=%s line"},
        {"run": "git show leg/docs:NOTES.md && cat NOTES.md"},
        result(summary=f"all tests pass {OVER}"),
    ],
    "over": [LOOK, result(summary="the limit is there and documented")],
}


@dataclass(frozen=True)
class Walk:
    """The tree once it is over."""

    stage: Stage
    root: str
    tree: dict[str, Any]

    @cached_property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """Jobs by leg, or by kind of continuation."""
        shown = self.stage.service.json
        jobs = (shown("job", "show", job["job_id"]) for job in self.tree["jobs"])
        return {job["delegation_id"] or f"{job['continuation']}": job for job in jobs}

    def prompt(self, name: str) -> str:
        return self.stage.service("job", "prompt", self.jobs[name]["job_id"]).stdout

    def saw(self, name: str) -> str:
        """Return everything that a job's program sent to the model."""
        scenario = {"none": "lead", "replan": "second", "normal": "over"}.get(name, name)
        return " ".join(str(one["body"]) for one in self.stage.model.requests() if one["scenario"] == scenario)


def walked(stage: Stage) -> Walk:
    """Play the tree to its end."""
    root = stage.start("claude", "ask", "lead")
    return Walk(stage, root, stage.tree(root))


def opened(folder: Path, model: ScriptedModel) -> Stage:
    """Create a service with the real programs, and a repository with a failing test."""
    service = set_up(folder)
    service.repo.joinpath("test_limits.py").write_text(TEST)
    git(service.repo, "add", ".")
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    git(service.repo, *who, "commit", "-q", "-m", "ask for three calls")
    service.extra.update(variables(service.home.parent / "programs", model))
    service.home.joinpath("config.toml").write_text(sections(model, read=[sys.prefix, sys.base_prefix]))
    stage = Stage(service, model)
    stage.set_up()
    return stage


@pytest.fixture(scope="module")
def walk(outside_dev: Path) -> Iterator[Walk]:
    need(*PROGRAMS)
    with ScriptedModel(SCENARIOS) as model:
        stage = opened(outside_dev, model)
        try:
            yield walked(stage)
        finally:
            stage.close()
            stage.service("daemon", "stop")


def test_it_is_done_after_the_second_check(walk: Walk) -> None:
    assert {name: (job["state"], job["decision"]) for name, job in walk.jobs.items()} == {
        "none": ("succeeded", "approved"),
        "code": ("succeeded", "implemented"),
        "docs": ("succeeded", "implemented"),
        "verify": ("succeeded", "changes_requested"),
        "replan": ("succeeded", "approved"),
        "fix": ("succeeded", "implemented"),
        "resolve": ("succeeded", "implemented"),
        "again": ("succeeded", "approved"),
        "normal": ("succeeded", "approved"),
    }
    assert walk.tree["task"]["state"] == "done"
    runtimes = {name: walk.jobs[name]["runtime"] for name in ("code", "docs", "verify")}
    assert runtimes == {"code": PROGRAMS["codex"], "docs": PROGRAMS["kimi"], "verify": PROGRAMS["claude"]}


@pytest.mark.ruling("P2")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none", "You begin from the task's base"),
        ("code", "You begin from the task's base"),
        ("verify", "Merged on top of it for you: `service/"),
        ("replan", "with the work of `code`, merged in this order."),
        ("replan", "Not on the line: leg `docs`, because it conflicts with `service/"),
        ("fix", "with the work of `code`, merged in this order."),
        ("resolve", "The merge of `leg/docs` is begun in your folder"),
        ("again", "with the work of `code`, merged in this order. Merged on top of it for you: `service/"),
        ("normal", "with the work of `code`, `docs`, `fix`, `resolve`, merged in this order."),
    ],
)
def test_each_prompt_says_where_its_job_is(walk: Walk, name: str, says: str) -> None:
    assert says in walk.prompt(name)


@pytest.mark.parametrize("name", ["none", "code", "docs", "verify", "again", "normal"])
def test_a_conflict_is_told_while_there_is_one_and_no_longer(walk: Walk, name: str) -> None:
    assert "Not on the line" not in walk.prompt(name)
    jobs = [job for job in walk.tree["jobs"] if "line_conflict" in str(events(walk, job["job_id"]))]
    assert [job["job_id"] for job in jobs] == [walk.jobs["replan"]["job_id"]]


def events(walk: Walk, job: str) -> list[str]:
    shown = walk.stage.service.json("job", "events", walk.root)
    return [event["kind"] for event in shown if event["job_id"] == job]


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("verify", ["1 failed", "limits.py", "write the limit"]),
        ("fix", ["return calls < LIMIT", "write the limit", "leg/docs"]),
        ("resolve", ["<<<<<<<", "still merging"]),
        ("again", ["1 passed", "NOTES.md", "Three calls are allowed.", "It is in limits.py.", "write the limit"]),
        ("normal", ["write the limit", "write the notes", "allow the third call", "leg/resolve"]),
    ],
)
def test_each_repository_holds_what_its_prompt_says(walk: Walk, name: str, seen: list[str]) -> None:
    saw = walk.saw(name)
    assert [words for words in seen if words not in saw] == [], saw[-4000:]


@pytest.mark.ruling("O6")
def test_one_command_takes_all_of_it_to_the_operators_branch(walk: Walk) -> None:
    service, repo = walk.stage.service, walk.stage.service.repo
    service("job", "merge", walk.root, "--into-mine")
    assert git(repo, "show", "HEAD:NOTES.md") == "# Notes\n\nThree calls are allowed.\nIt is in limits.py.\n"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=repo, check=False)
    assert done.returncode == 0
    assert git(repo, "status", "--porcelain", "--untracked-files=no") == ""
