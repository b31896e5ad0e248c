"""Work in progress survives the host it was made on (ruling Q6)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.host import checkouts
from activities.jobs import snapshots
from activities.store.registry import repo_rows
from tests.activities.jobs.conftest import git
from tests.activities.jobs.remotes import ROOT, Hosts, writes
from tests.waiting import until
from workflows.contract.models import Action
from workflows.model.states import JobState

SNAP = f"refs/service/snap/{ROOT}"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "EVERY_SECONDS", 0.1)


def works(mark: Path, then: Path) -> str:
    """Return an agent that commits, leaves more uncommitted, and ends once a file exists."""
    return (
        "import os, subprocess, time\n"
        "open('committed.txt', 'w').write('x')\n"
        "subprocess.run(['git', 'add', 'committed.txt'], check=True)\n"
        "subprocess.run(['git', 'commit', '-qm', 'mine'], check=True)\n"
        "open('limiter.py', 'w').write('limit = 2\\n'); open('new.txt', 'w').write('x')\n"
        f"open({str(mark)!r}, 'w').write(str(os.getpid()))\n"
        f"while not os.path.exists({str(then)!r}): time.sleep(0.02)\n" + writes("late.txt")
    )


@pytest.mark.ruling("Q6")
async def test_an_attempt_elsewhere_goes_on_from_the_last_snapshot(hosts: Hosts, tmp_path: Path) -> None:
    one, other, mark = hosts.of("a"), hosts.of("b"), tmp_path / "mark"
    job = one.job(works(mark, tmp_path / "never"), Action.IMPLEMENT)
    running = asyncio.create_task(ActivityEnvironment().run(one.jobs.run_job, job))
    await until(lambda: mark.exists() and SNAP in hosts.refs())
    await until(lambda: "new.txt" in git(hosts.forge, "ls-tree", "--name-only", SNAP))
    running.cancel()  # the host is gone, and nothing of it is heard again
    os.kill(int(mark.read_text()), signal.SIGKILL)
    seen, prompt = tmp_path / "seen", tmp_path / "prompt"
    look = (
        "import subprocess, sys\n"
        f"subprocess.run(['git', 'status', '-s'], stdout=open({str(seen)!r}, 'w'), check=True)\n"
        f"open({str(prompt)!r}, 'w').write(sys.stdin.read())\n"
    )
    again = other.job(look + writes("two.txt"), Action.IMPLEMENT, attempt=2, moved_from=1)
    outcome = await other.play(again)
    assert outcome.state is JobState.SUCCEEDED
    assert seen.read_text().splitlines() == [" M limiter.py", "?? committed.txt", "?? new.txt"]
    assert prompt.read_text().startswith("An earlier attempt of this job was cut short: its machine was lost.")
    assert set(outcome.touched_files) == {"committed.txt", "limiter.py", "new.txt", "two.txt"}
    assert git(hosts.forge, "show", f"{outcome.head_sha}:limiter.py") == "limit = 2\n"
    assert [name for name in hosts.refs() if "/snap/" in name] == []


@pytest.mark.ruling("Q6")
async def test_a_job_that_ends_leaves_no_snapshot(hosts: Hosts, tmp_path: Path) -> None:
    one, mark, then = hosts.of("a"), tmp_path / "mark", tmp_path / "then"
    running = asyncio.create_task(one.play(one.job(works(mark, then), Action.IMPLEMENT)))
    await until(lambda: SNAP in hosts.refs())
    registered = repo_rows.must_get(one.context.store, "acme/shop")
    repo, through = checkouts.path_of(one.context, registered), checkouts.hub_of(one.context, registered)
    assert through is not None
    assert snapshots.latest(repo, through, ROOT) == hosts.refs()[SNAP]
    then.touch()
    outcome = await running
    assert hosts.refs() == {f"refs/service/{ROOT}": outcome.head_sha}
    assert snapshots.latest(repo, through, ROOT) is None


@pytest.mark.ruling("Q6")
async def test_without_a_snapshot_an_attempt_elsewhere_begins_afresh(hosts: Hosts) -> None:
    other = hosts.of("b")
    outcome = await other.play(other.job(writes("two.txt"), Action.IMPLEMENT, attempt=2, moved_from=1))
    assert (outcome.state, outcome.touched_files) == (JobState.SUCCEEDED, ("two.txt",))


@pytest.mark.ruling("Q6")
async def test_a_hub_that_is_away_stops_no_agent(hosts: Hosts, tmp_path: Path) -> None:
    one, mark, then = hosts.of("a"), tmp_path / "mark", tmp_path / "then"
    running = asyncio.create_task(one.play(one.job(works(mark, then), Action.IMPLEMENT)))
    await until(mark.exists)
    away = hosts.forge.with_name("away.git")
    hosts.forge.rename(away)
    await asyncio.sleep(0.5)
    away.rename(hosts.forge)
    await until(lambda: SNAP in hosts.refs())
    then.touch()
    assert (await running).state is JobState.SUCCEEDED
    assert list(hosts.refs()) == [f"refs/service/{ROOT}"]


@pytest.mark.ruling("Q6", "N7")
async def test_a_file_with_a_secret_is_not_pushed_while_a_job_works_and_its_end_names_it(
    hosts: Hosts, tmp_path: Path
) -> None:
    one, mark, then = hosts.of("a"), tmp_path / "mark", tmp_path / "then"
    secret = "open('.env', 'w').write('GITHUB_TOKEN=ghp_' + 'a1B2c3D4e5F6' * 3)\n"
    running = asyncio.create_task(one.play(one.job(secret + works(mark, then), Action.IMPLEMENT)))
    await until(lambda: mark.exists() and SNAP in hosts.refs())
    await until(lambda: "new.txt" in git(hosts.forge, "ls-tree", "--name-only", SNAP))
    assert ".env" not in git(hosts.forge, "ls-tree", "--name-only", SNAP)
    then.touch()
    outcome = await running
    assert "not in its snapshots: .env: it holds a secret" in " ".join(each.message for each in outcome.notices)
