"""An agent is known by its ancestors, however it hides; people and their programs are not taken for one (N5)."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from activities.runs import ancestry, os_processes
from activities.runs.ancestry import AgentProcess, GoneError, agent_of
from activities.runs.orphans import recent
from activities.runs.os_processes import MARK, environment_of, identity
from activities.runs.supervised_run import RunEnd, RunRequest, begin, follow
from tests.activities.runs.conftest import RequestFor
from tests.activities.runs.processes import parent, supervisor_of, without_fork_server
from tests.waiting import until, wait_for

pytestmark = [
    pytest.mark.ruling("N5"),
    pytest.mark.skipif(sys.platform != "linux", reason="without /proc ancestry tells nothing"),
]

CLEAN = "env -i PATH=$PATH"
SAYS = "echo $$ > draft; mv draft pid; exec sleep 600"
"""Writes its pid, and stays."""
HIDING = {
    "by nothing": SAYS,
    "by a clean environment": f"exec {CLEAN} sh -c '{SAYS}'",
    "by a session of its own": f"setsid -f {CLEAN} sh -c '{SAYS}'; sleep 600",
    "by a double fork": f"( ( {CLEAN} setsid sh -c '{SAYS}' & ) & ); sleep 600",
    "by another name": f"""cp "$(command -v sh)" bash; exec {CLEAN} ./bash -c '{SAYS}'""",
}


async def hidden(request: RunRequest) -> "tuple[int, asyncio.Task[RunEnd]]":
    """Return a process of the run that hides itself, and the run's task, once its claim was read."""
    pid_file = request.cwd / "pid"
    claim = await asyncio.to_thread(begin, request)
    task = asyncio.create_task(follow(request.run_dir, claim, None))
    await until(lambda: pid_file.exists() or task.done())
    return int(pid_file.read_text()), task


async def ended(task: "asyncio.Task[RunEnd]", request: RunRequest) -> RunEnd:
    os.kill(supervisor_of(request), signal.SIGTERM)
    return await task


@pytest.mark.parametrize("how", HIDING)
@pytest.mark.parametrize("forked", [True, False], ids=["forked", "directly"])
async def test_an_agent_is_known_however_it_hides(
    request_for: RequestFor, monkeypatch: pytest.MonkeyPatch, how: str, forked: bool
) -> None:
    if not forked:
        without_fork_server(monkeypatch)
    request = request_for(HIDING[how])
    pid, task = await hidden(request)
    job_id = request.run_dir.name.rpartition(".")[0]
    assert agent_of(pid) == AgentProcess(job_id, request.run_dir.parent.parent)
    await ended(task, request)
    assert identity(pid) is None, "what has hidden ends with its run"


async def test_a_parent_that_ends_during_the_look_leads_nobody_out(
    request_for: RequestFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pid of a dead parent may be a person's process by now."""
    request = request_for(SAYS)
    pid, task = await hidden(request)
    looks: list[int] = []
    true_parent = os_processes.parent_of

    def too_late(of: int) -> int | None:
        looks.append(of)
        return os.getpid() + 2_000_000 if of == pid and len(looks) == 1 else true_parent(of)

    monkeypatch.setattr(ancestry, "parent_of", too_late)
    assert agent_of(pid)
    assert looks.count(pid) > 1
    await ended(task, request)


async def test_an_agent_cannot_pass_for_that_of_another_job(request_for: RequestFor, tmp_path: Path) -> None:
    """Neither a mark helps, nor a process of the agent's own that looks like a supervisor of another run."""
    other = tmp_path / "runs" / "job-000000000000.1"
    fake = tmp_path / "activities" / "runs" / "supervisor.py"
    for folder in (other, fake.parent):
        folder.mkdir(parents=True)
    fake.write_text(f"import subprocess; subprocess.run(['sh', '-c', {SAYS!r}])")
    imitates = f"exec {sys.executable} -I -S {fake} 2> {other}/supervisor.log"
    request = request_for(f"export SERVICE_RUN_MARK=job-000000000000.1@home; {imitates}")
    pid, task = await hidden(request)
    assert ancestry.is_supervisor(parent(pid))
    assert agent_of(pid) == AgentProcess(request.run_dir.name.rpartition(".")[0], tmp_path)
    await ended(task, request)


async def test_a_run_whose_records_are_gone_is_still_an_agent_s(request_for: RequestFor) -> None:
    request = request_for(SAYS)
    pid, task = await hidden(request)
    supervisor = supervisor_of(request)
    (request.run_dir / "claim").unlink()
    request.run_dir.rename(request.run_dir.with_name("elsewhere"))
    assert agent_of(pid) == AgentProcess()
    os.kill(supervisor, signal.SIGTERM)
    await until(lambda: identity(pid) is None)
    await task


@pytest.mark.usefixtures("server")
async def test_what_a_killed_supervisor_leaves_is_ended_even_where_nothing_marks_it(request_for: RequestFor) -> None:
    request = request_for(HIDING["by a double fork"])
    pid, task = await hidden(request)
    os.kill(supervisor_of(request), signal.SIGKILL)
    await task
    await until(lambda: identity(pid) is None)
    orphans = list(recent(request.run_dir.parents[1] / "logs" / "orphans.jsonl", 3600))
    assert [(each["run_dir"], pid in each["pids"]) for each in orphans] == [(str(request.run_dir), True)]
    assert orphans[0]["said"].endswith("and its supervisor is dead")


def test_a_marked_process_is_an_agent_s_where_no_supervisor_is_left() -> None:
    marked = {"PATH": os.environ["PATH"], "SERVICE_RUN_MARK": "job-000000000000.1-" + "0" * 32 + "@home"}
    left = subprocess.Popen(["sleep", "600"], env=marked)
    wait_for(lambda: MARK in environment_of(left.pid), "a process that begins shows its environment a moment later")
    assert agent_of(left.pid) == AgentProcess("job-000000000000")
    left.kill()
    left.wait()


PEOPLE = {
    "in a shell": "exec sleep 600",
    "in a terminal's own session, as tmux and ssh have it": "exec setsid sleep 600",
    "from cron, with next to no environment": "exec env -i /bin/sh -c 'exec sleep 600'",
    "from a unit, or anything else that has left its parent": "setsid -f sh -c 'echo $$ > left; exec sleep 600'",
}


def typed(command: str, folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sh", "-c", command], cwd=folder)


@pytest.mark.parametrize("where", PEOPLE)
async def test_people_are_people_wherever_they_type(request_for: RequestFor, tmp_path: Path, where: str) -> None:
    """An agent runs beside them, too."""
    request = request_for(SAYS)
    _, task = await hidden(request)
    person = typed(PEOPLE[where], tmp_path)
    pid = person.pid
    if "left" in PEOPLE[where]:
        await until(lambda: (tmp_path / "left").exists() and (tmp_path / "left").read_text().strip())
        pid = int((tmp_path / "left").read_text())
    assert agent_of(pid) is None
    assert agent_of(os.getpid()) is None
    os.kill(pid, signal.SIGKILL)
    person.wait()
    await ended(task, request)


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(GoneError):
        agent_of(gone.pid)


ROOT = Path(__file__).parents[3]
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
UNTOLD = """
import sys
import tempfile
sys.path[:0] = [sys.argv[1]]
from activities.runs import ancestry, os_processes
try:
    print(ancestry.agent_of(os_processes.this_process()))
except ancestry.UntoldError as untold:
    print("untold:", untold)
"""
FOR_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None,
    reason="only root can mount a /proc of its own, and be another account",
)


def told(*how: str, code: Path = ROOT) -> str:
    """Start a process without a mark in this way, and return its own finding about itself."""
    command = [*how, PYTHON, "-I", "-S", "-c", UNTOLD, str(code)]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("this machine lets nobody have such a namespace")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@FOR_ROOT
def test_without_proc_people_cannot_be_recognised() -> None:
    assert told() == "None"
    covers = 'mount -t tmpfs none /proc && exec "$@"'
    assert told("unshare", "--mount", "sh", "-c", covers, "sh") == "untold: /proc does not show this process"


@FOR_ROOT
def test_behind_a_hidden_process_of_this_account_there_may_be_a_supervisor(tmp_path: Path) -> None:
    """A program can hide itself, and so its ancestors, where /proc shows only the account's own processes."""
    starts = "import ctypes, subprocess, sys\nsubprocess.run(sys.argv[1:])\n"
    hidden, supervisor = tmp_path / "hidden.py", tmp_path / "activities" / "runs" / "supervisor.py"
    for package in ("activities", "workflows"):
        shutil.copytree(ROOT / package, tmp_path / "code" / package)
    supervisor.parent.mkdir(parents=True)
    supervisor.write_text(starts)
    hidden.write_text(starts.replace("\n", "\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE\n", 1))
    for folder in (tmp_path, *tmp_path.parents):
        if Path(tempfile.gettempdir()) in folder.parents:
            folder.chmod(folder.stat().st_mode | 0o011)
    hides = 'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=64321 --regid=64321 --clear-groups "$@"'
    somebody = ("unshare", "--mount", "sh", "-c", hides, "sh")
    code = tmp_path / "code"
    assert told(*somebody, code=code) == "None", "above it are processes of another account only"
    assert told(*somebody, PYTHON, "-I", str(supervisor), code=code) == "an agent of an unknown job"
    below = told(*somebody, PYTHON, "-I", str(supervisor), PYTHON, str(hidden), code=code)
    assert below.startswith("untold: /proc does not show process")
