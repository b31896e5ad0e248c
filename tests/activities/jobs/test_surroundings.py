"""A job's folder and box in its prompt, for each policy, box and setting (ruling P2)."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.boxes import control_group
from activities.git.merges.task_line import TaskLine
from activities.git.work_folder.worktrees import Worktree
from activities.jobs.prompt import prompt_of
from activities.jobs.surroundings import surroundings_of
from activities.jobs.workspace import Workspace
from activities.settings.model import Settings
from tests.activities.jobs.conftest import Stage
from tests.assigned import changed
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.workers import Worker
from workflows.policy.prompts.surroundings import render_surroundings

pytestmark = pytest.mark.ruling("P2")
A, B = "a" * 40, "b" * 40
READS = "your working folder is for reading only"
CHANGES = "you may change your working folder"
WRITES = "builds and tests may write in your working folder"
BUILDS = "commands run, builds and tests too"
NO_BUILDS = "commands that write are refused: no builds, no tests"
COMMITS = "`.git` may be written: commit, merge"
NO_COMMITS = "`.git` can't be written: no commits, no merges"


def said(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    runtime: str = "runtime_b",
    policy: AutonomyPolicy = AutonomyPolicy.READ_ONLY,
    section: dict[str, Any] | None = None,
    branch: str | None = None,
    **fields: Any,
) -> str:
    monkeypatch.setattr(control_group, "job_limits", lambda *_: {control_group.MEMORY: 3 * 1024**3})
    settings = Settings.model_validate({"runtimes": {runtime: section or {}}})
    worker = Worker(name="x", runtime=runtime, command=("x",), autonomy_policy=policy)
    run = changed(stage.job("", Action.REVIEW), worker=worker, **fields)
    context = replace(stage.context, settings=settings)
    workspace = Workspace(stage.repo, Worktree(Path("/srv/work"), B, branch), line=TaskLine(A, B))
    return render_surroundings(surroundings_of(context, run, workspace))


@pytest.mark.parametrize(
    ("runtime", "policy", "says"),
    [
        ("runtime_a", "read-only", (READS, NO_BUILDS, NO_COMMITS)),
        ("runtime_a", "workspace-write", (WRITES, BUILDS, NO_COMMITS)),
        ("runtime_a", "danger-full-access", (WRITES, BUILDS, COMMITS)),
        ("runtime_b", "auto", (READS, NO_BUILDS, NO_COMMITS)),
        ("runtime_b", "workspace-write", (READS, NO_BUILDS, NO_COMMITS)),
        ("runtime_b", "danger-full-access", (WRITES, BUILDS, COMMITS)),
        ("runtime_c", "workspace-write", (READS, NO_BUILDS, NO_COMMITS)),
        ("shell", "read-only", (READS, BUILDS, NO_COMMITS)),
        ("shell", "workspace-write", (WRITES, BUILDS, COMMITS)),
    ],
)
def test_each_policy_of_a_job_whose_folder_is_thrown_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, runtime: str, policy: str, says: tuple[str, ...]
) -> None:
    text = said(stage, monkeypatch, runtime, AutonomyPolicy(policy))
    assert {words for words in (READS, WRITES, CHANGES, BUILDS, NO_BUILDS, COMMITS, NO_COMMITS) if words in text} == {
        *says
    }


@pytest.mark.parametrize(
    ("policy", "says"),
    [("read-only", (READS, NO_BUILDS)), ("workspace-write", (CHANGES, NO_BUILDS)), ("danger-full-access", (CHANGES,))],
)
def test_each_policy_of_a_job_whose_folder_stays(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, policy: str, says: tuple[str, ...]
) -> None:
    text = said(stage, monkeypatch, policy=AutonomyPolicy(policy), branch="service/job-1")
    assert {words for words in (READS, WRITES, CHANGES, NO_BUILDS) if words in text} == {*says}


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({}, ("`/tmp` is yours alone", "; no network, except your own model's;")),
        ({"box": "none"}, ("`/tmp` is shared", "the network is the machine's own")),
        ({"network": "none"}, ("; no network;",)),
        ({"network": "full"}, ("the network is the machine's own",)),
        ({"hosts": ["*"]}, ("the internet through a proxy (HTTP, HTTPS)",)),
        ({"hosts": ["h.example"]}, ("no network, except your own model's and `h.example`",)),
        ({"hosts": [f"h{n}.example" for n in range(9)]}, ("and 1 more",)),
        ({"write": ["/srv/cache"]}, ("; you may write in `/srv/cache`;",)),
        ({"read": ["/opt/sdk"]}, ("part of the repository, except for what is in `/opt/sdk`.",)),
    ],
)
def test_each_box_and_setting(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any], says: tuple[str, ...]
) -> None:
    text = said(stage, monkeypatch, section=section)
    for sentence in says:
        assert sentence in text


def test_the_folder_of_the_program_itself_is_no_dependency(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    section = {"command": [sys.executable], "read": [str(Path(sys.executable).parent), "/opt/sdk"]}
    text = said(stage, monkeypatch, section=section)
    assert "part of the repository, except for what is in `/opt/sdk`." in text


def test_five_lines_with_folder_commits_limits_and_tools(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(stage, monkeypatch, timeout_seconds=1800.0)
    title, empty, folder, commits, references, allowed, tools = text.split("\n")
    assert (title, empty) == ("# Where you are", "")
    assert "Repository `acme/shop`, working folder `/srv/work`, on no branch (detached)" in folder
    assert f"commit `{B[:12]}`: its base, commit `{A[:12]}`" in commits
    assert f"`git diff {A[:12]}...HEAD`" in references, "this repository has no branch that names the base"
    assert allowed.endswith("time limit 30m; memory 3,072 MiB.")
    assert "The machine's tools are in PATH." in tools
    assert "no time limit of your own" in said(stage, monkeypatch)


@pytest.mark.parametrize("box", ["auto", "none"])
def test_a_job_is_sent_to_a_file_of_the_home_only_where_it_can_read_that(stage: Stage, box: str) -> None:
    context = replace(stage.context, settings=Settings.model_validate({"runtimes": {"shell": {"box": box}}}))
    body = context.artifacts.put(b"x" * 40_000)
    run = stage.job("", Action.REVIEW, parent_job_id="job-1", artifacts=("plan",), artifact_digest=body)
    text = prompt_of(context, run, Workspace(stage.repo, Worktree(Path("/srv/work"), B), line=TaskLine(A, B)))
    assert (str(context.home.root) in text) is (box == "none")
    assert ("the whole text is in a file that your box does not show" in text) is (box == "auto")
