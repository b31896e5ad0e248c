"""The commit that a job begins from (ruling O1)."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from activities.jobs import workspace
from activities.store import attempt_rows, tree_rows
from tests.activities.jobs.conftest import Stage, git
from tests.assigned import changed
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState
from workflows.model.workers import UNRESOLVED
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("O1")

SEES = (
    "import json, os\n"
    "print(json.dumps({'service_result': {'decision': 'approved', 'summary': ' '.join(sorted(os.listdir('.')))}}))\n"
)


def commit(repo: Path, name: str) -> str:
    (repo / name).write_text(name)
    git(repo, "add", name)
    git(repo, "commit", "-q", "-m", f"add {name}")
    return git(repo, "rev-parse", "HEAD").strip()


def base_of(stage: Stage, outcome: JobOutcome) -> str | None:
    run = attempt_rows.get(stage.context.store, outcome.job_id, outcome.attempt)
    return run.base_sha if run else None


@pytest.mark.parametrize("action", list(Action))
async def test_it_is_the_trees_whatever_is_checked_out(stage: Stage, action: Action) -> None:
    base = git(stage.repo, "rev-parse", "HEAD").strip()
    commit(stage.repo, "later.txt")
    git(stage.repo, "checkout", "-q", "--orphan", "aside")
    commit(stage.repo, "aside.txt")
    script = SEES.replace("approved", "implemented" if action is Action.IMPLEMENT else "approved")
    outcome = await stage.play(stage.job(script, action, base=base))
    assert (outcome.state, outcome.summary) == (JobState.SUCCEEDED, ".git limiter.py")
    assert base_of(stage, outcome) == base


async def test_without_one_a_job_begins_from_what_is_checked_out(stage: Stage) -> None:
    head = commit(stage.repo, "later.txt")
    outcome = await stage.play(stage.job(SEES))
    assert outcome.summary == ".git later.txt limiter.py"
    assert base_of(stage, outcome) == head


async def test_what_people_put_on_the_tasks_branch_goes_before_it(stage: Stage) -> None:
    base = git(stage.repo, "rev-parse", "HEAD").strip()
    git(stage.repo, "checkout", "-q", "-b", "service/task-1")
    head = commit(stage.repo, "theirs.txt")
    git(stage.repo, "checkout", "-q", "main")
    outcome = await stage.play(stage.job(SEES, base=base))
    assert (outcome.summary, base_of(stage, outcome)) == (".git limiter.py theirs.txt", head)


async def test_a_host_without_it_says_so_with_the_command(stage: Stage) -> None:
    git(stage.tmp, "clone", "-q", str(stage.repo), "other")
    base = commit(stage.tmp / "other", "other.txt")
    git(stage.repo, "remote", "add", "team", str(stage.tmp / "other"))
    refused = await stage.play(stage.job(SEES, base=base))
    assert refused.state is JobState.FAILED
    where = f"{stage.repo} on {stage.context.host}"
    assert refused.reason.startswith(f"the commit {base} that this work begins from is not in {where}")
    fetch = f"git -C {stage.repo} fetch team {base}"
    assert refused.first == f"on {stage.context.host}: {fetch}; then: service job retry {refused.job_id}"
    assert not list(stage.context.home.worktrees.glob("*"))
    git(stage.tmp, *shlex.split(fetch)[1:])
    outcome = await stage.play(stage.job(SEES, base=base, attempt=2))
    assert outcome.summary == ".git limiter.py other.txt"


async def test_what_another_host_left_open_is_what_its_first_job_finds(stage: Stage) -> None:
    first = stage.job(SEES, base=UNRESOLVED)
    start = TreeInput(
        root_job_id=first.root_job_id,
        task_id=first.task_id,
        repo=first.repo,
        assignment=first.assignment,
        created_at=1.0,
    )
    tree_rows.begin(stage.context.store, start, stage.context.host)
    head = git(stage.repo, "rev-parse", "HEAD").strip()
    bases = [base_of(stage, await stage.play(first))]
    commit(stage.repo, "later.txt")
    bases.append(base_of(stage, await stage.play(stage.job(SEES, base=UNRESOLVED, job_id=f"{first.job_id}.1"))))
    assert bases == [head, head]
    known = tree_rows.get(stage.context.store, first.root_job_id)
    assert known
    assert known.start == changed(start, base=head)


GIT = "import os, subprocess\nwho = ('-c', 'user.name=a', '-c', 'user.email=a@example.invalid')\n"
IMPLEMENTED = SEES.replace("approved", "implemented")


def agent(*commands: str) -> str:
    """Return an agent's script that writes a file, then runs git commands."""
    typed = "".join(f"subprocess.run(['git', *who, *{each.split()}], check=True)\n" for each in commands)
    return GIT + "open('own.txt', 'w').write('x')\n" + typed + IMPLEMENTED


@pytest.mark.parametrize(
    "commands",
    [
        ("merge -q main",),
        ("add own.txt", "commit -qm own", "merge -q --no-edit main"),
        ("add own.txt", "commit -qm own", "rebase -q main"),
    ],
)
async def test_what_an_agent_takes_from_the_operators_branches_is_recorded(
    stage: Stage, commands: tuple[str, ...]
) -> None:
    base = git(stage.repo, "rev-parse", "HEAD").strip()
    later = commit(stage.repo, "later.txt")
    outcome = await stage.play(stage.job(agent(*commands), Action.IMPLEMENT, base=base))
    assert outcome.head_sha
    assert joined(stage, outcome) == [later]


async def test_nothing_is_recorded_of_what_it_made_itself(stage: Stage) -> None:
    base = git(stage.repo, "rev-parse", "HEAD").strip()
    commit(stage.repo, "later.txt")
    commands = ("add own.txt", "commit -qm own", "checkout -q -b side", "commit --allow-empty -qm side")
    outcome = await stage.play(stage.job(agent(*commands, "checkout -q -"), Action.IMPLEMENT, base=base))
    assert outcome.head_sha
    assert joined(stage, outcome) is None


async def test_it_is_the_same_when_the_work_is_taken_in_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's commits are in the repository by then."""
    base = git(stage.repo, "rev-parse", "HEAD").strip()
    later = commit(stage.repo, "later.txt")
    twice = workspace.collect

    def collect(*asked: Any) -> workspace.Evidence:
        first = twice(*asked)
        git(stage.repo, "branch", "-D", str(asked[0].worktree.branch))
        again = twice(*asked)
        assert again.joined == first.joined
        return again

    monkeypatch.setattr(workspace, "collect", collect)
    outcome = await stage.play(stage.job(agent("merge -q main"), Action.IMPLEMENT, base=base))
    assert joined(stage, outcome) == [later]


def joined(stage: Stage, outcome: JobOutcome) -> Any:
    run = attempt_rows.get(stage.context.store, outcome.job_id, outcome.attempt)
    return (run.diagnostics or {}).get("joined") if run else None
