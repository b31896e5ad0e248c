"""Nothing of a worker reaches a supervisor or an agent, in whichever way the supervisor is started."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from activities.runs import spawn
from activities.runs.supervised_run import run
from tests.activities.runs.conftest import ENV, RequestFor
from tests.activities.runs.processes import (
    ORDINARY,
    STAYS,
    open_in,
    parent,
    supervisor_of,
    under_way,
    without_fork_server,
)
from tests.waiting import until

pytestmark = [
    pytest.mark.ruling("engine:runs"),
    pytest.mark.usefixtures("server"),
    pytest.mark.skipif(sys.platform != "linux", reason="what a process has is read in /proc"),
]

SECRET = "SERVICE_TEST_SECRET"
FACTS = "env; echo; ls -l /proc/self/fd; echo; umask"


@pytest.fixture(params=["forked", "directly"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return both ways to start a supervisor, which behave alike."""
    if request.param == "directly":
        without_fork_server(monkeypatch)
    return str(request.param)


def renew(way: str) -> None:
    """Restart the fork server, so that it inherits the current state."""
    if way == "forked":
        spawn.current().end()


async def test_nothing_of_the_workers_reaches_a_supervisor(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv(SECRET, "hidden")
    ours = os.open(tmp_path / "ours", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(ours, True)
    leaky = await asyncio.to_thread(subprocess.Popen, ["sleep", "600"], close_fds=False)
    await until(lambda: f"{SECRET}=hidden".encode() in Path(f"/proc/{leaky.pid}/environ").read_bytes())  # visible
    assert str(tmp_path / "ours") in open_in(leaky.pid).values()
    leaky.kill()
    leaky.wait()

    renew(way)
    request = request_for(STAYS)
    task = await under_way(request)
    supervisor = supervisor_of(request)
    assert Path(f"/proc/{supervisor}/environ").read_bytes() == b""
    await until(lambda: os.readlink(f"/proc/{supervisor}/cwd") == "/")  # it is elsewhere while it starts the agent
    assert os.getsid(supervisor) == supervisor
    assert parent(supervisor) == (spawn.current().pid if way == "forked" else os.getpid())
    # three streams, and the pipe by which signals wake it; it closes the agent's files once the agent has begun
    await until(lambda: len(open_in(supervisor)) == 5, lambda: open_in(supervisor))
    seen = open_in(supervisor)
    assert [seen.pop(number) for number in range(3)] == ["/dev/null", "/dev/null", f"{request.run_dir}/supervisor.log"]
    assert len(set(seen.values())) == 1
    assert set(seen.values()) < set(open_in(supervisor).values())
    if way == "forked":
        assert Path(f"/proc/{spawn.current().pid}/environ").read_bytes() == b""
        assert str(tmp_path / "ours") not in open_in(spawn.current().pid).values()
        assert Path(f"/proc/{supervisor}/comm").read_text() == "supervisor\n"
    (tmp_path / "go").touch()
    assert (await task).exit_code == 5
    os.close(ours)


async def test_nothing_of_the_workers_reaches_an_agent(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv(SECRET, "hidden")
    ours = os.open(tmp_path / "ours", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(ours, True)
    before, blocked = os.umask(0o027), signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        renew(way)
        spawn.current() if way == "forked" else None  # by this thread, whose signals are blocked
        end = await run(request_for(FACTS))
        status = await run(request_for("", argv=("cat", "/proc/self/status")))  # a shell would unblock them itself
    finally:
        os.umask(before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(ours)
    facts = dict(line.split(":\t", 1) for line in status.stdout.read_text().splitlines() if ":\t" in line)
    assert {name: int(facts[name], 16) & ORDINARY for name in ("SigBlk", "SigIgn")} == {"SigBlk": 0, "SigIgn": 0}
    env, descriptors, umask = end.stdout.read_text().split("\n\n")
    assert int(umask, 8) == 0o027
    names = {line.partition("=")[0] for line in env.splitlines()}
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {*ENV, "SERVICE_RUN_MARK"}
    targets = [line.partition(" -> ")[2] for line in descriptors.splitlines() if " -> " in line]
    run_dir = end.run_dir
    assert [each for each in targets if not each.startswith("/proc/")] == [
        "/dev/null",
        f"{run_dir}/stdout.log",
        f"{run_dir}/stderr.log",
    ]
