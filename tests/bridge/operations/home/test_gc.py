"""`service gc`: unneeded files are listed, then removed; trees that may go on keep everything."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from activities.git import mirrors
from activities.git.work_folder.worktrees import add_branch
from activities.runs import orphans
from activities.runs.supervised_run import Claim
from activities.settings.home import Home
from activities.store import artifacts, run_rows, schema
from bridge.machine.locks import FileLock
from bridge.operations.home import backup, gc
from bridge.operations.home.gc import Reclaimed
from bridge.operations.registry import repos
from bridge.operations.service import Service
from cli.main import main
from tests.activities.git.conftest import make_repository, run_git
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.written import ROOT as SOURCE
from workflows.model.errors import RefusedError
from workflows.model.states import JobState, TaskState
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunState, StageState, Trigger
from workflows.pipeline.rows import RunRecord, RunRecords, StageRecord

pytestmark = pytest.mark.ruling("engine:gc")

DAY = 86_400.0
OTHER = "job-0123456789ac"


def ago(days: float) -> float:
    return time.time() - days * DAY


def aged(path: Path, days: float) -> Path:
    os.utime(path, (ago(days), ago(days)))
    return path


@pytest.fixture
def service(home: Home, tmp_path: Path) -> Service:
    made = Service(home)
    repos.add(made, "acme/shop", make_repository(tmp_path / "shop"))
    return made


def tree(service: Service, root: str = ROOT, *, ended: float | None = 40, **fields: Any) -> None:
    """Add a tree that began 50 days ago."""
    over = {"state": TaskState.DONE, "ended_at": ended and ago(ended), "opened_at": ago(50)}
    seeds.write(
        service,
        seeds.task(root, **over | fields),
        seeds.job(root, state=JobState.SUCCEEDED, ended_at=ended and ago(ended)),
    )


def left(service: Service, root: str = ROOT) -> dict[str, Path]:
    """Create the files of a tree: an attempt's folder, its program's sessions, its gathered inputs, a work folder; a
    text; a log.
    """
    run_dir = service.home.runs / f"{root}.1-{'0' * 32}"
    run_dir.mkdir(mode=0o700, parents=True)
    (run_dir / "stdout.log").write_text("x" * 1000)
    row = {"job_id": root, "attempt": 1, "host": "here", "run_dir": str(run_dir), "started_at": ago(41)}
    with service.store.begin() as connection:
        connection.execute(insert(schema.attempts), row | {"ended_at": ago(40)})
    sessions = service.home.programs / root
    (sessions / "runtime_b" / "work" / "projects").mkdir(parents=True)
    (sessions / "runtime_b" / "work" / "projects" / "one.jsonl").write_text("x" * 50)
    brief = service.home.artifacts / "delegations" / root
    brief.mkdir(parents=True)
    (brief / "brief.md").write_text("x" * 100)
    text = artifact(service, root, 40)
    checkout = Path(repos.get(service, "acme/shop").path)
    worktree = add_branch(checkout, service.home.worktrees / f"acme--shop+{root}-1", f"service/{root}-leg", "main")
    service.home.logs.mkdir(exist_ok=True)
    log = service.home.logs / "worker.log.1"
    log.write_text("x" * 10)
    return {
        "runs": run_dir,
        "sessions": sessions,
        "brief": brief,
        "artifacts": text,
        "worktrees": worktree.path,
        "logs": aged(log, 40),
    }


def artifact(service: Service, content: str, days: float) -> Path:
    digest = service.artifacts.put(content.encode())
    return aged(service.home.artifacts / "sha256" / digest[:2] / digest[2:], days)


def counts(reclaimed: Reclaimed) -> dict[str, int]:
    return {room.what.value: room.count for room in reclaimed.rooms}


def test_what_an_old_tree_left_is_listed_then_removed_then_gone(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(service)
    things = left(service)
    assert main(["gc"]) == 0
    printed = capsys.readouterr().out.splitlines()
    sizes = [line.split()[:3] for line in printed[1:4]]
    assert sizes == [["runs", "1", "1.0"], ["sessions", "1", "50"], ["artifacts", "2", "116"]]
    assert [line.split()[0] for line in printed[4:6]] == ["worktrees", "logs"]
    assert printed[6].startswith("nothing was removed; to free ")
    assert printed[6].endswith(" kB: service gc --older-than 30d --yes")
    assert all(path.exists() for path in things.values())

    assert main(["gc", "--yes", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["removed"], answer["older_than"], answer["problems"]) == (True, "30d", [])
    assert [(room["what"], room["count"]) for room in answer["rooms"]] == [
        *(("runs", 1), ("sessions", 1), ("artifacts", 2), ("worktrees", 1), ("logs", 1))
    ]
    assert answer["bytes"] == sum(room["bytes"] for room in answer["rooms"]) > 1000
    assert not any(path.exists() for path in things.values())
    assert main(["gc", "--yes"]) == 0
    assert capsys.readouterr().out == "nothing older than 30d can go\nfreed 0 bytes\n"
    assert main(["job", "show", ROOT]) == 0, "rows stay"


@pytest.mark.parametrize(
    "fields",
    [
        {"state": TaskState.OPEN, "ended": None},
        {"state": TaskState.AWAITING_HUMAN, "ended": None},
        {"state": TaskState.BLOCKED},
        {"ended": 29},
        {"state": TaskState.CANCELLED, "ended": 1},
    ],
)
def test_what_may_go_on_or_has_just_ended_keeps_all_it_has(service: Service, fields: dict[str, Any]) -> None:
    tree(service, **fields)
    things = left(service)
    things.pop("logs")
    reclaimed = gc.reclaim(service, "30d", yes=True)
    assert counts(reclaimed) == {"runs": 0, "sessions": 0, "artifacts": 0, "worktrees": 0, "logs": 1}
    assert all(path.exists() for path in things.values())
    is_open = fields.get("state") not in (None, TaskState.CANCELLED)
    assert [why.startswith("all of a task that is not over") for why in reclaimed.kept] == [True] * is_open


def test_beside_a_tree_that_goes_on_the_old_one_goes(service: Service) -> None:
    tree(service)
    tree(service, OTHER, state=TaskState.BLOCKED)
    gone, stays = left(service), {}
    stays = {name: path for name, path in left(service, OTHER).items() if name != "logs"}
    gc.reclaim(service, "30d", yes=True)
    assert [name for name, path in gone.items() if path.exists()] == ["artifacts"], "they may share it"
    assert all(path.exists() for path in stays.values())


def test_texts_go_that_were_last_used_before_all_that_may_need_them_began(service: Service) -> None:
    tree(service, state=TaskState.OPEN, ended=None)
    older, younger, used = (artifact(service, name, days) for name, days in (("a", 51), ("b", 49), ("c", 60)))
    service.artifacts.put(b"c")
    gc.reclaim(service, "30d", yes=True)
    assert (older.exists(), younger.exists(), used.exists()) == (False, True, True)


def test_what_is_used_at_the_last_moment_stays(service: Service) -> None:
    path, root = artifact(service, "a", 60), service.home.artifacts
    assert [*artifacts.old(root, ago(30))] == [path]
    service.artifacts.put(b"a")
    artifacts.discard(root, path, ago(30))
    assert path.exists()
    artifacts.discard(root, aged(path, 60), ago(30))
    assert not path.exists()


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.SUCCEEDED])
def test_a_tree_of_a_pipelines_run_is_over_when_the_run_is(service: Service, state: RunState) -> None:
    tree(service)
    things = left(service)
    run_id, over = "prun-0123456789ab", state is RunState.SUCCEEDED
    run = RunRecord(
        run_id=run_id, pipeline="nightly", repo="acme/shop", state=state, revision=1,
        started_at=ago(50), finished_at=ago(40) if over else None, trigger=Trigger.CLI,
    )  # fmt: skip
    stage = StageRecord(
        run_id=run_id,
        stage_id="build",
        number=1,
        kind=StageKind.AGENT,
        state=StageState.SUCCEEDED,
        needs=(),
        job_id=ROOT,
    )
    run_rows.write(service.store, RunRecords(run=run, stages=(stage,)), run_rows.RunStart("", {}))
    gc.reclaim(service, "30d", yes=True)
    assert things["runs"].exists() is not over
    assert things["worktrees"].exists() is not over


def test_work_that_is_nowhere_else_stays(service: Service) -> None:
    tree(service)
    things = left(service)
    (things["worktrees"] / "mine.txt").write_text("mine")
    assert counts(gc.reclaim(service, "30d", yes=True))["worktrees"] == 0
    assert (things["worktrees"] / "mine.txt").exists()


def test_what_lives_stays(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(service)
    run_dir = left(service)["runs"]
    monkeypatch.setattr(Claim, "read", lambda _: Claim(1.0, pid=os.getpid()))
    monkeypatch.setattr(Claim, "alive", True)
    assert counts(gc.reclaim(service, "30d", yes=True))["runs"] == 0
    orphans.discard_run(run_dir)
    assert run_dir.exists()


def test_what_nobody_knows_stays(service: Service) -> None:
    things = left(service)
    things.pop("logs")
    things.pop("artifacts")
    strange = service.home.runs / "notes"
    strange.mkdir()
    gc.reclaim(service, "30d", yes=True)
    assert strange.exists()
    assert all(path.exists() for path in things.values())


def test_what_cannot_be_removed_is_said_and_the_rest_goes(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(service)
    things = left(service)

    def refuse(run_dir: Path) -> None:
        raise PermissionError(13, "Permission denied", str(run_dir))

    monkeypatch.setattr(orphans, "discard_run", refuse)
    assert main(["gc", "--yes"]) == 1
    assert f"error: {things['runs']} could not be removed: " in capsys.readouterr().err
    assert [name for name, path in things.items() if path.exists()] == ["runs"]


def test_it_does_not_work_beside_a_backup_nor_that_beside_it(service: Service, tmp_path: Path) -> None:
    lock = FileLock.take(service.home.root / "upkeep.lock", wait=0)
    assert lock is not None
    who = f"process {os.getpid()} makes a backup or cleans up"
    with pytest.raises(RefusedError, match=who):
        gc.reclaim(service, "30d", yes=False)
    with pytest.raises(RefusedError, match=who):
        backup.make(service, tmp_path / "b")
    lock.release()
    backup.make(service, tmp_path / "b")


KILLED = """
import os, signal, sys
from pathlib import Path
count = int(sys.argv[1])
def event(name, arguments):
    global count
    by_program = name == "subprocess.Popen" and arguments[0] == "rm"
    if by_program or name in ("os.remove", "os.rmdir") and "/home/" in os.fspath(arguments[0]):
        count -= 1
        if count < 0:
            os.kill(os.getpid(), signal.SIGKILL)
from bridge.operations.home import gc
from bridge.operations.service import Service
service = Service.locate()
service.store
sys.addaudithook(event)
gc.reclaim(service, "30d", yes=True)
"""


@pytest.mark.parametrize("removals", [0, 1, 2, 4, 6])
def test_one_that_is_killed_is_gone_on_with_by_the_next(service: Service, removals: int) -> None:
    tree(service)
    tree(service, OTHER, state=TaskState.BLOCKED, opened_at=ago(20))
    gone = left(service)
    stays = {name: path for name, path in left(service, OTHER).items() if name in ("runs", "brief", "worktrees")}
    command = [sys.executable, "-P", "-c", KILLED, str(removals)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert gc.reclaim(service, "30d", yes=True).problems == ()
    assert [name for name, path in gone.items() if path.exists()] == []
    assert all(path.exists() for path in stays.values())
    assert (stays["runs"] / "stdout.log").exists()


@pytest.mark.ruling("Q3", "Q6")
def test_names_at_the_hub_that_only_ended_trees_needed_are_removed(service: Service, tmp_path: Path) -> None:
    tree(service)
    tree(service, OTHER, state=TaskState.OPEN, ended=None)
    forge = tmp_path / "forge.git"
    run_git(tmp_path, "clone", "-q", "--bare", "shop", str(forge))
    repos.add(service, "acme/shop", None, remote=str(forge))
    head = run_git(forge, "rev-parse", "main")
    for name in (f"snap/{ROOT}.1", f"line/{ROOT}", f"kept/{ROOT}.1-1", f"{ROOT}.1", f"snap/{OTHER}.1", f"base/{head}"):
        run_git(forge, "update-ref", f"refs/service/{name}", head)
    old = aged(mirror(service, "acme/gone", forge), 40)
    reclaimed = gc.reclaim(service, "30d", yes=True)
    assert (counts(reclaimed)["references"], counts(reclaimed)["mirrors"], reclaimed.problems) == (2, 1, ())
    left = run_git(forge, "for-each-ref", "--format=%(refname)", "refs/service").splitlines()
    kept = [f"refs/service/{name}" for name in (f"{ROOT}.1", f"kept/{ROOT}.1-1", f"line/{ROOT}")]  # may be merged yet
    assert left == [*kept, f"refs/service/snap/{OTHER}.1"]
    run_git(forge, "update-ref", "-d", kept[0])
    assert counts(gc.reclaim(service, "30d", yes=True))["references"] == 2
    assert not old.exists()
    forge.rename(tmp_path / "away.git")
    assert "references" not in counts(gc.reclaim(service, "30d", yes=True))


def mirror(service: Service, name: str, forge: Path) -> Path:
    """Return a mirror of a repository that was registered and forgotten."""
    return mirrors.make_if_missing(mirrors.mirror_of(service.home.mirrors, name, str(forge), "main"))
