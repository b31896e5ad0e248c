"""Identification of local callers: an agent is recognised by its socket (ruling N5)."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from activities.runs.ancestry import AgentProcess, agent_of
from activities.runs.os_processes import start_time
from activities.runs.supervised_run import RunRequest, run, stop
from bridge.machine import tcp_callers
from bridge.machine.tcp_callers import CannotTellError, agent_at, is_known, lookup
from tests.waiting import until

pytestmark = [
    pytest.mark.ruling("N5"),
    pytest.mark.skipif(sys.platform != "linux", reason="without /proc nobody is known by a socket"),
]

JOB = "job-0123456789ab"
CALLS = """
import os, socket, struct, sys, time
family, host, port, then = getattr(socket, sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
line = socket.socket(family)
line.connect((host, port))
open("called", "w").close()
if then == "closes":
    line.close()
if then == "resets":
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()
if then == "hides":  # under way from one end of a pair to the other, in nobody's descriptors
    pair = socket.socketpair()
    socket.send_fds(pair[0], [b"x"], [line.fileno()])
    line.close()
open("done", "w").close()
time.sleep(600)
"""


@contextmanager
def listening(family: socket.AddressFamily, host: str) -> Iterator[socket.socket]:
    with socket.create_server((host, 0), family=family) as listener:
        listener.settimeout(60)
        yield listener


@asynccontextmanager
async def called(folder: Path, words: list[str]) -> AsyncIterator[None]:
    """Run an agent that has called."""
    runs = folder / "home" / "runs"
    runs.mkdir(parents=True, mode=0o700)
    request = RunRequest(
        runs / f"{JOB}.1", (sys.executable, "-I", "-S", "-c", CALLS, *words), folder, {"PATH": os.environ["PATH"]}
    )
    task = asyncio.create_task(run(request))
    await until(lambda: (folder / "done").exists() or task.done())
    assert not task.done(), task
    try:
        yield
    finally:
        await stop(request.run_dir, 0.1)
        await task


@pytest.mark.parametrize(
    ("family", "host", "here"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1"),
    ],
    ids=["IPv4", "IPv6", "IPv4 by a socket of IPv6"],
)
async def test_an_agent_is_known_by_its_connection(
    tmp_path: Path, family: socket.AddressFamily, host: str, here: str
) -> None:
    with listening(family, host) as listener:
        port = listener.getsockname()[1]
        kind = "AF_INET6" if ":" in here else "AF_INET"
        async with called(tmp_path, [kind, here, str(port), "stays"]):
            line, caller = listener.accept()
            with line:
                assert agent_at(caller[:2], line.getsockname()[:2]) == AgentProcess(JOB, tmp_path / "home")
                assert not is_known(caller[:2], line.getsockname()[:2])


@pytest.mark.parametrize("then", ["closes", "resets", "hides"])
async def test_a_caller_that_hides_its_socket_is_not_taken_for_a_person(tmp_path: Path, then: str) -> None:
    with listening(socket.AF_INET, "127.0.0.1") as listener:
        async with called(tmp_path, ["AF_INET", "127.0.0.1", str(listener.getsockname()[1]), then]):
            line, caller = listener.accept()
            with line, pytest.raises(CannotTellError):
                agent_at(caller, line.getsockname())


async def test_a_person_is_a_person_while_agents_run_too(tmp_path: Path) -> None:
    with listening(socket.AF_INET, "127.0.0.1") as listener:
        port = listener.getsockname()[1]
        async with called(tmp_path, ["AF_INET", "127.0.0.1", str(port), "stays"]):
            listener.accept()[0].close()
            with person(["AF_INET", "127.0.0.1", str(port), "stays"], tmp_path / "hers"):
                line, caller = listener.accept()
                with line:
                    assert agent_at(caller, line.getsockname()) is None


@contextmanager
def person(words: list[str], folder: Path) -> Iterator[None]:
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", CALLS, *words], cwd=folder)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_of_who_comes_by_no_connection_nothing_is_known() -> None:
    assert agent_at(None, None) is None
    assert not is_known(None, None)
    assert agent_at(None, ("127.0.0.1", 1)) is None


def test_a_person_who_calls_again_is_remembered_and_another_process_of_that_number_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def looking(pid: int) -> AgentProcess | None:
        looked.append(pid)
        return agent_of(pid)

    monkeypatch.setattr(tcp_callers, "agent_of", looking)
    with listening(socket.AF_INET, "127.0.0.1") as listener:
        port = str(listener.getsockname()[1])
        with person(["AF_INET", "127.0.0.1", port, "stays"], tmp_path / "hers"):
            line, caller = listener.accept()
            with line:
                assert not is_known(caller, line.getsockname())
                assert [agent_at(caller, line.getsockname()) for _ in range(3)] == [None] * 3
                assert len(looked) == 1
                assert is_known(caller, line.getsockname())
                begun = start_time(looked[0])
                monkeypatch.setattr(tcp_callers, "start_time", lambda _: (begun or 0) + 1)
                assert not is_known(caller, line.getsockname())
                assert agent_at(caller, line.getsockname()) is None
                assert len(looked) == 2


def calls_of_ours(listener: socket.socket) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Yield both ends of one connection after another of this process, each with another descriptor."""
    while True:
        with socket.create_connection(listener.getsockname()) as line:
            accepted, caller = listener.accept()
            with accepted:
                yield caller, line.getpeername()


def test_a_person_is_found_while_its_other_files_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: ["123456", *listed(path)])
    with listening(socket.AF_INET, "127.0.0.1") as listener:
        calls = calls_of_ours(listener)
        caller, here = next(calls)
        assert agent_at(caller, here) is None
        assert is_known(caller, here)


def test_a_person_who_calls_by_another_connection_is_known_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The descriptor of the last call is checked first, then all; it is cached only once."""
    monkeypatch.setattr(tcp_callers, "_CALLED_LATELY", {})
    looks: list[str] = []
    listed = os.listdir

    def looking(path: str) -> list[str]:
        looks.append(path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", looking)
    with listening(socket.AF_INET, "127.0.0.1") as listener:
        calls = calls_of_ours(listener)
        first = next(calls)
        assert agent_at(*first) is None
        looks.clear()
        assert all(is_known(*first) for _ in range(5))
        assert not looks
        kept = socket.create_connection(listener.getsockname())  # takes no known descriptor's number
        with kept, listener.accept()[0]:
            assert is_known(kept.getsockname(), kept.getpeername())
    assert looks == [f"/proc/{os.getpid()}/fd"]
    assert list(tcp_callers._CALLED_LATELY) == [os.getpid()]


def inode(line: socket.socket) -> int:
    return os.fstat(line.fileno()).st_ino


@pytest.mark.parametrize(
    ("family", "bound", "host"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.1"),
    ],
    ids=["IPv4", "IPv6", "IPv4 at a socket of IPv6"],
)
def test_both_ends_are_found(family: socket.AddressFamily, bound: str, host: str) -> None:
    both = family is socket.AF_INET6 and bound == "::"
    with socket.create_server((bound, 0), family=family, dualstack_ipv6=both) as listening:
        with socket.create_connection((host, listening.getsockname()[1])) as caller:
            taken, there = listening.accept()
            with taken:
                here = taken.getsockname()[:2]
                assert lookup(there[:2], here) == (os.geteuid(), inode(caller))
                assert lookup(here, there[:2]) == (os.geteuid(), inode(taken))
                if not both:
                    assert tcp_callers._ends(there[:2], here) == tcp_callers._in_tables(there[:2], here)
                caller.close()
                gone = lookup(there[:2], here)
                assert gone is None or gone[1] == 0, "it is in nobody's hands"
        assert lookup((host, 1), (host, listening.getsockname()[1])) is None
        assert lookup((host, listening.getsockname()[1]), (host, 1)) is None, "who listens is at no end"


def test_where_the_kernel_does_not_answer_its_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(tcp_callers, "lookup", refused)
    with socket.create_server(("127.0.0.1", 0)) as there, socket.create_connection(there.getsockname()) as caller:
        theirs, _ = tcp_callers._ends(caller.getsockname(), there.getsockname())
        assert theirs is not None
        assert theirs.inode == inode(caller)
