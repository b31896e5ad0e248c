"""What a host made of a job that moved while it was away is kept, and is not the job's (ruling Q5)."""

import asyncio
from pathlib import Path

import pytest

from activities import moving
from activities.runs.os_processes import identity
from activities.store import attempt_rows, event_rows, job_rows, moves
from activities.store.attempt_rows import Offered
from tests.activities.jobs.conftest import Stage, git
from tests.activities.jobs.remotes import ROOT, Hosts, writes
from tests.rows import job as job_row
from tests.waiting import until
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.policy.moving import Move

pytestmark = pytest.mark.ruling("Q5.kept")
REF = f"refs/service/kept/{ROOT}-1"


def works(mark: Path, then: Path) -> str:
    """Return an agent that leaves an uncommitted file, and ends once another file exists."""
    return (
        "import os, time\n"
        "open('new.txt', 'w').write('x')\n"
        f"open({str(mark)!r}, 'w').write(str(os.getpid()))\n"
        f"while not os.path.exists({str(then)!r}): time.sleep(0.02)\n" + writes("late.txt")
    )


def taken(host: Stage, run: JobRun) -> None:
    """Have the tree take the attempt from its host."""
    job_rows.write(host.context.store, Records(jobs=(job_row(ROOT, state=JobState.RUNNING, repo="acme/shop"),)))
    move = Move(job_id=run.job_id, attempt=1, host=host.context.host, reason="its host is lost")
    assert moves.give_up(host.context.store, Offered(run.job_id, 1, run.offer), move)


async def moved(host: Stage, agent: str, mark: Path) -> tuple[JobRun, "asyncio.Task[JobOutcome]"]:
    """Start a job, and have the tree take it from its host once its agent is at work."""
    job = host.job(agent, Action.IMPLEMENT)
    running = asyncio.create_task(host.play(job))
    await until(mark.exists)
    taken(host, job)
    return job, running


def is_told(host: Stage) -> list[str]:
    return [event.message for event in event_rows.of_tree(host.context.store, ROOT) if event.kind == "work_kept"]


async def test_an_agent_that_ends_after_the_move_leaves_a_ref_and_no_branch(hosts: Hosts, tmp_path: Path) -> None:
    one, mark, then = hosts.of("a"), tmp_path / "mark", tmp_path / "then"
    _, running = await moved(one, works(mark, then), mark)
    await moving.keep_work(one.context)
    assert REF not in hosts.refs(), "its call is under way, and ends it"
    then.touch()
    outcome = await running
    assert (outcome.state, outcome.moved) == (JobState.CANCELLED, True)
    await moving.keep_work(one.context)
    assert {"late.txt", "new.txt"} <= {*git(hosts.forge, "ls-tree", "--name-only", REF).splitlines()}
    assert f"refs/service/{ROOT}" not in hosts.refs()
    row = attempt_rows.get(one.context.store, ROOT, 1)
    assert row is not None
    assert not Path(row.worktree or "").exists()
    assert is_told(one) == [f"a came back: its work on attempt 1, which had moved, is kept as {REF}"]
    before = hosts.refs()
    await moving.keep_work(one.context)
    assert hosts.refs() == before


async def test_an_agent_that_nobody_waits_for_is_ended_and_its_work_waits_for_the_hub(
    hosts: Hosts, tmp_path: Path
) -> None:
    one, mark = hosts.of("a"), tmp_path / "mark"
    job, running = await moved(one, works(mark, tmp_path / "never"), mark)
    pid, restarted = int(mark.read_text()), hosts.of("a")
    away = hosts.forge.with_name("away.git")
    hosts.forge.rename(away)
    await moving.keep_work(restarted.context)
    assert identity(pid) is None
    assert (await running).moved
    away.rename(hosts.forge)
    await moving.keep_work(restarted.context)
    assert "new.txt" in git(hosts.forge, "ls-tree", "--name-only", REF)
    assert (await restarted.play(job)).moved, "a call that comes late finds the decision"


async def test_work_that_the_hub_cannot_take_now_stays_until_it_can(
    hosts: Hosts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, mark, then = hosts.of("a"), tmp_path / "mark", tmp_path / "then"
    _, running = await moved(one, works(mark, then), mark)
    then.touch()
    await running
    lock = hosts.forge / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    caplog.clear()
    faults = await moving.keep_work(one.context)
    assert await moving.keep_work(one.context, faults) == faults
    assert [record.levelname for record in caplog.records] == ["WARNING"], "one fault is logged once"
    assert moves.to_keep(one.context.store, "a") == [(ROOT, 1)]
    lock.unlink()
    assert await moving.keep_work(one.context, faults) == {}
    assert "new.txt" in git(hosts.forge, "ls-tree", "--name-only", REF)
