"""Orphaned processes are found, reported and ended; runs that may still be wanted are not touched."""

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from activities.runs.orphans import discard_run, find_orphans, kill_orphan, old_runs, report
from activities.runs.os_processes import with_mark
from activities.runs.run_folders import Key, key_of
from activities.runs.supervised_run import Claim, RunRequest, mark_of, run, stop
from activities.runs.supervisor import EndKind
from tests.activities.runs.conftest import RequestFor
from tests.activities.runs.processes import without_fork_server
from tests.waiting import until

pytestmark = pytest.mark.ruling("engine:runs")


def wanting(*requests: RunRequest) -> set[Key]:
    keys = {key_of(request.run_dir.name) for request in requests}
    return {key for key in keys if key}


def supervisor_of(request: RunRequest) -> int:
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert claim.pid is not None
    return claim.pid


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("job-a.1", ("job-a", 1)),
        ("job-a.3.2", ("job-a.3", 2)),
        ("job-a.3.2.again", ("job-a.3", 2)),
        ("job-a.1.repair", ("job-a", 1)),
        ("job-a.1.try2", ("job-a", 1)),
        ("job-a.3.2.try12.again", ("job-a.3", 2)),
        ("notes", None),
    ],
)
def test_a_run_directory_names_its_job_and_attempt(name: str, key: Key | None) -> None:
    assert key_of(name) == key


async def test_orphans_are_reported_then_killed(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fork_server(monkeypatch)  # it would end what its supervisors leave
    unwanted, wanted, beheaded = (request_for(f"echo > {name}; sleep 600") for name in ("a", "b", "c"))
    tasks = [asyncio.create_task(run(request)) for request in (unwanted, wanted, beheaded)]
    await until(lambda: all((tmp_path / name).exists() for name in ("a", "b", "c")))
    tasks[2].cancel()  # otherwise it would clean up itself
    claim = Claim.read(beheaded.run_dir)
    assert claim is not None
    assert claim.pid is not None
    os.kill(claim.pid, signal.SIGKILL)
    await until(lambda: not claim.alive)

    orphans = {orphan.run_dir: orphan for orphan in find_orphans(tmp_path / "runs", wanting(wanted))}
    assert orphans.keys() == {unwanted.run_dir, beheaded.run_dir}
    assert orphans[unwanted.run_dir].supervisor is not None
    assert orphans[beheaded.run_dir].supervisor is None
    assert orphans[beheaded.run_dir].pids
    assert not tasks[0].done()  # reporting touches nothing

    assert [await kill_orphan(orphan, 0.2) for orphan in orphans.values()] == [0, 0]
    assert find_orphans(tmp_path / "runs", wanting(wanted)) == ()
    assert (await tasks[0]).kind is EndKind.CANCELLED
    assert not tasks[1].done()
    await stop(wanted.run_dir, 0.2)
    await tasks[1]


async def test_a_run_somebody_will_attach_to_is_left_alone_the_program_run_again_for_it_too(
    request_for: RequestFor, tmp_path: Path
) -> None:
    first = request_for("echo > up; sleep 600")
    again = RunRequest(**{**vars(first), "run_dir": first.run_dir.with_name(first.run_dir.name + ".again")})
    task = asyncio.create_task(run(again))
    await until((tmp_path / "up").exists)
    assert find_orphans(tmp_path / "runs", wanting(first)) == ()
    assert [orphan.run_dir for orphan in find_orphans(tmp_path / "runs", ())] == [again.run_dir]
    await stop(again.run_dir, 0.1)
    await task


async def test_another_homes_runs_are_never_touched_not_even_a_copied_homes(
    request_for: RequestFor, tmp_path: Path
) -> None:
    request = request_for("echo > up; sleep 600")
    task = asyncio.create_task(run(request))
    await until((tmp_path / "up").exists)
    copy = tmp_path / "copy" / "runs"
    shutil.copytree(tmp_path / "runs", copy)
    assert find_orphans(copy, ()) == ()
    copied = Claim.read(copy / request.run_dir.name)
    assert copied is not None
    assert not copied.alive
    assert (await stop(copy / request.run_dir.name, 0.1)).kind is EndKind.UNKNOWN
    assert not task.done()
    assert with_mark(mark_of(request.run_dir))
    await stop(request.run_dir, 0.1)
    await task


async def test_what_goes_on_after_its_directory_was_removed_is_found(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fork_server(monkeypatch)  # it would end what its supervisors leave
    request = request_for("echo > up; sleep 600")
    task = asyncio.create_task(run(request))
    await until((tmp_path / "up").exists)
    supervisor = supervisor_of(request)
    task.cancel()
    shutil.rmtree(request.run_dir)
    os.kill(supervisor, signal.SIGKILL)
    (orphan,) = find_orphans(tmp_path / "runs", ())
    assert orphan.pids
    assert await kill_orphan(orphan) == 0
    assert find_orphans(tmp_path / "runs", ()) == ()


async def test_the_report_says_what_goes_on(
    request_for: RequestFor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = f'exec {sys.executable} -c \'import time; open("up", "w").close(); time.sleep(600)\''
    request = request_for(one)  # once it is up it stays one process
    task = asyncio.create_task(run(request))
    await until((tmp_path / "up").exists)
    orphans = find_orphans(tmp_path / "runs", ())
    report(orphans, tmp_path / "logs" / "orphans.jsonl")
    (line,) = (tmp_path / "logs" / "orphans.jsonl").read_text().splitlines()
    assert json.loads(line)["said"] in caplog.text
    assert json.loads(line)["pids"] == sorted(with_mark(mark_of(request.run_dir)))
    assert request.run_dir.name in line
    assert not task.done()
    await stop(request.run_dir, 0.1)
    await task


async def test_old_output_of_recorded_runs_goes_and_only_that(request_for: RequestFor, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("job-a.1", "job-a.1.repair", "job-b.1", "job-new.1", "job-open.1", "notes"):
        (runs / name).mkdir(parents=True)
        (runs / name / "stdout.log").write_text("said")
        os.utime(runs / name, (0, 0))
    going_on = request_for("echo > up; sleep 600")
    task = asyncio.create_task(run(going_on))
    await until((tmp_path / "up").exists)
    os.utime(going_on.run_dir, (0, 0))
    (runs / "job-touched.1").mkdir()
    over = {("job-a", 1), ("job-b", 1), ("job-touched", 1), key_of(going_on.run_dir.name)}
    old = list(old_runs(runs, over.__contains__, time.time() - 50))
    assert [path.name for path in old] == ["job-a.1", "job-a.1.repair", "job-b.1"]
    for run_dir in old:
        discard_run(run_dir)
    names = {"job-new.1", "job-open.1", "job-touched.1", "notes", going_on.run_dir.name}
    assert {path.name for path in runs.iterdir()} == names
    await stop(going_on.run_dir, 0.1)
    await task
