"""Run one command to its end, whatever happens to the caller.

No library: process managers restart commands; this must start a command only once, ever, and leave no process behind. A
separate program, standard library only: `python -I -S supervisor.py <run_dir>`.

The run directory is the whole interface: `spec.json` and `prompt` go in; `claim`, `stdout.log`, `stderr.log` and
`exit.json` come out. The claim is made once, before the command starts, and never taken back: so no command ever starts
twice. Once `exit.json` exists, no process that the command started is alive. Records are sealed with the run's key,
which is read from standard input: no argument, environment or file of the run contains it.
"""

import contextlib
import hashlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import control_group, kernel
from activities.boxes.control_group import JobGroup
from activities.boxes.enter import prepare
from activities.boxes.proxy import WaitingProxy
from activities.boxes.start import start as started
from activities.runs import records
from activities.runs.os_processes import MARK, children, descendants, identity, kill_all, send, with_mark
from activities.runs.records import RecordKind, UnbelievedError
from activities.runs.regular_files import create, open_to_read
from activities.stations.hook import reach

RESERVED_BYTES = 4096
ERROR_BYTES = 3000
"""Size limit of an error as JSON. The rest of the record takes a few hundred bytes."""

PR_SET_CHILD_SUBREAPER = 36
SIGNALLED = 128
BOX_SECONDS = 1.0
"""How long to wait for the processes of a box once bubblewrap has ended; then they are killed."""
MEMORY_SECONDS = 1.0
"""Interval of checks for an out-of-memory kill that left the rest of the job alive."""
ENDING = frozenset(signal.valid_signals()) - {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}


class EndKind(StrEnum):
    """The kinds of a run's end. `unknown`: its supervisor died without a record."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    NOT_STARTED = "not_started"
    UNKNOWN = "unknown"


def claim(run_dir: Path, key: bytes, content: dict[str, Any], *, kept: bool = True) -> bool:
    """Claim the run atomically; a claim is never taken back. A caller that gets False must start nothing.

    The claim's existence survives a power loss. Its content survives only with `kept`. A claim that lost its content is
    not trusted, and the run is not started.
    """
    draft = run_dir / f"claim.{os.getpid()}.{time.monotonic_ns()}"
    _write(create(draft), records.with_seal(key, run_dir, RecordKind.CLAIM, json.dumps(content).encode()), kept=kept)
    try:
        os.link(draft, run_dir / RecordKind.CLAIM.value)
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    _sync_directory(run_dir)
    return True


def reserve(run_dir: Path) -> Path:
    """Reserve the disk space of the exit record: the outcome must be recorded even on a full disk."""
    path = run_dir / f"exit.{os.getpid()}.{time.monotonic_ns()}"
    descriptor = create(path)
    try:
        os.posix_fallocate(descriptor, 0, RESERVED_BYTES)
    except (AttributeError, OSError):  # a system or disk without it: write the bytes
        os.write(descriptor, b" " * RESERVED_BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path


def record_exit(reserved: Path, key: bytes, end: dict[str, Any]) -> None:
    """Publish the outcome atomically, in the space reserved for it."""
    data = records.with_seal(key, reserved.parent, RecordKind.EXIT, json.dumps(end).encode())
    _write(os.open(reserved, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), data, kept=True)
    os.rename(reserved, reserved.parent / RecordKind.EXIT.value)
    _sync_directory(reserved.parent)


def _write(descriptor: int, data: bytes, *, kept: bool) -> None:
    """Replace the file's content, and close it."""
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.ftruncate(descriptor, len(data))
        if kept:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    with contextlib.suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


class Signals:
    """Signals turned into wake-ups, so that one wait covers children, stop requests and deadlines."""

    def __init__(self) -> None:
        self.stop = False
        self._wake, writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(writer, False)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_stop)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):  # handled, not ignored: ignoring is inherited
            signal.signal(number, lambda *_: None)

    def _on_stop(self, *_: object) -> None:
        self.stop = True

    def wait(self, until: float | None, sockets: Sequence[socket.socket] = ()) -> bool:
        """Sleep until a signal, a connection or that time. Return whether there is a connection."""
        patience = None if until is None else max(0.0, until - time.monotonic())
        ready, _, _ = select.select([self._wake, *(each.fileno() for each in sockets)], [], [], patience)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                pass
        return bool({*ready} - {self._wake})


@dataclass
class RunningCommand:
    """The command and all its descendants."""

    pid: int
    mark: str
    status: int | None = None
    childless: bool = False
    """True once all children are gone, also zombies: then the command has no descendants and can get no more."""
    in_bwrap: bool = False
    """True if the command runs below bubblewrap. A signal to bubblewrap itself would end all of it at once."""
    waiting: WaitingProxy | None = None
    """The sockets of a proxy that has not been started yet."""
    proxy: int | None = None
    """Pid of the proxy, a child; None before it starts, and once it has ended."""

    def wait(self, signals: Signals, until: float | None) -> None:
        """Sleep until a signal or that time. Start the proxy at its first connection."""
        sockets = self.waiting.sockets if self.waiting else ()
        if signals.wait(until, sockets) and self.waiting:
            self.proxy, self.waiting = self.waiting.fork(), None

    def reap(self) -> int | None:
        """Collect every ended child, adopted ones too. Return the command's own wait status once it has ended."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.pid:
                    self.status = ended[1]
                elif ended[0] == self.proxy:
                    self.proxy = None
        except ChildProcessError:
            self.childless = True
        return self.status

    def kill(self, signals: Signals) -> int:
        """Kill all processes of the command. Return how many could not be killed."""
        if self.in_bwrap and self.status is not None:
            self._await_box(signals)
        survivors = kill_all(self._alive)
        self.reap()
        return survivors

    def _await_box(self, signals: Signals) -> None:
        """Wait for the box to end: bubblewrap ends a moment before the box's first process, with which all others
        end.
        """
        give_up = time.monotonic() + BOX_SECONDS
        if self.proxy is not None:
            send(self.proxy, signal.SIGKILL)
        while not self.childless and time.monotonic() < give_up:
            signals.wait(give_up)
            self.reap()

    def send(self, number: int) -> None:
        """Signal the command's process group. Continue a stopped group, which otherwise would not handle the signal."""
        leaders = (children(self.pid) if self.in_bwrap else None) or {self.pid}
        for signal_number in (number, signal.SIGCONT):
            for leader in leaders:
                send(-leader, signal_number)

    @property
    def exit(self) -> int | None:
        """Return the exit code, or a signal as a negative number. Bubblewrap reports a signal as shells do: 128 plus
        its number.
        """
        code = None if self.status is None else os.waitstatus_to_exitcode(self.status)
        ended_by = None if code is None or not self.in_bwrap else code - SIGNALLED
        return -ended_by if ended_by in ENDING else code

    def _alive(self) -> set[int]:
        self.reap()
        if self.childless and self.in_bwrap:  # no process can leave the box
            return set()
        if os.path.exists("/proc/self/stat"):
            below = set() if self.childless else descendants(os.getpid())
            return (below | with_mark(self.mark)) - {os.getpid()}
        with contextlib.suppress(OSError):  # without /proc only the process group can be found
            os.kill(-self.pid, 0)
            return {-self.pid}
        return set()


def start(run_dir: Path, spec: dict[str, Any]) -> RunningCommand:
    """Start the command in its own session, with its streams on files."""
    if not os.path.isdir(spec["cwd"]):
        raise NotADirectoryError(f"the working directory {spec['cwd']} is missing")
    env = {**spec["env"], MARK: spec["mark"]}
    streams = [_prompt(run_dir, spec["prompt"])]
    try:
        streams.append(create(run_dir / "stdout.log"))
        streams.append(create(run_dir / "stderr.log"))
        with prepare(spec.get("box"), spec["argv"], env) as held:
            pid = started(held.argv, spec["cwd"], held.env, streams, held.enter)
            waiting = held.waiting()
    finally:
        for stream in streams:
            os.close(stream)
    return RunningCommand(pid, spec["mark"], in_bwrap=spec.get("box") is not None, waiting=waiting)


def _prompt(run_dir: Path, digest: str | None) -> int:
    """Open the command's input. Refuse a prompt whose digest differs from the one in the specification."""
    if digest is None:
        return os.open(os.devnull, os.O_RDONLY)
    with open_to_read(run_dir / "prompt") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise ValueError(f"{run_dir / 'prompt'} is not what the service wrote")
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return os.dup(file.fileno())


def watch(
    command: RunningCommand, spec: dict[str, Any], signals: Signals, stop_grace: Callable[[], float], group: JobGroup
) -> EndKind:
    """Wait for the command's end; ask it to end on a stop request or at the deadline.

    A job that lost a process to an out-of-memory kill counts as ended.
    """
    timeout = spec["timeout_seconds"]
    deadline = None if timeout is None else time.monotonic() + timeout
    watched = group.needs_watch
    while command.reap() is None and not signals.stop:
        if watched and group.kills:
            return EndKind.EXITED
        if deadline is not None and time.monotonic() >= deadline:
            break
        look_again = time.monotonic() + MEMORY_SECONDS if watched else None
        command.wait(signals, min(filter(None, (deadline, look_again)), default=None))
    if command.status is not None:
        return EndKind.EXITED
    kind = EndKind.CANCELLED if signals.stop else EndKind.TIMED_OUT
    ask_to_end(command, signals, stop_grace() if signals.stop else spec["grace_seconds"])
    return kind


def ask_to_end(command: RunningCommand, signals: Signals, grace: float) -> None:
    """Send SIGINT, on which agents also end their tools, and later SIGTERM, within the grace period altogether."""
    asked = time.monotonic()
    for number, patience in ((signal.SIGINT, grace / 2), (signal.SIGTERM, grace)):
        if command.reap() is not None:
            return
        command.send(number)
        while command.reap() is None and time.monotonic() < asked + patience:
            command.wait(signals, asked + patience)


def supervise(run_dir: Path, key: bytes, spec: dict[str, Any], signals: Signals, group: JobGroup) -> dict[str, Any]:
    """Run the command to its end. Return the exit record."""
    end: dict[str, Any] = {"kind": EndKind.CANCELLED, "started_at": time.time(), "error": ""}
    if signals.stop:
        return {**end, "ended_at": time.time()}
    if most := spec.get("most_bytes"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        command = start(run_dir, spec)
    except (OSError, ValueError) as error:
        return {**end, "kind": EndKind.NOT_STARTED, "error": _short(error), "ended_at": time.time()}
    reach("command started", run_dir.name)
    group.leave()
    try:
        end["kind"] = watch(command, spec, signals, lambda: _stop_grace(run_dir, key, spec["grace_seconds"]), group)
    finally:
        end["survivors"] = command.kill(signals)
    if (code := command.exit) != 0:
        end["ran_out"] = group.ran_out()
    if code is not None:
        end["signal" if code < 0 else "exit_code"] = abs(code)
    return {**end, "ended_at": time.time()}


def _short(error: Exception) -> str:
    """Shorten an error to the space that the exit record reserves for it."""
    text = str(error)[:ERROR_BYTES]
    while len(json.dumps(text)) > ERROR_BYTES:
        text = text[: len(text) * 3 // 4]
    return text


def _stop_grace(run_dir: Path, key: bytes, default: float) -> float:
    """Return the grace period in seconds of the stop request, from the file `stop`."""
    try:
        return float(records.read(key, run_dir, RecordKind.STOP))
    except (OSError, ValueError, UnbelievedError):
        return default


def become_subreaper() -> None:
    """Adopt orphaned grandchildren, on Linux; elsewhere only the process group is signalled."""
    with contextlib.suppress(AttributeError, OSError):
        kernel.libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(run_dir: Path, key: bytes, group: JobGroup) -> None:
    """Claim the run, run it, record its end. Standard output closes once the claim is settled: the starter waits for
    that.

    This process is in the job's control group, and leaves it.
    """
    signals = Signals()
    spec = json.loads(records.read(key, run_dir, RecordKind.SPEC))
    reserved = reserve(run_dir)
    pid = os.getpid()
    ours = {"pid": pid, "start": identity(pid), "at": time.time(), "mark": spec["mark"]}
    if not claim(run_dir, key, ours, kept=False):  # after a power loss this process is gone as well
        reserved.unlink()
        return
    reach("run claimed", run_dir.name)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    become_subreaper()
    end = supervise(run_dir, key, spec, signals, group)
    reach("command ended", run_dir.name)
    record_exit(reserved, key, end)
    reach("end recorded", run_dir.name)


def _key_from_standard_input() -> bytes:
    """Read the run's key from standard input, and replace that by /dev/null."""
    key = b""
    while part := os.read(0, 4096):
        key += part
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return key


if __name__ == "__main__":
    all_jobs = control_group.from_environment()
    (job := all_jobs.job()).enter()
    try:
        main(Path(sys.argv[1]), _key_from_standard_input(), job)
    finally:
        all_jobs.enter()
        job.remove()
