"""Whatever happens to the warm process, a command runs once, or reports that its outcome is unknown."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.warm import client, listening
from cli.warm.peer import Peer
from tests.cli.warm.conftest import AS_TYPED, FRESH, NOT_TAKEN, ONLY_HANDED, ROOT, Warm
from tests.waiting import wait_for

pytestmark = pytest.mark.ruling("K7")

LASTING = ("result", "check")
"""A command that lasts as long as its standard input."""
IMPATIENT = AS_TYPED.replace(
    "from cli.warm.start", "from cli.warm import client; client.PATIENCE = 0.3; from cli.warm.start"
)


def running(warm: Warm) -> list[int]:
    """Return the pids that run commands: children of the warm process."""
    assert warm.process is not None
    below = Path(f"/proc/{warm.process.pid}/task/{warm.process.pid}/children")
    return [int(each) for each in below.read_text().split()]


def runs(pid: int) -> bool:
    """Return whether the command has begun: from then on its connection has O_ASYNC set."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        flags = [each.read_text().split("flags:")[1].split()[0] for each in Path(f"/proc/{pid}/fdinfo").iterdir()]
        return any(int(each, 8) & os.O_ASYNC for each in flags)
    return False


def lasting(warm: Warm, entry: str = ONLY_HANDED) -> "tuple[subprocess.Popen[str], int]":
    """Start a command that lasts, and return it with the pid that runs it."""
    typed = warm.begun(*LASTING, entry=entry, process_group=0)  # the kernel does not stop orphaned process groups

    def has_begun() -> list[int]:
        """Return the pid once it is the only one: the one before may still be ending."""
        there = running(warm)
        return there if len(there) == 1 and runs(there[0]) else []

    wait_for(has_begun)
    return typed, running(warm)[0]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_without_one_a_command_is_run_here(tmp_path: Path) -> None:
    nobody = Warm(tmp_path / "none", tmp_path)
    assert nobody.type("job", "--help").returncode == NOT_TAKEN
    assert nobody.type("job", "--help", entry=AS_TYPED).returncode == 0


@pytest.mark.long
def test_it_has_one_thread_and_what_it_forks_is_gone_when_it_ends(shared: Warm) -> None:
    assert shared.process is not None
    assert os.listdir(f"/proc/{shared.process.pid}/task") == [str(shared.process.pid)]
    assert shared.type("job", "list").returncode == 0
    wait_for(lambda: not running(shared))


@pytest.mark.long
def test_the_socket_is_its_owner_s_alone(shared: Warm) -> None:
    assert shared.socket.stat().st_mode & 0o777 == 0o700
    assert not list(shared.home.glob(".commands*"))


@pytest.mark.long
def test_a_home_with_a_long_name(tmp_path: Path) -> None:
    long = Warm(tmp_path / ("n" * 120), tmp_path)
    long.home.mkdir()
    long.start()
    try:
        assert long.type("repo", "list").returncode == 0
    finally:
        long.end()


@pytest.mark.long
def test_a_command_outlives_the_warm_process(warm: Warm) -> None:
    typed, _ = lasting(warm)
    warm.end()
    out, err = typed.communicate("no result")
    assert typed.returncode == 1
    assert "holds no JSON object" in out + err
    assert warm.type("repo", "list").returncode == NOT_TAKEN
    assert warm.type("repo", "list", entry=AS_TYPED).returncode == 0
    warm.start()
    assert warm.type("repo", "list").returncode == 0


def test_a_command_that_is_cut_off_is_not_run_again(warm: Warm) -> None:
    typed, pid = lasting(warm, AS_TYPED)
    os.kill(pid, signal.SIGKILL)
    out, err = typed.communicate("")
    assert (typed.returncode, out) == (5, "")
    assert err.startswith("error: the command was cut off")
    assert "try: see what has become of it before you type it again" in err


@pytest.mark.long
def test_a_command_ends_with_the_one_that_was_typed(warm: Warm) -> None:
    typed, pid = lasting(warm)
    typed.kill()
    wait_for(lambda: gone(pid))
    typed.communicate()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_signals_are_passed_on(warm: Warm, number: signal.Signals) -> None:
    typed, pid = lasting(warm, AS_TYPED)
    typed.send_signal(number)
    wait_for(lambda: typed.poll() is not None)  # while its input is open: the end of input would end it too
    assert typed.returncode == (130 if number is signal.SIGINT else -number)
    typed.communicate()
    wait_for(lambda: gone(pid))


@pytest.mark.long
def test_stopping_stops_the_command_too(warm: Warm) -> None:
    typed, pid = lasting(warm)

    def state(of: int) -> str:
        return Path(f"/proc/{of}/stat").read_text().rpartition(")")[2].split()[0]

    typed.send_signal(signal.SIGTSTP)
    wait_for(lambda: (state(typed.pid), state(pid)) == ("T", "T"))
    typed.send_signal(signal.SIGCONT)
    wait_for(lambda: state(pid) == "S")
    typed.communicate("no result")
    assert typed.returncode == 1


@pytest.mark.long
def test_one_that_hangs_is_left_before_anything_is_begun(warm: Warm) -> None:
    warm.type("repo", "list")
    assert warm.process is not None
    warm.process.send_signal(signal.SIGSTOP)
    add = ("agent", "add", "once", "--runtime", "shell", "--command", "true")
    assert warm.type(*add, entry=IMPATIENT).returncode == 0
    warm.process.send_signal(signal.SIGCONT)
    assert "once" in warm.type("agent", "list").stdout
    wait_for(lambda: not running(warm))


@pytest.mark.long
def test_one_that_has_no_room_is_left_at_once(warm: Warm) -> None:
    assert warm.process is not None
    warm.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, warm.process.pid, os.WSTOPPED | os.WNOWAIT)  # else it accepts one that fills its queue
    waiting = []
    try:
        while True:
            line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            line.settimeout(0)
            waiting.append(line)
            line.connect(str(warm.socket))
    except BlockingIOError:
        pass
    assert len(waiting) > listening._BACKLOG
    assert warm.type("repo", "list").returncode == NOT_TAKEN
    for line in waiting:
        line.close()
    warm.process.send_signal(signal.SIGCONT)
    assert warm.type("repo", "list").returncode == 0


@pytest.mark.parametrize("nonsense", [b"", b"\x01", b"\xff" * 8, b"\x05" + b"\0" * 7 + b"a\0b\0c"])
@pytest.mark.long
def test_nonsense_harms_nobody(shared: Warm, nonsense: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(str(shared.socket))
        line.sendall(nonsense)
        line.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while line.recv(64):
                pass
    assert shared.type("repo", "list").returncode == 0


def test_programs_are_found_as_where_the_command_was_typed(shared: Warm, tmp_path: Path) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\necho $GIT_SSH_COMMAND > {tmp_path}/ran\nexit 1\n")
    git.chmod(0o755)
    other = Warm(shared.home, shared.folder, {"PATH": f"{git.parent}:{os.environ['PATH']}", "GIT_SSH_COMMAND": "mine"})
    assert other.type("repo", "add", "acme/other", str(shared.folder / "shop")).returncode != NOT_TAKEN
    assert (tmp_path / "ran").read_text() == "mine\n"


def test_who_carries_the_mark_of_a_run_has_its_commands_in_a_process_of_its_own(shared: Warm) -> None:
    marked = Warm(shared.home, shared.folder, {"SERVICE_RUN_MARK": "job-000000000000.1@home"})
    assert marked.type("repo", "list").returncode == NOT_TAKEN


@pytest.mark.long
def test_the_key_is_its_owner_s_alone_and_another_one_each_time(warm: Warm) -> None:
    key = warm.home / "commands.key"
    with key.open() as before:
        assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 0)
        warm.end()
        warm.start()
        assert not os.path.samestat(os.fstat(before.fileno()), key.stat())
    key.unlink()
    assert warm.type("repo", "list").returncode == NOT_TAKEN
    assert warm.type("repo", "list", entry=AS_TYPED).returncode == 0


@pytest.mark.parametrize("name", ["PYTHONUTF8", "LD_LIBRARY_PATH"])
@pytest.mark.long
def test_what_python_reads_as_it_starts_must_be_the_same(shared: Warm, name: str) -> None:
    other = Warm(shared.home, shared.folder, {name: "0"})
    assert other.type("repo", "list").returncode == NOT_TAKEN


def test_another_version_is_refused_and_one_that_was_updated_begins_anew(tmp_path: Path) -> None:
    """The code is a copy, whose `service` prints something else after its change."""
    code = tmp_path / "code"
    for package in ("cli", "bridge", "activities", "workflows"):
        shutil.copytree(ROOT / package, code / package)
    copied = Warm(tmp_path / "home", tmp_path, {"PYTHONPATH": str(code)})
    copied.home.mkdir()
    copied.start()
    try:
        ours = Warm(copied.home, tmp_path, {"PYTHONPATH": str(ROOT)})
        assert ours.type("job", "list").returncode == NOT_TAKEN
        assert copied.type("job", "list").returncode == 0
        changed = code / "cli" / "job.py"
        changed.write_text(changed.read_text().replace("no jobs; start one", "nothing yet"))
        assert copied.type("job", "list").returncode == NOT_TAKEN
        assert copied.type("job", "list", entry=AS_TYPED).stdout.startswith("nothing yet")
        wait_for(lambda: copied.type("job", "list").stdout.startswith("nothing yet"))
        assert copied.process is not None
        assert copied.process.poll() is None
    finally:
        copied.end()


def test_only_the_same_user_in_the_same_container_is_allowed() -> None:
    assert Peer(os.getpid(), os.getuid(), 0).is_here
    assert not Peer(os.getpid(), os.getuid() + 1, 0).is_here
    assert not Peer(2**22 + 1, os.getuid(), 0).is_here, "a process that is gone, or hidden from us"


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="only root can be somebody else")
@pytest.mark.long
def test_somebody_else_is_refused_even_where_the_socket_is_open(warm: Warm) -> None:
    warm.socket.chmod(0o777)
    for folder in (warm.home, *warm.home.parents):
        if folder.stat().st_mode & 0o001 == 0 and folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o011)
    asks = (
        "import socket, sys; line = socket.socket(socket.AF_UNIX); line.connect(sys.argv[1]); "
        "line.settimeout(60); print(repr(line.recv(8)))"
    )
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    done = subprocess.run([*become, python, "-c", asks, str(warm.socket)], capture_output=True, text=True, check=False)
    assert done.stdout == "b''\n", done.stderr


@pytest.mark.skipif(not shutil.which("unshare") or os.getuid() != 0, reason="only root can make a namespace")
@pytest.mark.long
def test_who_is_boxed_is_refused(shared: Warm) -> None:
    boxed = ["unshare", "--mount", *shared.command(["repo", "list"])]
    done = subprocess.run(boxed, env=shared.environment, capture_output=True, check=False)
    if b"unshare" in done.stderr:
        pytest.skip("namespaces are not allowed here")
    assert done.returncode == NOT_TAKEN


@pytest.mark.long
def test_a_socket_of_somebody_else_is_not_talked_to(shared: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_HOME", str(shared.home))
    connection = client._connect()
    assert connection is not None
    connection[0].close()
    os.close(connection[1])
    monkeypatch.setattr(client, "peer_of", lambda line: (1, os.getuid() + 1))
    assert client._connect() is None


@pytest.mark.long
def test_fifty_at_once(warm: Warm) -> None:
    def add(number: int) -> int:
        return warm.type("agent", "add", f"a{number}", "--runtime", "shell", "--command", "true").returncode

    assert warm.type("agent", "list").returncode == 0
    with ThreadPoolExecutor(50) as many:
        assert list(many.map(add, range(50))) == [0] * 50
    listed = warm.type("agent", "list", entry=FRESH).stdout
    assert listed.count("shell") == 50
