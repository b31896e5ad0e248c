"""Forged files in a run's folder are not trusted, and nothing waits for them."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from activities.runs import spawn, supervised_run
from activities.runs.os_processes import with_mark
from activities.runs.output import last_line, last_lines, read_bounded
from activities.runs.regular_files import NotRegularError
from activities.runs.run_folders import RunError, made_run_key
from activities.runs.status import RunStage, look
from activities.runs.supervised_run import Claim, Progress, RunEnd, RunRequest, mark_of, prepare, read_end, run, stop
from activities.runs.supervisor import EndKind
from activities.sealing.seal_key import SealKeyError
from activities.stations import hook as stations
from tests.activities.runs.conftest import RequestFor
from tests.activities.runs.processes import STAYS, supervisor_of, under_way, without_fork_server
from tests.waiting import soon, until

pytestmark = pytest.mark.ruling("N4")

CLAIM = {"pid": 1, "start": "1", "at": 1.0}
EXIT = {"kind": "exited", "exit_code": 0, "started_at": 1.0, "ended_at": 2.0}


def forge(run_dir: Path, **records: object) -> None:
    """Write records as somebody without the key would, with an invalid seal."""
    for name, content in records.items():
        file = run_dir / {"exit": "exit.json", "spec": "spec.json"}.get(name, name)
        file.unlink(missing_ok=True)
        file.write_text(json.dumps(content) + "\n" + "0" * 64)


def not_believed(end: RunEnd) -> bool:
    """Return whether the end says that its record is not trusted, with its path."""
    return end.kind is EndKind.UNKNOWN and str(end.run_dir) in end.problem and "seal" in end.problem


async def test_a_forged_end_of_a_run_that_never_ran_is_not_believed_and_nothing_starts(
    request_for: RequestFor, tmp_path: Path
) -> None:
    request = request_for("echo >> ran")
    prepare(request)
    forge(request.run_dir, claim=CLAIM, exit=EXIT)
    (request.run_dir / "stdout.log").write_text("forged")
    assert not_believed(await run(request))
    assert not_believed(await run(request)), "nobody knows whether it was started, so it never is"
    assert not_believed(await stop(request.run_dir, 0.1))
    assert not (tmp_path / "ran").exists()


async def test_a_claim_that_appears_while_it_starts_keeps_it_from_starting(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_for("echo >> ran")

    def overtaken(run_dir: Path, key: bytes) -> None:
        forge(run_dir, claim=CLAIM)
        spawn.spawn(run_dir, key)

    monkeypatch.setattr("activities.runs.supervised_run.spawn", overtaken)
    assert not_believed(await run(request))
    assert not (tmp_path / "ran").exists()


async def test_an_end_that_is_forged_while_it_runs_is_written_over_by_its_own(request_for: RequestFor) -> None:
    request = request_for(STAYS)
    task = await under_way(request)
    forge(request.run_dir, exit=EXIT)
    assert read_end(request.run_dir) is None
    assert not task.done()
    (request.cwd / "go").touch()
    assert (await task).exit_code == 5


async def test_a_forged_end_of_a_run_whose_supervisor_is_dead_is_not_believed_and_nothing_goes_on(
    request_for: RequestFor,
) -> None:
    request = request_for(STAYS)
    task = await under_way(request)
    forge(request.run_dir, exit=EXIT)
    os.kill(supervisor_of(request), signal.SIGKILL)
    assert not_believed(await task)
    assert with_mark(mark_of(request.run_dir)) == set()


async def test_a_claim_that_is_written_over_does_not_start_it_twice(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo >> ran; while :; do sleep 0.02; done")
    task = asyncio.create_task(run(request))
    await until((tmp_path / "ran").exists)
    forge(request.run_dir, claim=CLAIM)
    assert not_believed(await run(request))
    assert (await task).kind in (EndKind.EXITED, EndKind.UNKNOWN)
    assert (tmp_path / "ran").read_text() == "\n"
    assert with_mark(mark_of(request.run_dir)) == set()


async def test_a_claim_that_was_removed_does_not_start_it_twice(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = list[str]()
    monkeypatch.setattr(stations, "hook", lambda station, *_: reached.append(station))
    request = request_for("echo >> ran; while :; do sleep 0.02; done")
    task = asyncio.create_task(run(request))
    await until(lambda: "program started" in reached and (tmp_path / "ran").exists())
    (request.run_dir / "claim").unlink()
    end = await run(request)
    assert (end.kind, "its claim is missing" in end.problem) == (EndKind.UNKNOWN, True)
    await task
    assert (tmp_path / "ran").read_text() == "\n"
    assert with_mark(mark_of(request.run_dir)) == set()


async def test_records_of_another_run_are_not_believed_for_this_one(request_for: RequestFor, tmp_path: Path) -> None:
    good, other = request_for("exit 0"), request_for("echo >> ran")
    assert (await run(good)).exit_code == 0
    prepare(other)
    for name in ("claim", "exit.json", "stdout.log", "stderr.log"):
        shutil.copy(good.run_dir / name, other.run_dir / name)
    assert not_believed(await run(other))
    assert (await run(good)).exit_code == 0
    assert not (tmp_path / "ran").exists()


async def test_one_record_is_not_believed_in_the_place_of_another(request_for: RequestFor) -> None:
    request = request_for(STAYS)
    task = await under_way(request)
    shutil.copy(request.run_dir / "claim", request.run_dir / "exit.json")
    os.kill(supervisor_of(request), signal.SIGKILL)
    assert not_believed(await task)


@pytest.mark.parametrize("replayed", [False, True], ids=["made up", "of another run"])
async def test_a_supervisor_runs_only_what_the_service_asked_for(
    request_for: RequestFor, tmp_path: Path, replayed: bool
) -> None:
    asked, evil = request_for("echo >> asked"), request_for("echo >> evil")
    key = prepare(asked)
    prepare(evil)
    spec = evil.run_dir / "spec.json"
    if replayed:
        shutil.copy(spec, asked.run_dir / "spec.json")
    else:
        forge(asked.run_dir, spec=json.loads(spec.read_text().splitlines()[0]))
    await asyncio.to_thread(spawn.spawn, asked.run_dir, key)
    assert Claim.read(asked.run_dir) is None
    assert "does not carry the seal" in (asked.run_dir / "supervisor.log").read_text()
    assert (await run(asked)).exit_code == 0, "the service writes it anew"
    assert not (tmp_path / "evil").exists()


async def test_another_prompt_than_the_service_wrote_is_not_given_to_the_program(
    request_for: RequestFor, tmp_path: Path
) -> None:
    request = request_for("cat > said", prompt=b"review it")
    key = prepare(request)
    (request.run_dir / "prompt").write_text("approve it")
    await asyncio.to_thread(spawn.spawn, request.run_dir, key)
    end = await run(request)
    assert (end.kind, end.error) == (EndKind.NOT_STARTED, f"{request.run_dir / 'prompt'} is not what the service wrote")
    assert not (tmp_path / "said").exists()


async def test_a_forged_stop_does_not_shorten_the_grace(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("trap 'sleep 0.4; exit 9' INT; echo > up; while :; do sleep 0.02; done", grace_seconds=60.0)
    task = await under_way(request)
    (request.run_dir / "stop").write_text("0.0")
    os.kill(supervisor_of(request), signal.SIGTERM)
    end = await task
    assert (end.kind, end.exit_code) == (EndKind.CANCELLED, 9)


@pytest.mark.parametrize("name", ["stdout.log", "stderr.log"])
@pytest.mark.parametrize("what", ["link", "pipe", "file"])
async def test_what_stands_where_its_output_belongs_is_not_written_to(
    request_for: RequestFor, tmp_path: Path, name: str, what: str
) -> None:
    request = request_for("echo >> ran; echo said; echo said >&2")
    prepare(request)
    put(request.run_dir / name, what, tmp_path / "precious")
    end = await soon(run(request))
    assert end.kind is EndKind.NOT_STARTED
    assert name in end.error
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
async def test_output_that_was_replaced_is_reported_and_neither_followed_nor_waited_for(
    request_for: RequestFor, tmp_path: Path, what: str
) -> None:
    request = request_for("echo said")
    end = await run(request)
    end.stdout.unlink()
    put(end.stdout, what, tmp_path / "precious")
    for text in (last_line(end.stdout), last_lines(end.stdout, 500), look(request.run_dir).last_line):
        assert "mine" not in text
    assert f"{end.stdout} is " in last_line(end.stdout)
    assert look(request.run_dir).stage is RunStage.ENDED


async def test_the_supervisors_log_is_not_written_through_a_link(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo >> ran")
    prepare(request)
    put(request.run_dir / "supervisor.log", "link", tmp_path / "precious")
    with pytest.raises(RunError, match=r"supervisor\.log is a link"):
        await run(request)
    assert (tmp_path / "precious").read_text() == "mine"


async def test_a_pipe_in_the_place_of_a_record_is_not_waited_for(request_for: RequestFor) -> None:
    request = request_for("true")
    prepare(request)
    os.mkfifo(request.run_dir / "claim")
    end = await soon(run(request))
    assert end.kind is EndKind.UNKNOWN
    assert "not a regular file" in end.problem


def put(path: Path, what: str, precious: Path) -> None:
    """Put something else in the place of a file; its target must be neither read nor written."""
    precious.write_text("mine")
    match what:
        case "link":
            path.symlink_to(precious)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_text("mine")


async def test_a_claim_that_a_loss_of_power_has_emptied_starts_nothing(request_for: RequestFor, tmp_path: Path) -> None:
    request = request_for("echo >> ran")
    prepare(request)
    (request.run_dir / "claim").touch()
    assert not_believed(await run(request))
    assert not (tmp_path / "ran").exists()


async def test_runs_of_a_release_without_seals_are_ended_and_said_to_be_unknown(
    request_for: RequestFor, tmp_path: Path
) -> None:
    request = request_for("true")
    prepare(request)
    program = await asyncio.create_subprocess_exec("sleep", "600", env={"SERVICE_RUN_MARK": mark_of(request.run_dir)})
    (request.run_dir / "claim").write_text(json.dumps({"pid": os.getpid(), "start": "1", "at": 1.0}))
    assert look(request.run_dir).stage is RunStage.ENDED
    assert not_believed(await run(request))
    assert await program.wait() == -signal.SIGKILL


async def test_a_copy_of_a_home_without_its_key_believes_nothing_and_says_so(
    request_for: RequestFor, tmp_path: Path
) -> None:
    request = request_for("exit 0")
    await run(request)
    copy = tmp_path / "copy" / "runs" / request.run_dir.name
    shutil.copytree(request.run_dir, copy)
    claim = Claim.read(copy)
    assert claim is not None
    assert "the service home has no seal key" in claim.problem
    assert not_believed(await run(RunRequest(copy, request.argv, tmp_path, request.env)))
    assert look(copy).stage is RunStage.ENDED


async def test_a_key_that_cannot_be_used_decides_nothing_until_it_can(request_for: RequestFor, tmp_path: Path) -> None:
    request, key = request_for(STAYS), tmp_path / "seal.key"
    task = await under_way(request)
    key.chmod(0o644)
    for ask in (run(request), stop(request.run_dir)):
        with pytest.raises(SealKeyError, match="not a private file of this account"):
            await ask
    assert look(request.run_dir).stage is not RunStage.RUNNING
    key.chmod(0o600)
    assert look(request.run_dir).stage is RunStage.RUNNING
    (tmp_path / "go").touch()
    assert (await run(request)).exit_code == (await task).exit_code == 5


async def test_a_key_that_cannot_be_used_any_more_loses_no_run_that_was_started_with_it(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, key = request_for(STAYS), tmp_path / "seal.key"

    def spoilt(run_dir: Path, run_key: bytes) -> None:
        spawn.spawn(run_dir, run_key)
        key.chmod(0o644)

    monkeypatch.setattr(supervised_run, "spawn", spoilt)
    claim = supervised_run.begin(request)
    assert not claim.problem
    key.chmod(0o600)

    def spoil_and_go(_: Progress) -> None:
        key.chmod(0o644)
        (tmp_path / "go").touch()

    assert (await supervised_run.follow(request.run_dir, claim, spoil_and_go)).exit_code == 5


@pytest.mark.parametrize("way", ["forked", "directly"])
async def test_the_key_stands_in_no_argument_no_environment_and_no_file_of_the_run(
    request_for: RequestFor, server: spawn.ForkServer, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "directly":
        without_fork_server(monkeypatch)
    request = request_for(STAYS, prompt=b"look")
    task = await under_way(request)
    key = made_run_key(request.run_dir)
    supervisor = supervisor_of(request)
    seen = {place: place.read_bytes() for place in request.run_dir.iterdir()}
    for pid in (supervisor, *with_mark(mark_of(request.run_dir))):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the agent starts programs that soon end
            seen |= {path: path.read_bytes() for path in (Path(f"/proc/{pid}/cmdline"), Path(f"/proc/{pid}/environ"))}
    assert len([path for path in seen if path.name == "environ"]) >= 2, "the supervisor's and the agent's"
    for place, content in seen.items():
        assert key not in content, place
        assert key.hex().encode() not in content, place
    (request.cwd / "go").touch()
    assert (await task).exit_code == 5


def test_reading_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(NotRegularError, match="is a link"):
        read_bounded(tmp_path / "link", 0, 10)
