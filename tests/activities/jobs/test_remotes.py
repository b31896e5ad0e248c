"""Jobs of a repository with a remote, on two hosts that share nothing but the store and the hub (ruling Q3)."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.agents.shell import Shell
from activities.git import git_branches, hub
from activities.host import checkouts
from activities.host.slots import Slots
from activities.jobs.run_job import Jobs
from activities.pipelines.run_stage import Stages
from activities.store import attempt_rows, run_rows, schema, tree_rows
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Remote
from activities.store.run_rows import RunStart
from tests.activities.jobs.conftest import Stage, git
from tests.activities.jobs.remotes import ROOT, Hosts, lists, work, writes
from tests.unboxed import unboxed
from workflows.contract.models import Action
from workflows.model.states import JobState
from workflows.model.workers import UNRESOLVED
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunState, StageState, Trigger
from workflows.pipeline.rows import RunRecord, RunRecords, StageRecord
from workflows.pipeline.stages import Script, StageRun
from workflows.temporal.calls import WAITS
from workflows.tree.state import TreeInput


@pytest.mark.ruling("Q3")
async def test_a_leg_begins_from_work_that_another_host_pushed(hosts: Hosts, tmp_path: Path) -> None:
    one, other = hosts.of("a"), hosts.of("b")
    first = await one.play(one.job(writes("one.txt"), Action.IMPLEMENT, job_id=f"{ROOT}.1"))
    assert first.state is JobState.SUCCEEDED
    assert hosts.refs() == {f"refs/service/{ROOT}.1": first.head_sha}
    second = await other.play(other.job(writes("two.txt"), Action.IMPLEMENT, job_id=f"{ROOT}.2", line=(work(first),)))
    assert second.state is JobState.SUCCEEDED
    names = git(hosts.forge, "ls-tree", "--name-only", hosts.refs()[f"refs/service/{ROOT}.2"]).split()
    assert names == ["limiter.py", "one.txt", "two.txt"]
    seen = tmp_path / "seen"
    deps = (first.branch or "", second.branch or "")
    third = await one.play(one.job(lists(seen), Action.REVIEW, job_id=f"{ROOT}.3", branch_deps=deps))
    assert third.state is JobState.SUCCEEDED
    assert {"one.txt", "two.txt"} <= set(seen.read_text().split())


@pytest.mark.ruling("Q3")
async def test_the_line_that_a_reader_began_from_is_pushed_for_the_legs_it_delegates(hosts: Hosts) -> None:
    one, other = hosts.of("a"), hosts.of("b")
    made = [await one.play(one.job(writes(f"{n}.txt"), Action.IMPLEMENT, job_id=f"{ROOT}.{n}")) for n in (1, 2)]
    await one.play(one.job(lists(one.tmp / "seen"), job_id=f"{ROOT}.3", line=tuple(map(work, made))))
    row = attempt_rows.get(one.context.store, f"{ROOT}.3", 1)
    assert row is not None
    assert hosts.refs()[f"refs/service/line/{ROOT}.3"] == row.base_sha
    leg = other.job(
        writes("leg.txt"), Action.IMPLEMENT, job_id=f"{ROOT}.4", parent_job_id=f"{ROOT}.3", delegation_id="leg"
    )
    assert (await other.play(leg)).state is JobState.SUCCEEDED
    place = checkouts.path_by_name(other.context, "acme/shop")
    assert git_branches.commit(place, row.base_sha or "") == row.base_sha
    assert f"refs/heads/service/line/{ROOT}.3" not in git(place, "for-each-ref")


@pytest.mark.ruling("Q3")
async def test_a_job_waits_for_a_hub_that_is_away_before_and_after_its_program(hosts: Hosts, tmp_path: Path) -> None:
    one, away = hosts.of("a"), hosts.forge.with_name("away.git")
    checkouts.path_by_name(one.context, "acme/shop")
    count = tmp_path / "count"
    job = one.job(
        f"import os; os.rename({str(hosts.forge)!r}, {str(away)!r})\n" + writes("one.txt", counted=count),
        Action.IMPLEMENT,
    )
    hosts.forge.rename(away)
    with pytest.raises(ApplicationError) as waits:
        await one.play(job)
    assert (waits.value.type, waits.value.next_retry_delay is not None, count.exists()) == (WAITS, True, False)
    assert "waits for the hub of its repository: " in waits.value.message
    away.rename(hosts.forge)
    with pytest.raises(ApplicationError, match="has ended, and waits until its work can be pushed"):
        await one.play(job)
    held = [each for queue in one.context.reports.waiting.values() for each in queue][-1]
    assert "git ls-remote" in getattr(held, "next", "")
    away.rename(hosts.forge)
    outcome = await one.play(job)
    assert (outcome.state, count.read_text()) == (JobState.SUCCEEDED, "x")
    assert hosts.refs()[f"refs/service/{ROOT}"] == outcome.head_sha


def committed(forge: Path, folder: Path, name: str) -> str:
    """Push a commit with a file to the default branch, as a person does; return it."""
    if not folder.exists():
        git(forge.parent, "clone", "-q", str(forge), str(folder))
    (folder / name).write_text("x")
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", f"add {name}")
    git(folder, "push", "-q", "origin", "HEAD:main")
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.mark.ruling("Q3", "O1")
async def test_work_that_came_while_the_remote_was_away_begins_from_what_the_remote_then_has(
    hosts: Hosts, tmp_path: Path
) -> None:
    """Also on another host, whose mirror is older, and the second job from the same commit as the first."""
    one, other, away = hosts.of("a"), hosts.of("b"), hosts.forge.with_name("away.git")
    for host in (one, other):
        checkouts.path_by_name(host.context, "acme/shop")
    job = one.job(lists(tmp_path / "seen"), base=UNRESOLVED)
    start = TreeInput(root_job_id=ROOT, task_id=job.task_id, repo=job.repo, assignment=job.assignment, created_at=1.0)
    tree_rows.begin(one.context.store, start, "a")
    hosts.forge.rename(away)
    with pytest.raises(ApplicationError, match="waits for the hub of its repository: ") as waits:
        await one.play(job)
    assert waits.value.type == WAITS
    away.rename(hosts.forge)
    newer = committed(hosts.forge, tmp_path / "person", "newer.txt")
    assert (await one.play(job)).state is JobState.SUCCEEDED
    assert "newer.txt" in (tmp_path / "seen").read_text().split()
    committed(hosts.forge, tmp_path / "person", "newest.txt")
    later = other.job(lists(tmp_path / "later"), job_id=f"{ROOT}.1", base=UNRESOLVED)
    assert (await other.play(later)).state is JobState.SUCCEEDED
    row = attempt_rows.get(other.context.store, f"{ROOT}.1", 1)
    assert row is not None
    assert row.base_sha == newer


@pytest.mark.ruling("Q3", "B3")
async def test_a_shell_stage_says_that_it_waits_for_a_hub_that_is_away(hosts: Hosts) -> None:
    context, away = hosts.of("a").context, hosts.forge.with_name("away.git")
    row = StageRecord(
        run_id="run-1", stage_id="test", number=1, kind=StageKind.SHELL, needs=(), state=StageState.RUNNING, revision=2
    )
    state, trigger = RunState.RUNNING, Trigger.CLI
    whole = RunRecord(run_id="run-1", pipeline="ci", repo="acme/shop", trigger=trigger, state=state, started_at=1.0)
    run_rows.write(context.store, RunRecords(run=whole), RunStart("", {}))
    reads = f"sqlite3.connect({context.store.url.database!r}).execute('select reason from pipeline_stages').fetchone()"
    look = f"import sqlite3; print({reads})"
    run = StageRun(
        run_id=row.run_id,
        job_id="run-1.1",
        pipeline="ci",
        stage_id=row.stage_id,
        attempt=1,
        repo="acme/shop",
        script=context.artifacts.text(Script(command=(sys.executable, "-c", look)).model_dump_json()),
        payload=context.artifacts.text("{}"),
        base=git(hosts.forge, "rev-parse", "main").strip(),
        row=row,
    )
    stages, reason = Stages(context, Slots(context.settings)), select(schema.pipeline_stages.c.reason)
    hosts.forge.rename(away)
    with pytest.raises(ApplicationError, match="waits for the hub of its repository"):
        await ActivityEnvironment().run(stages.run_stage, run)
    with context.store.connect() as store:
        assert store.execute(reason).scalar_one().startswith("waits for the hub of its repository: ")
    away.rename(hosts.forge)
    again = ActivityEnvironment()
    again.info = replace(again.info, attempt=2)
    outcome = await again.run(stages.run_stage, run)
    assert (outcome.state, outcome.summary) == (StageState.SUCCEEDED, "('',)"), "it waits no more while it runs"


@pytest.mark.ruling("Q3")
async def test_a_hub_that_refuses_the_work_makes_it_wait_and_loses_nothing(hosts: Hosts) -> None:
    one = hosts.of("a")
    hook = hosts.forge / "hooks" / "update"
    hook.write_text("#!/bin/sh\necho 'not yours'; exit 1\n")
    hook.chmod(0o755)
    job = one.job(writes("one.txt"), Action.IMPLEMENT)
    with pytest.raises(ApplicationError, match=r"waits until its work can be pushed: .* refuses the service's work"):
        await one.play(job)
    hook.unlink()
    outcome = await one.play(job)
    assert hosts.refs()[f"refs/service/{ROOT}"] == outcome.head_sha


@pytest.mark.ruling("Q3")
async def test_work_on_a_branch_that_another_host_moved_is_kept_beside_it_and_told(hosts: Hosts) -> None:
    one, forge = hosts.of("a"), hosts.forge
    theirs = git(forge, "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}").strip()
    moves = ["git", "-C", str(forge), "update-ref", f"refs/service/{ROOT}", theirs]
    script = f"import subprocess; subprocess.run({moves!r}, check=True)\n" + writes("mine.txt")
    outcome = await one.play(one.job(script, Action.IMPLEMENT))
    kept = f"refs/service/{ROOT}@a"
    assert hosts.refs() == {f"refs/service/{ROOT}": theirs, kept: outcome.head_sha}
    assert any(kept in each.message for each in outcome.notices)


@pytest.mark.ruling("Q3")
async def test_a_checkout_with_a_remote_pushes_its_work_and_gets_that_of_others(hosts: Hosts) -> None:
    one, other = hosts.of("a"), hosts.of("b")
    repo_rows.put(one.context.store, "acme/shop", str(one.repo), "a")
    assert checkouts.path_by_name(one.context, "acme/shop") == one.repo
    first = await other.play(other.job(writes("one.txt"), Action.IMPLEMENT, job_id=f"{ROOT}.1"))
    second = await one.play(one.job(writes("two.txt"), Action.IMPLEMENT, job_id=f"{ROOT}.2", line=(work(first),)))
    assert git_branches.tip(one.repo, first.branch or "") == first.head_sha
    assert hosts.refs()[f"refs/service/{ROOT}.2"] == second.head_sha
    assert git(one.repo, "status", "--porcelain") == ""


class Killed(BaseException):
    """The worker's end, by a signal that it can't handle."""


@pytest.mark.ruling("Q3")
async def test_work_of_a_worker_killed_between_commit_and_push_is_pushed_by_the_next(
    hosts: Hosts, tmp_path: Path
) -> None:
    one, count = hosts.of("a"), tmp_path / "count"
    job = one.job(writes("one.txt", counted=count), Action.IMPLEMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "keep", _killed)
        with pytest.raises(Killed):
            await one.play(job)
    place = checkouts.path_by_name(one.context, "acme/shop")
    committed = git_branches.tip(place, f"service/{ROOT}")
    assert (git(place, "show", f"{committed}:one.txt"), hosts.refs()) == ("x", {})
    outcome = await hosts.of("a").play(job)
    assert (outcome.head_sha, count.read_text()) == (committed, "x")
    assert hosts.refs() == {f"refs/service/{ROOT}": committed}


def _killed(*_: object) -> str:
    raise Killed


@pytest.mark.ruling("Q3")
async def test_a_shared_worktree_is_made_again_on_a_new_machine_from_its_branch(hosts: Hosts, tmp_path: Path) -> None:
    one, other, seen = hosts.of("a"), hosts.of("b"), tmp_path / "seen"
    first = await one.play(one.job(writes("one.txt"), Action.IMPLEMENT, shared_worktree="web"))
    look = f"import os; open({str(seen)!r}, 'w').write(' '.join(sorted(os.listdir('.'))))\n"
    again = other.job(look + writes("two.txt"), Action.IMPLEMENT, shared_worktree="web", attempt=2, moved_from=1)
    second = await other.play(again)
    assert "one.txt" in seen.read_text().split()
    assert (first.branch, second.branch) == (f"service/{ROOT}-shared-web", first.branch)
    assert hosts.refs()[f"refs/service/{ROOT}-shared-web"] == second.head_sha


CI_FILE = ".github/workflows/x.yml"
WRITES_CI = f"import os; os.makedirs('.github/workflows'); open({CI_FILE!r}, 'w').write('on: push')\n"


def on_branches(stage: Stage, hosts: Hosts, *, allowed: bool) -> Stage:
    """Return the stage with a repository whose hub takes branches alone."""
    repo_rows.put(stage.context.store, "acme/shop", "", "a", remote=Remote(str(hosts.forge), "main", hub.HEADS))
    settings = unboxed({"git": {"hub_branches": allowed}})
    context = replace(stage.context, settings=settings)
    return replace(stage, context=context, jobs=Jobs(context, {"shell": Shell(())}, Slots(settings)))


@pytest.mark.ruling("Q3")
async def test_a_changed_ci_file_is_not_pushed_to_a_branch_and_the_work_stays(hosts: Hosts) -> None:
    host = on_branches(hosts.of("a"), hosts, allowed=True)
    outcome = await host.play(host.job(WRITES_CI + writes("x.txt"), Action.IMPLEMENT))
    assert outcome.state is JobState.FAILED
    assert f"{CI_FILE}: CI files are not pushed to branches of " in (outcome.reason or "")
    row = attempt_rows.get(host.context.store, ROOT, 1)
    assert row is not None
    assert (Path(row.worktree or "") / CI_FILE).read_text() == "on: push"
    assert [name for name in git(hosts.forge, "for-each-ref", "--format=%(refname)").split() if "service" in name] == []


@pytest.mark.ruling("Q3")
async def test_branches_that_the_operator_has_not_allowed_refuse_a_job_before_its_program(
    hosts: Hosts, tmp_path: Path
) -> None:
    host, count = on_branches(hosts.of("a"), hosts, allowed=False), tmp_path / "count"
    outcome = await host.play(host.job(writes("x.txt", counted=count), Action.IMPLEMENT))
    assert (outcome.state, count.exists()) == (JobState.FAILED, False)
    assert "[git].hub_branches = true" in (outcome.reason or "")
