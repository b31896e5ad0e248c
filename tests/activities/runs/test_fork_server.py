"""Every run starts once and goes on to its end, whatever happens to the fork server and the worker."""

import asyncio
import contextlib
import logging
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from activities.runs import spawn
from activities.runs.os_processes import descendants, identity
from activities.runs.supervised_run import Claim, RunRequest, prepare, run, stop
from activities.runs.supervisor import EndKind
from tests.activities.runs.conftest import RequestFor
from tests.activities.runs.processes import (
    PARENT,
    STAYS,
    parent,
    supervisor_of,
    under_way,
    without_fork_server,
    zombies_of,
)
from tests.waiting import until

pytestmark = [
    pytest.mark.ruling("engine:runs"),
    pytest.mark.usefixtures("server"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no fork server"),
]

CALLER = """
import asyncio, sys
from pathlib import Path
from activities.runs import spawn
from activities.runs.supervised_run import RunRequest, run
print(spawn.current().pid, flush=True)
asyncio.run(run(RunRequest(Path(sys.argv[1]), ("sh", "-c", sys.argv[2]), Path(sys.argv[3]), {"PATH": sys.argv[4]})))
"""


def test_what_every_supervisor_copies_has_no_threads_in_it() -> None:
    """Each fork makes the locks of `threading` anew, which costs a tenth of a run."""
    program = "import sys; sys.path.append(sys.argv[1]); from activities.runs import fork_server; print(*sys.modules)"
    root = str(Path(spawn.__file__).parents[2])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, root], capture_output=True, text=True, check=True)
    assert "activities.runs.supervisor" in done.stdout.split()
    assert not {"threading", "subprocess"} & set(done.stdout.split())


async def test_the_worker_and_the_run_go_on_without_their_fork_server(
    request_for: RequestFor, server: spawn.ForkServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = request_for(STAYS)
    task = await under_way(first)
    supervisor = supervisor_of(first)
    assert parent(supervisor) == server.pid
    os.kill(server.pid, signal.SIGKILL)
    await until(lambda: parent(supervisor) != server.pid)
    with caplog.at_level(logging.WARNING):
        assert (await run(request_for("exit 4"))).exit_code == 4
    assert f"the fork server {server.pid} has ended" in caplog.text
    assert spawn.current().pid != server.pid
    assert not spawn.current().ended
    assert not task.done()
    (tmp_path / "go").touch()
    end = await task
    assert (end.kind, end.exit_code, end.survivors) == (EndKind.EXITED, 5, 0)
    assert (tmp_path / "up").read_text() == "\n"


async def test_a_run_whose_fork_server_is_dead_can_be_stopped(
    request_for: RequestFor, server: spawn.ForkServer
) -> None:
    request = request_for(STAYS)
    task = await under_way(request)
    os.kill(server.pid, signal.SIGKILL)
    assert (await stop(request.run_dir, 0.2)).kind is EndKind.CANCELLED
    assert (await task).kind is EndKind.CANCELLED


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Record the requests that are sent to fork servers."""
    noted: list[bytes] = []
    send_fds = socket.send_fds

    def noting(channel: socket.socket, parts: list[bytes], descriptors: list[int]) -> int:
        count = send_fds(channel, parts, descriptors)
        noted.extend(parts)
        return count

    monkeypatch.setattr(socket, "send_fds", noting)
    return noted


async def test_a_start_whose_fork_server_dies_before_it_forks_is_tried_again(
    request_for: RequestFor, server: spawn.ForkServer, tmp_path: Path, sent: list[bytes]
) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    request = request_for(f"{PARENT} >> log; exit 3")
    task = asyncio.create_task(run(request))
    await until(lambda: sent)
    assert Claim.read(request.run_dir) is None
    os.kill(server.pid, signal.SIGKILL)
    assert (await task).exit_code == 3
    assert spawn.current().pid != server.pid
    assert (tmp_path / "log").read_text() == f"{spawn.current().pid}\n"


@dataclass(frozen=True)
class Held:
    """A run whose supervisor waits, before it reads anything, until it is released."""

    request: RunRequest
    key: bytes
    server: spawn.ForkServer

    async def let_go(self) -> None:
        await asyncio.to_thread((self.request.run_dir / "held").write_text, "go")


@pytest.fixture
def held(request_for: RequestFor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Start a fork server whose supervisors wait for a pipe."""
    monkeypatch.setattr("activities.runs.fork_server.__file__", str(Path(__file__).parent / "holding_fork_server.py"))
    spawn.current().end()
    request = request_for("echo ran >> log; exit 3")
    key = prepare(request)
    os.mkfifo(request.run_dir / "held")
    yield Held(request, key, spawn.current())
    spawn.current().end()


async def test_a_start_whose_fork_server_dies_after_it_forked_is_not_tried_again(held: Held, tmp_path: Path) -> None:
    request = held.request
    starting = asyncio.create_task(asyncio.to_thread(spawn.spawn, request.run_dir, held.key))
    await until(lambda: descendants(held.server.pid))
    (supervisor,) = descendants(held.server.pid)
    os.kill(held.server.pid, signal.SIGKILL)
    await until(lambda: parent(supervisor) != held.server.pid)
    assert not starting.done()
    assert Claim.read(request.run_dir) is None
    await held.let_go()
    await starting
    assert supervisor_of(request) == supervisor
    assert (await run(request)).exit_code == 3
    assert (tmp_path / "log").read_text() == "ran\n"


async def test_starts_do_not_wait_for_each_other(held: Held, request_for: RequestFor) -> None:
    request = held.request
    starting = asyncio.create_task(asyncio.to_thread(spawn.spawn, request.run_dir, held.key))
    await until(lambda: descendants(held.server.pid))
    assert (await run(request_for("exit 4"))).exit_code == 4
    assert not starting.done()
    await held.let_go()
    await starting
    assert (await run(request)).exit_code == 3


async def test_fork_servers_killed_at_random_moments_run_everything_once(
    request_for: RequestFor, tmp_path: Path
) -> None:
    moments = random.Random(7)
    requests = [request_for(f"echo ran >> log{number}; exit {number}") for number in range(24)]
    tasks = [asyncio.create_task(run(request)) for request in requests]
    killed = set()
    while not all(task.done() for task in tasks):
        now = spawn.current()
        killed.add(now.pid)
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(now.pid, signal.SIGKILL)
        await asyncio.sleep(moments.uniform(0.0, 0.2))
    assert [task.result().exit_code for task in tasks] == list(range(24))
    assert {(tmp_path / f"log{number}").read_text() for number in range(24)} == {"ran\n"}
    assert len(killed) > 1


async def test_a_fork_server_that_does_not_answer_is_given_up(
    request_for: RequestFor, server: spawn.ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn, "TAKEN_SECONDS", 0.2)
    os.kill(server.pid, signal.SIGSTOP)
    assert (await run(request_for("exit 4"))).exit_code == 4
    assert server.ended


async def test_without_a_fork_server_supervisors_are_started_directly(
    request_for: RequestFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fork_server(monkeypatch)
    request = request_for(STAYS)
    task = await under_way(request)
    assert parent(supervisor_of(request)) == os.getpid()
    (request.cwd / "go").touch()
    assert (await task).exit_code == 5


async def test_the_fork_server_ends_with_its_worker_and_the_runs_do_not(
    request_for: RequestFor, tmp_path: Path
) -> None:
    request = request_for(STAYS)
    arguments = [str(request.run_dir), request.argv[2], str(request.cwd), request.env["PATH"]]
    caller = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-c", CALLER, *arguments], stdout=subprocess.PIPE
    )
    assert caller.stdout is not None
    with caller.stdout as output:
        pid = int(await asyncio.to_thread(output.readline))
    await until((tmp_path / "up").exists)
    supervisor = supervisor_of(request)
    assert parent(supervisor) == pid
    assert identity(pid) is not None
    caller.kill()
    caller.wait()
    await until(lambda: identity(pid) is None)
    assert identity(supervisor) is not None
    (tmp_path / "go").touch()
    end = await run(request)
    assert (end.kind, end.exit_code) == (EndKind.EXITED, 5)
    assert (tmp_path / "up").read_text() == "\n"


async def test_many_starts_at_once_leave_no_zombies(
    request_for: RequestFor, server: spawn.ForkServer, tmp_path: Path, sent: list[bytes]
) -> None:
    zombie = await asyncio.to_thread(subprocess.Popen, ["true"])
    await until(lambda: zombie.pid in zombies_of(os.getpid()))  # a zombie would be seen
    zombie.wait()
    requests = [request_for(f"{PARENT} >> parents; echo >> ran") for _ in range(32)]
    os.kill(server.pid, signal.SIGSTOP)  # until all of them are in its queue
    with ThreadPoolExecutor(32) as pool:
        runs = [pool.submit(asyncio.run, run(request)) for request in requests]
        await until(lambda: len(sent) == 32)
        os.kill(server.pid, signal.SIGCONT)
        ends = await asyncio.gather(*map(asyncio.wrap_future, runs))
    assert {(end.kind, end.exit_code, end.survivors) for end in ends} == {(EndKind.EXITED, 0, 0)}
    assert (tmp_path / "ran").read_text() == "\n" * 32
    assert (tmp_path / "parents").read_text().split() == [str(server.pid)] * 32
    await until(lambda: not zombies_of(os.getpid(), server.pid))
    assert not server.ended
    await until(lambda: not descendants(server.pid))


async def test_a_supervisor_that_fails_before_its_claim_says_why_once(
    request_for: RequestFor, server: spawn.ForkServer
) -> None:
    request = request_for("true")
    key = prepare(request)
    (request.run_dir / "spec.json").unlink()
    await asyncio.to_thread(spawn.spawn, request.run_dir, key)
    assert Claim.read(request.run_dir) is None
    assert (request.run_dir / "supervisor.log").read_text().count("FileNotFoundError") == 1
    assert not server.ended


@pytest.mark.parametrize("program", ["forkless_fork_server.py", "dying_fork_server.py"])
async def test_a_start_that_no_fork_server_can_make_is_made_directly(
    request_for: RequestFor, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr("activities.runs.fork_server.__file__", str(Path(__file__).parent / program))
    spawn.current().end()
    request = request_for(f"{PARENT}; exit 4")
    end = await run(request)
    assert (end.exit_code, end.stdout.read_text()) == (4, f"{os.getpid()}\n")
    spawn.current().end()
