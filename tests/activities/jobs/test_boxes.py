"""A job in a box, from its worktree to its record (ruling N2)."""

import json
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.agents.shell import Shell
from activities.boxes import try_boxes
from activities.boxes.box import Network
from activities.boxes.control_group import MEMORY
from activities.boxes.try_boxes import Machine
from activities.host.slots import Slots
from activities.jobs import workspace
from activities.jobs.run_job import Jobs
from activities.jobs.workspace import Evidence, Workspace
from activities.settings.model import Settings
from activities.store import attempt_rows
from tests.activities.boxes.groups import kept_within
from tests.activities.jobs.conftest import Stage
from workflows.contract.models import Action, AutonomyPolicy, ServiceResult
from workflows.model.jobs import JobRun
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("N2")

ANSWER = 'print(json.dumps({"service_result": {"decision": "approved", "summary": summary, "changes_made": []}}))\n'
LOOK = """
import json, os, pathlib
def tried(what):
    try:
        what(); return "done"
    except OSError as error:
        return type(error).__name__
"""


@pytest.fixture(autouse=True)
def users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "h" / ".ssh").mkdir(parents=True)
    (tmp_path / "h" / ".ssh" / "key").write_text("secret")
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    return tmp_path / "h"


def boxed(stage: Stage, **section: Any) -> Stage:
    """Return the stage with a box around its agents."""
    settings = Settings.model_validate({"runtimes": {"shell": section}})
    context = replace(stage.context, settings=settings)
    return replace(stage, context=context, jobs=Jobs(context, {"shell": Shell(())}, Slots(settings)))


@pytest.fixture(autouse=True)
def has_boxes() -> None:
    if why := try_boxes.look(Settings().worker.agents_uid).lacks(Network.MODEL):
        pytest.skip(why)


def diagnostics(stage: Stage, job_id: str) -> dict[str, Any]:
    row = attempt_rows.get(stage.context.store, job_id, 1)
    assert row
    return row.diagnostics or {}


async def test_an_agent_works_in_its_folder_and_reaches_nothing_of_the_service(stage: Stage, users_home: Path) -> None:
    home = stage.context.home.root
    script = f"""{LOOK}
summary = json.dumps([
    tried(lambda: open("{users_home}/.ssh/key")), tried(lambda: open("{home}/store.db")),
    tried(lambda: open("{stage.repo}/planted", "w")), tried(lambda: open("{users_home}/planted", "w").close()),
    tried(lambda: open("limiter.py", "a").write("limit = 2\\n")), tried(lambda: open("new.py", "w").write("new\\n")),
])
{ANSWER}"""
    job = stage.job(script, Action.IMPLEMENT)
    boxed_stage = boxed(stage)
    outcome = await boxed_stage.play(job)
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    key, store, _, _, edited, made = json.loads(outcome.summary)
    assert "done" not in (key, store)
    assert (edited, made) == ("done", "done")
    assert set(outcome.touched_files) == {"limiter.py", "new.py"}
    assert not (users_home / "planted").exists()
    assert not (stage.repo / "planted").exists()
    assert diagnostics(stage, job.job_id)["box"] == "bwrap, network model"


async def test_a_reader_by_policy_cannot_write_its_folder(stage: Stage) -> None:
    script = f'{LOOK}summary = tried(lambda: open("new.py", "w")) + " " + os.environ["TMPDIR"]\n{ANSWER}'
    job = stage.job(script)
    worker = job.assignment.worker.model_copy(update={"autonomy_policy": AutonomyPolicy.READ_ONLY})
    job = job.model_copy(update={"assignment": job.assignment.model_copy(update={"worker": worker})})
    outcome = await boxed(stage, network="none").play(job)
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert outcome.summary.split()[0] in ("PermissionError", "OSError")
    assert diagnostics(stage, job.job_id)["box"] == "bwrap, network none"


async def test_a_shell_agent_reaches_no_port_of_this_machine_unless_the_settings_name_it(stage: Stage) -> None:
    """Otherwise it could answer people's questions through Temporal, whose server does not authenticate callers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ways = f"""{LOOK}
import socket
from urllib.parse import urlsplit
def directly():
    socket.create_connection(("127.0.0.1", {port}), 5)
def by_proxy(name):
    proxy = urlsplit(os.environ["https_proxy"])
    with socket.create_connection((proxy.hostname, proxy.port), 5) as one:
        one.sendall(f"CONNECT {{name}}:{port} HTTP/1.1\\r\\nHost: {{name}}\\r\\n\\r\\n".encode())
        if b" 200 " not in one.recv(100):
            raise OSError("refused")
tries = [directly, *(lambda name=name: by_proxy(name) for name in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0"))]
summary = " ".join(map(tried, tries))
{ANSWER}"""
        outcome = await boxed(stage).play(stage.job(ways))
        assert outcome.state is JobState.SUCCEEDED, outcome.reason
        assert len(outcome.summary.split()) == 5
        assert "done" not in outcome.summary
        named = stage.job(f"{ways}", job_id="job-0123456789ac")
        reached = await boxed(stage, hosts=[f"127.0.0.1:{port}"]).play(named)
        assert reached.summary.split()[0] == "done", reached.reason


async def test_what_an_agent_wrote_is_the_service_s_afterwards(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    does = 'os.mkdir("a"); open("a/b", "w").write("x"); os.symlink("/etc/shadow", "a/link"); summary = "fine"'
    script = f"{LOOK}{does}\n{ANSWER}"
    seen = list[int]()
    collect = workspace.collect

    def looked(place: Workspace, run: JobRun, result: ServiceResult | None, model: str | None) -> Evidence:
        seen.extend(path.lstat().st_uid for path in place.worktree.path.rglob("*"))
        return collect(place, run, result, model)

    monkeypatch.setattr(workspace, "collect", looked)
    job = stage.job(script, Action.IMPLEMENT)
    outcome = await boxed(stage).play(job)
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert set(seen) == {os.geteuid()}
    assert Path("/etc/shadow").stat().st_uid == 0


async def test_a_reader_s_folder_is_the_service_s_before_it_is_looked_at_and_deleted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entries keep their owner: only the service may enter the folder around it."""
    seen = list[tuple[int, str]]()
    collect = workspace.collect

    def looked(place: Workspace, run: JobRun, result: ServiceResult | None, model: str | None) -> Evidence:
        seen.append((place.worktree.path.stat().st_uid, (place.worktree.path / "new").read_text()))
        assert stat.S_IMODE(place.worktree.path.parent.stat().st_mode) == 0o700
        return collect(place, run, result, model)

    monkeypatch.setattr(workspace, "collect", looked)
    outcome = await boxed(stage).play(stage.job(f'{LOOK}open("new", "w").write("x"); summary = "fine"\n{ANSWER}'))
    assert outcome.state is JobState.SUCCEEDED, outcome.reason
    assert seen == [(os.geteuid(), "x")]
    assert not list(stage.context.home.worktrees.iterdir())


async def test_without_a_box_nothing_is_run_unless_the_settings_say_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(try_boxes, "look", lambda _: Machine(bwrap=try_boxes.INSTALL))
    job = stage.job(f"{LOOK}open('{stage.tmp}/ran', 'w'); summary = 'fine'\n{ANSWER}")
    refused = await boxed(stage).play(job)
    assert refused.state is JobState.BLOCKED
    assert "no box of this machine holds agents of shell, and without one none is run" in refused.reason
    assert "install bubblewrap" in refused.first
    assert '[runtimes.shell].box = "none"' in refused.first
    assert not (stage.tmp / "ran").exists()
    again = stage.job(f"{LOOK}open('{stage.tmp}/ran', 'w'); summary = 'fine'\n{ANSWER}", job_id="job-0123456789ac")
    ran = await boxed(stage, box="none").play(again)
    assert ran.state is JobState.SUCCEEDED
    assert diagnostics(stage, again.job_id)["box"] == "none"


async def test_a_folder_around_the_service_s_home_is_not_handed_out(stage: Stage) -> None:
    refused = await boxed(stage, read=[str(stage.tmp)]).play(stage.job(ANSWER))
    assert refused.state is JobState.BLOCKED
    assert "holds the service's own secrets" in refused.reason


async def test_folders_that_the_settings_name_are_there(stage: Stage) -> None:
    (stage.tmp / "tools").mkdir()
    (stage.tmp / "tools" / "tool").write_text("useful")
    (stage.tmp / "cache").mkdir()
    script = f"""{LOOK}
open("{stage.tmp}/cache/kept", "w").write("kept")
summary = open("{stage.tmp}/tools/tool").read() + tried(lambda: open("{stage.tmp}/tools/tool", "w"))
{ANSWER}"""
    section = {"read": [f"{stage.tmp}/tools"], "write": [f"{stage.tmp}/cache"]}
    outcome = await boxed(stage, **section).play(stage.job(script))
    assert outcome.summary.startswith("useful"), outcome.reason
    assert "done" not in outcome.summary
    assert (stage.tmp / "cache" / "kept").read_text() == "kept"


async def test_a_failure_that_may_come_of_the_box_says_so(stage: Stage) -> None:
    beside = stage.tmp / "beside.json"
    beside.write_text("{}")
    lacks = f"import sys; sys.exit(0 if __import__('os').system('cat {beside}') == 0 else 3)"
    failed = await boxed(stage, network="none").play(stage.job(lacks))
    assert failed.state is JobState.FAILED
    assert "it ran in a box: bwrap, network none" in failed.reason
    assert "[runtimes.shell]" in failed.reason


async def test_a_failure_for_want_of_memory_says_so(stage: Stage) -> None:
    takes = f"{LOOK}x = bytearray(300 << 20); summary = str(len(x))\n{ANSWER}"
    with kept_within({MEMORY: 200 << 20}):
        failed = await boxed(stage, network="none").play(stage.job(takes))
    assert failed.state is JobState.FAILED
    assert "the kernel killed it for lack of memory" in failed.reason
    assert "all agents together may take 200 MiB, see [worker].agents_memory" in failed.reason


async def test_a_job_that_ran_out_of_its_own_memory_says_so(stage: Stage) -> None:
    takes = f"{LOOK}x = bytearray(300 << 20); summary = str(len(x))\n{ANSWER}"
    with kept_within({MEMORY: 900 << 20}, {MEMORY: 200 << 20}):
        failed = await boxed(stage, network="none").play(stage.job(takes))
    assert failed.state is JobState.FAILED
    assert failed.reason.endswith("; it used all of its memory: 200 MiB, see [worker].job_memory")


async def test_a_failure_of_its_own_says_nothing_of_the_box(stage: Stage) -> None:
    failed = await boxed(stage, network="none").play(stage.job("raise SystemExit('I give up')"))
    assert failed.state is JobState.FAILED
    assert "box" not in failed.reason
    assert "memory" not in failed.reason
