"""`service repo sweep`: owners are read from the store; a person sees the list before anything is removed."""

import json
import time
from pathlib import Path

import pytest

from activities.git.work_folder.worktrees import add_branch, add_detached
from activities.settings.home import Home
from activities.store import job_rows, run_rows
from bridge.operations.home import gc
from bridge.operations.registry import repos
from bridge.operations.service import Service
from cli.main import main
from tests.activities.git.conftest import make_repository, run_git
from workflows.model.rows import Records, TaskRecord
from workflows.model.states import TaskState
from workflows.pipeline.plan import RunState, Trigger
from workflows.pipeline.rows import RunRecord, RunRecords

pytestmark = pytest.mark.ruling("I1", "I2")
ROOT = "job-0123456789ab"


@pytest.fixture
def service(home: Home, tmp_path: Path) -> Service:
    service = Service(home)
    repos.add(service, "acme/shop", make_repository(tmp_path / "shop"))
    return service


def leave(service: Service, name: str = "acme--shop") -> Path:
    """Create a worktree and a branch of the job, as a killed worker leaves them."""
    repo = Path(repos.get(service, "acme/shop").path)
    path = service.home.worktrees / f"{name}+{ROOT}-1"
    return add_branch(repo, path, f"service/{ROOT}-leg", "main").path


def tell(service: Service, state: TaskState) -> None:
    task = TaskRecord(
        task_id="task-1", root_job_id=ROOT, repo="acme/shop", title="t", state=state,
        revision=1, opened_at=time.time(),
    )  # fmt: skip
    job_rows.write(service.store, Records(task=task))


@pytest.mark.parametrize("state", [None, TaskState.OPEN, TaskState.AWAITING_HUMAN, TaskState.BLOCKED])
def test_what_an_open_or_unknown_tree_owns_is_left_alone(service: Service, state: TaskState | None) -> None:
    path = leave(service)
    if state:
        tell(service, state)
    assert [swept.found for swept in gc.sweep(service, yes=True)] == [()]
    assert path.exists()


def test_what_an_ended_tree_left_is_listed_and_then_removed(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    path = leave(service)
    tell(service, TaskState.DONE)
    assert main(["repo", "sweep", "acme/shop"]) == 0
    printed = capsys.readouterr().out
    assert f"{path}" in printed
    assert "nothing was removed; to remove 2: service repo sweep acme/shop --yes" in printed
    assert path.exists()
    assert main(["repo", "sweep", "--yes", "--json"]) == 0
    (swept,) = json.loads(capsys.readouterr().out)
    assert swept["removed"] is True
    assert [(left["kind"], left["keep"]) for left in swept["found"]] == [("worktree", ""), ("branch", "")]
    assert not path.exists()
    assert run_git(Path(repos.get(service, "acme/shop").path), "branch", "--list", "service/*") == ""
    assert main(["repo", "sweep"]) == 0
    assert "nothing was left behind" in capsys.readouterr().out


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.FAILED])
def test_what_a_stage_left_is_removed_once_its_run_is_over(service: Service, state: RunState) -> None:
    """The case `pipeline, stage ended, 1, work folders read-only` of the matrix of faults."""
    path = service.home.worktrees / "acme--shop+prun-0123456789ab.1-1"
    add_detached(Path(repos.get(service, "acme/shop").path), path, "main")
    run = RunRecord(
        run_id="prun-0123456789ab",
        pipeline="nightly",
        repo="acme/shop",
        state=state,
        started_at=1.0,
        trigger=Trigger.CLI,
    )
    run_rows.write(service.store, RunRecords(run=run, stages=()), run_rows.RunStart("", {}))
    gc.sweep(service, yes=True)
    assert path.exists() is (state is RunState.RUNNING)


def test_a_repository_that_is_gone_is_said(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop").rename(tmp_path / "moved")
    (swept,) = gc.sweep(service)
    assert "the path is missing" in swept.problem
