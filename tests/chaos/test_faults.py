"""Each fault of the matrix on a process of next to nothing: it strikes, it is proven from outside, it is lifted."""

import errno
import os
import signal
import socket
import socketserver
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from activities.runs.os_processes import is_stopped
from tests import postgres
from tests.chaos import hook
from tests.chaos.controller import Aim, Controller
from tests.chaos.faults import all_faults, clock, disk, injector, network, output, replies, starvation, store, together
from tests.chaos.model import Model
from tests.chaos.protocol import Arrival
from tests.chaos.stack import AGENT
from tests.chaos.tiny import Tiny, python
from tests.fleet.lines import line_to
from tests.starved import made
from tests.waiting import wait_for

JOB = "job-12345678"
BUSY = "input()\nwhile True: pass"
GREEDY = "input()\nhoard = [bytearray(1 << 20) for _ in range(64)]\nprint('has all', flush=True)\ninput()"


def test_no_fault_that_never_struck_is_proven(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server, line_to(*server.getsockname()) as line:
        stack = Tiny(tmp_path, lines={"temporal": line, "store": line})
        for name, make in all_faults().items():
            if name not in (
                "none",
                "PostgreSQL full",
                "disk full",
                "disk failing",
                "lost reply push",
            ):  # of what is not here
                stack.is_unproven(make())


@pytest.mark.parametrize("how", ["continued", "ended"])
def test_a_process_is_frozen_until_the_end_of_the_fault_or_it_did_not_land(tmp_path: Path, how: str) -> None:
    with python("print(1)\ninput()") as process:
        stack = Tiny(tmp_path, process.pid)
        assert "stopped for 0 s" in stack.play(starvation.Freeze("worker"))
        assert not is_stopped(process.pid)

        def meanwhile() -> None:
            os.kill(process.pid, signal.SIGCONT if how == "continued" else signal.SIGKILL)
            wait_for(lambda: not_stopped(process.pid))

        stack.misses(starvation.Freeze("worker"), meanwhile)


def not_stopped(pid: int) -> bool:
    return not is_stopped(pid)


@pytest.mark.parametrize("group", [True, False])
def test_a_busy_process_is_starved_and_one_at_rest_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: bool
) -> None:
    if not group:
        monkeypatch.setattr(starvation, "made", lambda *_: None)
    with python(BUSY) as process:
        stack = Tiny(tmp_path, process.pid)
        if group:
            stack.misses(starvation.Starve("worker"))
        write(process)
        assert "3 % of a core" in stack.play(starvation.Starve("worker"), lambda: time.sleep(2.5))
        wait_for(lambda: not_stopped(process.pid))
        assert "test-starved" not in Path(f"/proc/{process.pid}/cgroup").read_text()


def test_a_process_that_wants_more_memory_is_refused_it(tmp_path: Path) -> None:
    if (group := made("memory", 1 << 30)) is None:
        pytest.skip("this account may make no control group with a limit of memory here")
    group.close()
    with python(GREEDY) as process:
        stack = Tiny(tmp_path, process.pid)
        stack.misses(starvation.Crowd("worker"))

        def meanwhile() -> None:
            write(process)
            process.wait()

        assert "was refused memory" in stack.play(starvation.Crowd("worker"), meanwhile)
        assert process.returncode == -signal.SIGKILL


def test_the_interpreter_s_lock_is_held_at_the_station(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault, code = (
        starvation.Hold(seconds=2.5),
        "from tests.chaos import hook\ninput()\nhook.arrive('here', 'job-12345678', '')\ninput()",
    )
    with Controller(tmp_path / "controller") as controller:
        monkeypatch.setenv(hook.CONTROLLER, str(controller.address))
        with python(code) as process:
            tiny = Tiny(tmp_path, process.pid)
            controller.owns(JOB, Aim("here", 1, lambda arrival: fault.strike(tiny.stack, arrival)))
            write(process)
            time.sleep(3)
            assert "2.5 s" in fault.proof(tiny.stack)
        other = starvation.Hold(seconds=2.5)
        controller.owns(JOB, Aim("here", 1, lambda arrival: other.strike(tiny.stack, arrival)[:2]))
        with python(code) as process:
            write(process)
            time.sleep(3)
            tiny.is_unproven(other)


def write(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


class Echo(socketserver.BaseRequestHandler):
    """Answers what it is sent, and remembers it."""

    got: bytes = b""

    def handle(self) -> None:
        with suppress(OSError):
            while chunk := self.request.recv(65_536):
                Echo.got += chunk
                self.request.sendall(chunk)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Tiny]:
    """Run an echo behind a line."""
    Echo.got = b""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with line_to("127.0.0.1", server.server_address[1]) as line:
            yield Tiny(tmp_path, lines={"temporal": line, "store": line})
        server.shutdown()


class Caller:
    """A connection through the line of a stack, over which something went before."""

    def __init__(self, wire: Tiny) -> None:
        self.socket = socket.create_connection(("127.0.0.1", wire.lines["store"].port))
        self.socket.settimeout(0.5)
        assert self.says(b"before") == b"before"

    def says(self, what: bytes) -> bytes | None:
        """Send something, and return the reply: nothing from a silent connection, empty from a closed one."""
        try:
            self.socket.sendall(what)
            return self.socket.recv(65_536)
        except TimeoutError:
            return None
        except ConnectionError:
            return b""


def test_a_cut_line_is_silent_and_a_mended_one_takes_new_callers(wire: Tiny) -> None:
    caller = Caller(wire)
    answers = list[bytes | None]()
    assert "5 bytes withheld" in wire.play(network.Cut("store"), lambda: answers.append(caller.says(b"hello")))
    assert answers == [None]
    assert caller.says(b"after") == b""
    Caller(wire)
    wire.misses(network.Cut("store"))


def test_of_a_half_open_line_the_caller_learns_nothing_and_new_callers_pass(wire: Tiny) -> None:
    caller = Caller(wire)

    def meanwhile() -> None:
        assert caller.says(b"hello") is None
        Caller(wire)

    assert "5 bytes withheld" in wire.play(network.HalfOpen("store"), meanwhile)
    assert caller.says(b"after") == b""
    assert b"hello" not in Echo.got
    wire.misses(network.HalfOpen("store"), lambda: Caller(wire))


def test_a_reset_line_ends_its_connections_by_an_error(wire: Tiny) -> None:
    wire.misses(network.Reset("store"))
    caller = Caller(wire)
    assert "1 connections reset" in wire.play(network.Reset("store"))
    with pytest.raises(ConnectionResetError):
        caller.socket.recv(1)
    Caller(wire)


def test_a_slow_line_passes_all_late(wire: Tiny) -> None:
    caller = Caller(wire)
    caller.socket.settimeout(10)
    begun = time.monotonic()
    assert "chunks delayed" in wire.play(network.Slow("store"), lambda: caller.says(b"late"))
    assert time.monotonic() - begun >= 2 * network.SLOW
    wire.misses(network.Slow("store"))


def test_a_lost_reply_is_that_of_a_request_that_arrived(wire: Tiny) -> None:
    caller = Caller(wire)

    def meanwhile() -> None:
        assert caller.says(b"a question") == b"a question"
        assert caller.says(b"COMMIT\0") == b""

    assert "bytes withheld" in wire.play(network.LostReply("store"), meanwhile)
    assert Echo.got.endswith(b"COMMIT\0")
    wire.misses(network.LostReply("store"), lambda: Caller(wire))


def test_what_answers_a_call_of_grpc_is_told_from_what_only_keeps_a_connection() -> None:
    def frame(kind: int, body: bytes) -> bytes:
        return len(body).to_bytes(3) + bytes([kind]) + bytes(5) + body

    settings, window, ping = frame(4, bytes(12)), frame(8, bytes(4)), frame(6, bytes(8))
    head, message = frame(1, b"head"), frame(0, bytes(5))
    assert not network.answers(settings + window + ping)
    assert not network.answers(head)
    assert network.answers(window + head + message)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Tiny]:
    """Mount a small disk."""
    with disk.mounted(tmp_path / "disk", 16) as mounted:
        if mounted is None:
            pytest.skip("no disk can be mounted here: it takes root")
        (mounted.folder / "old").write_text("old")
        yield Tiny(mounted.folder, disk=mounted)


def test_a_full_disk_takes_nothing_until_there_is_room(small: Tiny) -> None:
    assert small.disk is not None
    small.is_unproven(disk.Full())
    errors, write_one = list[int](), small.disk.write
    assert "ENOSPC" in small.play(disk.Full(), lambda: errors.append(write_one()))
    assert (errors, write_one()) == ([errno.ENOSPC], 0)


def test_a_failing_disk_has_all_that_was_written_when_it_works_again(small: Tiny) -> None:
    assert small.disk is not None
    small.is_unproven(disk.Failing())
    assert small.play(disk.Failing())
    assert (small.disk.write(), (small.folder / "old").read_text()) == (0, "old")


def test_work_folders_are_read_only_for_a_while(small: Tiny) -> None:
    probe = small.folder / "worktrees" / "probe"

    def meanwhile() -> None:
        with pytest.raises(OSError, match="Read-only"):
            probe.touch()

    assert "EROFS" in small.play(disk.ReadOnly(), meanwhile)
    probe.touch()


@pytest.mark.parametrize("fault", [disk.Raise("EIO"), disk.Raise("ENOSPC")])
def test_a_call_at_a_station_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: disk.Raise) -> None:
    with Controller(tmp_path / "controller") as controller:
        monkeypatch.setenv(hook.CONTROLLER, str(controller.address))
        tiny = Tiny(tmp_path)
        controller.owns(JOB, Aim("here", 1, lambda arrival: fault.strike(tiny.stack, arrival)))
        with pytest.raises(OSError, match="at here") as raised:
            hook.arrive("here", JOB, "")
        assert raised.value.errno == getattr(errno, fault.error)
        assert fault.error in fault.proof(tiny.stack)


def test_a_store_is_locked_by_another_program(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "store.db", timeout=0, isolation_level=None)) as writer:
        writer.execute("CREATE TABLE t (x)")

        def meanwhile() -> None:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                writer.execute("INSERT INTO t VALUES (1)")

        fault = store.Locked()
        assert "locked" in Tiny(tmp_path).play(fault, meanwhile)
        writer.execute("INSERT INTO t VALUES (1)")


CLOCK = """\
from pathlib import Path
from tests.chaos import hook
hook.obey_clock(Path({!r}))
import time
print(time.time() - {}, time.monotonic() - {}, flush=True)
input()
"""


@pytest.mark.parametrize("jump", [clock.HOUR, -clock.DAY])
def test_a_part_that_starts_again_has_another_clock(tmp_path: Path, jump: int) -> None:
    if not clock.LIBRARIES:
        pytest.skip("libfaketime is not installed (apt-get install faketime)")
    code, fault = CLOCK.format(str(tmp_path), time.time(), time.monotonic()), clock.Jump("worker", jump)
    with python(code, "activities") as before, python("input()") as other:
        stack = Tiny(tmp_path, before.pid)
        assert abs(first(before)) < 60

        def meanwhile() -> None:
            assert before.wait() == -signal.SIGKILL
            after = again.enter_context(python(code, "activities"))
            stack.process = after.pid
            assert abs(first(after) - jump) < 60

        with ExitStack() as again:
            assert f"{jump:+} s" in stack.play(fault, meanwhile)
        stack.process = other.pid
        stack.is_unproven(clock.Jump("worker", jump, within=0.1))


def first(process: subprocess.Popen[str]) -> float:
    """Return by how much the clock of a process is wrong; its monotonic clock is right."""
    assert process.stdout is not None
    wrong, monotonic = map(float, process.stdout.readline().split())
    assert abs(monotonic) < 60
    return wrong


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    with postgres.running(disk=96 if os.getuid() == 0 else 0) as made:
        yield made


def value(port: int) -> object:
    engine = create_engine(f"postgresql+psycopg://service@127.0.0.1:{port}/postgres", poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS t (x int)"))
        connection.execute(text("INSERT INTO t VALUES (1)"))
        return connection.execute(text("SELECT count(*) FROM t")).scalar()


def refused(port: int) -> None:
    with pytest.raises(OperationalError):
        value(port)


def test_postgresql_is_killed_full_and_failed_over(tmp_path: Path, server: postgres.Postgres) -> None:
    with line_to("127.0.0.1", server.port) as line:
        stack = Tiny(tmp_path, lines={"store": line}, database=server)
        assert value(line.port) == 1
        assert stack.play(store.PostgresKilled(), lambda: refused(line.port))
        assert value(line.port) == 2
        assert stack.play(network.LostReply("store"), lambda: refused(line.port))
        assert value(line.port) == 4, "the write with the lost reply is done"
        if server.disk:
            assert "refused" in stack.play(store.PostgresFull(), lambda: None)
        assert value(line.port) == 5
        try:
            assert stack.play(store.FailedOver())
            assert value(line.port) == 6
            if server.disk:
                assert (stack.postgres.folder / "data").is_mount(), "else the next full disk is that of the machine"
        finally:
            stack.postgres.stop()
        server.start()


def test_a_push_is_done_and_not_answered(tmp_path: Path) -> None:
    def git(*words: str) -> subprocess.CompletedProcess[str]:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
        return subprocess.run(["git", *who, "-C", str(tmp_path / "work"), *words], capture_output=True, text=True)

    for words in (("init", "-q", "--bare", str(tmp_path / "hub.git")), ("init", "-q", str(tmp_path / "work"))):
        subprocess.run(["git", *words], check=True)
    git("commit", "-q", "--allow-empty", "-m", "first")
    stack = Tiny(tmp_path)

    def push(ref: str) -> int:
        return git("push", "-q", str(stack.hub), f"HEAD:refs/heads/{ref}").returncode

    assert push("zero") == 0
    assert stack.play(replies.LostPush(), lambda: push("one") or pytest.fail("it was answered"))
    assert git("ls-remote", str(stack.hub), "one").stdout
    assert push("two") == 0
    stack.misses(replies.LostPush())


def test_a_reply_of_the_model_is_cut_off_once(tmp_path: Path) -> None:
    place = {"role": "user", "content": f"<environment_context><cwd>/{JOB}.2-1</cwd>"}
    asked = {"model": "m", "stream": True, "input": [place, {"role": "user", "content": "do it"}]}

    def ask() -> str:
        return httpx.post(f"{model.url()}/v1/responses", json=asked).text

    with Model() as model:
        stack, fault = Tiny(tmp_path, model=model), replies.LostAnswer()
        stack.misses(replies.LostAnswer(), ask)  # another tree asks
        fault.strike(stack.stack, Arrival("command started", f"{JOB}.2", 1, 1, time.time()))
        with pytest.raises(httpx.RemoteProtocolError):
            ask()
        assert "response.completed" in ask()
        assert fault.proof(stack.stack)


@pytest.mark.parametrize("what", output.FLOODS)
def test_an_agent_prints_what_no_agent_should_and_then_answers(tmp_path: Path, what: str) -> None:
    (tmp_path / "prompts").mkdir()
    job = {
        "SERVICE_JOB_ID": "job",
        "SERVICE_ROOT_JOB_ID": "job",
        "SERVICE_ATTEMPT": "1",
        "SERVICE_DELEGATION_ID": "one",
        "PLANS": str(tmp_path),
    }
    printed = list[bytes]()

    def agent() -> None:
        run = subprocess.run(
            ["sh", "-c", AGENT], input=b"case-1", env=os.environ | job, capture_output=True, check=True
        )
        printed.append(run.stdout)

    Tiny(tmp_path).play(output.Flood(what), agent)
    assert len(printed[0]) > 3_000_000
    assert printed[0].splitlines()[-1].startswith(b'{"service_result"')
    agent()
    assert len(printed[1]) < 1000
    (tmp_path / "job.flooded").unlink()
    Tiny(tmp_path).misses(output.Flood(what))


def test_the_agent_of_a_part_is_told_to_print(tmp_path: Path) -> None:
    for station, subject in (("claim written", "job-1.2"), (output.STARTS, f"job-1.2.1-{'0' * 32}")):
        output.Flood("garbage").strike(Tiny(tmp_path).stack, Arrival(station, subject, 1, 1, 0.0))
        (tmp_path / "job-1.2.flood").unlink()


def test_a_worker_dies_while_whoever_is_at_the_station_is_frozen(tmp_path: Path) -> None:
    with python("print(1)\ninput()") as process, python("print(1)\ninput()") as worker:
        stack, fault = Tiny(tmp_path, worker.pid), together.KillFrozen()
        fault.strike(stack.stack, Arrival("run claimed", JOB, process.pid, 1, time.time()))
        assert is_stopped(process.pid)
        worker.wait()
        fault.lift(stack.stack)
        assert "died while" in fault.proof(stack.stack)
        assert not is_stopped(process.pid)


def test_a_whole_host_dies_with_what_it_has_started(tmp_path: Path) -> None:
    code = "import subprocess\nprint(subprocess.Popen(['sleep', '99']).pid, flush=True)\ninput()"
    with python(code) as daemon:
        assert daemon.stdout is not None
        child = int(daemon.stdout.readline())
        fault, stack = together.KillHost(), Tiny(tmp_path, daemon.pid).stack
        fault.strike(stack, Arrival("run claimed", JOB, daemon.pid, 1, time.time()))
        daemon.wait()
        wait_for(lambda: not Path(f"/proc/{child}").exists())
        assert "died by SIGKILL" in fault.proof(stack)


def test_errors_of_a_server_s_storage_are_those_with_the_namespace_of_the_stack() -> None:
    line = (
        'persistence_error_with_type{error_type="%s",namespace="%s",operation="GetTasks",service_name="matching"} %d\n'
    )
    counted = (
        ("persistence_TimeoutError", "chaos_1", 1),
        ("serviceerror_Unavailable", "chaos_1", 2),
        ("serviceerror_NotFound", "chaos_1", 4),
        ("serviceerror_Unavailable", "chaos_2", 8),
    )
    assert injector.errors("".join(line % one for one in counted), "chaos-1") == 3
