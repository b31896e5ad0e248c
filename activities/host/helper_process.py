"""Separate processes for work on agents' files: they keep the worker's threads free, and can be killed at a deadline
(N3).

No library: here a deadline kills a process, after which the pools of `concurrent.futures` and `multiprocessing` break
or wait for ever. Pebble's pools (LGPL) survive that, but share one locked channel, first send SIGTERM from a thread of
the worker, and don't notice a stopped process. Here a separate program loads the modules once, in the control group of
the agents, and forks helpers. A helper handles one call after another, and ends when idle. The kernel kills it at its
deadline, when the worker ends, and before other processes if memory runs out.
"""

import contextlib
import logging
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from activities.boxes import control_group, kernel
from activities.git.library import library
from activities.git.work_folder import leftovers
from activities.host.slots import out_of_turn
from activities.redaction import redact
from activities.redaction.known_values import KnownValues
from activities.runs import os_processes, spawn
from activities.runs.service_process import importing
from activities.runs.signs_of_life import LOOKS, SignsOfLife
from workflows.model.errors import RefusedError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

MEMORY = 4 << 30
"""Memory limit of a helper in bytes, also without control groups."""

SLOW_SECONDS = 2.0
"""A call that takes longer gives up its thread's turn. Its helper isn't used again, since its memory has grown."""

FILL_SECONDS = 900.0
"""Time limit to fill a work folder, or to merge other jobs' commits into it."""

LOOK_SECONDS = 120.0
"""Time limit to look at a work folder, and to commit its files."""

REDACT_SECONDS = 60.0
"""Time limit to search a long text for secrets."""

IDLE_SECONDS = 10.0
"""A helper without a call for this time ends; forking another takes 4 ms of processor time."""

MARGIN_SECONDS = 10.0
FROZEN_SECONDS = 60.0
"""Time after which a stopped helper is killed, and a forking process that doesn't answer."""

PROGRAM = "import sys; sys.path.append(sys.argv[1]); from activities.host.helper_process import main; main(sys.argv[2])"
"""The program that forks helpers; its arguments are the path of the service's packages, and the module."""

FIRST_TO_GO = b"900"
"""Out-of-memory score (of 1000) by which the kernel kills a helper before the forking process and the worker."""


class TooMuchError(RefusedError):
    """The call exceeded its time or memory limit. What it was changing may be left half done."""

    code = "too_much"


def apart(seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function in a helper, and return or raise its result. Raise TooMuchError if it takes more than
    `seconds`.

    The function must be idempotent: it is called again if its helper was killed, and once more if that helper died with
    the process that had forked it.
    """
    call = pickle.dumps((seconds, function, args, kwargs))
    for number in count(1):
        began = time.monotonic()
        helper = _pool.taken(function.__module__)
        try:
            good, answer, worked = _answer(helper, call, seconds)
        except (EOFError, OSError):
            _pool.gone(helper)
            if time.monotonic() - began >= seconds:
                raise TooMuchError(f"it took longer than {seconds:.0f} s, and was ended") from None
            if number > 2 or (number == 2 and not helper.died_with_forker()):
                raise TooMuchError("the process that worked on it was killed, probably for lack of memory") from None
            continue
        except BaseException:
            helper.connection.close()
            raise
        _pool.back(helper, kept=worked < SLOW_SECONDS)
        if good:
            return answer  # type: ignore[no-any-return]
        raise answer
    raise AssertionError


def worth_keeping(repo: Path, path: Path) -> str:
    """Call `leftovers.worth_keeping` in a helper. A work folder that is too large to inspect must stay."""
    try:
        return apart(LOOK_SECONDS, leftovers.worth_keeping, repo, path)
    except TooMuchError as fault:
        return f"it cannot be read: {fault.message}"


def secrets(text: str, known: KnownValues) -> list[tuple[int, int]]:
    """Search a long text for secrets in a helper: one `re` search blocks all threads of its process (N7)."""
    return apart(REDACT_SECONDS, redact.spans, text, known)


def ready(module: str) -> None:
    """Let the process that forks helpers load the module with most of the functions."""
    _pool.back(_pool.taken(module), kept=True)


def close() -> None:
    """End the helpers of this process."""
    _pool.close()


def _answer(helper: "_Helper", call: bytes, seconds: float) -> tuple[bool, Any, float]:
    """Send a call. Return if it succeeded, its result or error, and the helper's processor time."""
    line = helper.connection
    line.send_bytes(call)
    if not helper.pid:
        with contextlib.nullcontext() if line.poll(SLOW_SECONDS) else out_of_turn():
            helper.wait_until_forked()
    if not line.poll(SLOW_SECONDS):
        with out_of_turn():
            if not helper.answers(seconds + MARGIN_SECONDS):  # it is stopped, or waits for a disk
                raise EOFError
    answer: tuple[bool, Any, float] = line.recv()
    return answer


@dataclass
class _Helper:
    connection: "Connection[Any, Any]"
    forker: "subprocess.Popen[bytes]"
    pid: int = 0
    """The helper's pid, known once the helper is forked: its first message."""

    def wait_until_forked(self) -> None:
        """Wait for the helper's pid; kill the forking process if it doesn't answer.

        Its helpers end with it, and the next call starts another forking process.
        """
        signs = SignsOfLife(self.forker.pid)
        while not self.connection.poll(FROZEN_SECONDS / LOOKS):
            if signs.are_missing(os_processes.effort(self.forker.pid)):
                log.warning("the process %d, which forks helpers, is frozen: it is ended", self.forker.pid)
                self.forker.kill()
                self.forker.wait()
        self.pid = self.connection.recv()

    def died_with_forker(self) -> bool:
        """Return whether the forking process of a dead helper is dead too, which may show a moment later."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.forker.wait(SLOW_SECONDS)
        return self.forker.returncode is not None

    def answers(self, seconds: float) -> bool:
        """Wait for an answer. Return False without an answer in that time, or if the helper was stopped for long."""
        deadline, signs = time.monotonic() + seconds, SignsOfLife(self.pid)
        while not self.connection.poll(min(FROZEN_SECONDS / LOOKS, max(0.0, deadline - time.monotonic()))):
            stopped = os_processes.is_stopped(self.pid)
            if signs.are_missing(None if stopped else object()) or time.monotonic() > deadline:
                if stopped:
                    log.warning("the helper %d is frozen: it is ended", self.pid)
                    os_processes.send(self.pid, signal.SIGKILL)
                return False
        return True


class _HelperPool:
    """The idle helpers, and the process that forks them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Helper] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def taken(self, module: str) -> _Helper:
        """Return an idle helper, or a new one."""
        with self._lock:
            while self._idle:
                if not (helper := self._idle.pop()).connection.poll():
                    return helper
                helper.connection.close()  # it has ended
            if self._process is None or self._process.poll() is not None:
                self._start(module)
            ours, theirs = Pipe()
            assert self._channel is not None
            assert self._process is not None
            with theirs, contextlib.suppress(OSError):  # the forking process is dead: so is the helper
                socket.send_fds(self._channel, [b"."], [theirs.fileno()])
            return _Helper(ours, self._process)

    def back(self, helper: _Helper, *, kept: bool) -> None:
        """Add a helper that has answered to the idle ones if `kept`, else close it."""
        if not kept:
            helper.connection.close()
            return
        with self._lock:
            self._idle.append(helper)

    def gone(self, helper: _Helper) -> None:
        """Drop a dead helper, and all idle ones, which may have died with the same fork server."""
        helper.connection.close()
        with self._lock:
            idle, self._idle = self._idle, []
        for idle_helper in idle:
            idle_helper.connection.close()

    def close(self) -> None:
        with self._lock:
            for helper in self._idle:
                helper.connection.close()
            self._idle.clear()
            if self._process is not None and self._channel is not None:
                self._channel.close()
                self._process.wait()
                self._process = None

    def _start(self, module: str) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-X", "utf8", "-c", PROGRAM, str(Path(__file__).resolve().parents[2]), module],
                env={**os.environ, **spawn.group_environment()},
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )


_pool = _HelperPool()


def _serve(channel: socket.socket) -> None:
    """Fork a helper for each connection, until the other end closes the channel."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    while True:
        request, descriptors, *_ = socket.recv_fds(channel, 1, 1)
        if not request:
            return
        with contextlib.suppress(OSError):  # no free process: the closed connection shows it
            if os.fork() == 0:
                _be_helper(channel, Connection(descriptors[0]))
        os.close(descriptors[0])


def _be_helper(channel: socket.socket, connection: "Connection[Any, Any]") -> None:
    status = 1
    try:
        channel.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kernel.libc().prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_bytes(FIRST_TO_GO)
        _handle_calls(connection)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)  # never back into the forking process's loop


def _handle_calls(connection: "Connection[Any, Any]") -> None:
    """Handle one call after another, until none comes or the worker is gone."""
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        connection.send(os.getpid())
        while connection.poll(IDLE_SECONDS):
            _work_through(connection)


def _work_through(connection: "Connection[Any, Any]") -> None:
    """Handle one call. The timer's signal has no handler, so at the deadline it kills this process, whatever it is
    doing.
    """
    seconds, function, args, kwargs = connection.recv()
    began = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    answer: Any
    try:
        good, answer = True, function(*args, **kwargs)
    except (RecursionError, MemoryError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else "takes too much memory"
        good, answer = False, TooMuchError(f"it {what} to be worked through")
    except Exception as error:
        good, answer = False, _picklable(error)
    connection.send((good, answer, time.process_time() - began))
    signal.setitimer(signal.ITIMER_REAL, 0)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.dumps(error)
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def main(module: str) -> None:
    """Load the modules that all helpers need before forking."""
    control_group.from_environment().enter()
    with importing():
        import_module(module)
        import_module("workflows.secrets.redact")
        library()
    _serve(socket.socket(fileno=0))
