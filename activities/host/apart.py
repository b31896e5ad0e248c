"""Work on what agents left, in processes apart: no thread of the worker is busy with it, and a deadline holds (N3).

No library: the pools of `concurrent.futures` and `multiprocessing` are broken, or wait for ever, once a process of
theirs is killed, which is how a deadline ends one here. A program of its own loads a module once, in the control group
of the agents, and forks helpers. A helper works through one call after another; the kernel ends it with the worker, at
its deadline, and first of all when memory runs out.
"""

import contextlib
import gc
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
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from activities.boxes import control_group, kernel
from activities.git import sweep
from activities.git.library import library
from activities.host.turns import out_of_turn
from activities.runs import spawn
from workflows.model.errors import RefusedError

P = ParamSpec("P")
T = TypeVar("T")

MEMORY = 4 << 30
"""Bytes that a helper may take for itself, also where there are no control groups."""

SLOW_SECONDS = 2.0
"""A call that takes longer leaves its turn to others; a helper that worked as long is not used again, it has grown."""

FILL_SECONDS = 900.0
"""Within which a work folder is filled, or has the work of others merged."""

LOOK_SECONDS = 120.0
"""Within which a work folder is looked at, and what is in it committed."""

MARGIN_SECONDS = 10.0
PROGRAM = "import sys; sys.path.append(sys.argv[1]); from activities.host import apart; apart.main(sys.argv[2])"
"""What forks helpers; its arguments are where the service's packages are, and the module."""

FIRST_TO_GO = b"900"
"""Of 1000: the kernel ends a helper rather than what forks it, or the worker."""


class TooMuchError(RefusedError):
    """The call did not end in its time or memory; what it was about is as it left it."""

    code = "too_much"


def apart(seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the function returns, or raise what it raises, from a helper that has so much time for it.

    TooMuchError when it needs more. The function is called again when its helper was killed: it must bear that.
    """
    call = pickle.dumps((seconds, function, args, kwargs))
    for last in (False, True):
        began = time.monotonic()
        helper = _pool.taken(function.__module__)
        try:
            good, answer, worked = _answered(helper, call, seconds)
        except (EOFError, OSError):
            _pool.gone(helper)
            if time.monotonic() - began >= seconds:
                raise TooMuchError(f"it took longer than {seconds:.0f} s, and was ended") from None
            if last:
                raise TooMuchError("the process that worked on it was killed, probably for want of memory") from None
            continue
        except BaseException:
            helper.close()
            raise
        _pool.back(helper, kept=worked < SLOW_SECONDS)
        if good:
            return answer  # type: ignore[no-any-return]
        raise answer
    raise AssertionError


def worth_keeping(repo: Path, path: Path) -> str:
    """Why a work folder must stay, as `sweep.worth_keeping`; one that takes too much to look at does."""
    try:
        return apart(LOOK_SECONDS, sweep.worth_keeping, repo, path)
    except TooMuchError as fault:
        return f"it cannot be read: {fault.message}"


def ready(module: str) -> None:
    """Have what forks helpers load the module, in which most of the functions are."""
    _pool.back(_pool.taken(module), kept=True)


def close() -> None:
    """End the helpers of this process."""
    _pool.close()


def _answered(helper: "Connection[Any, Any]", call: bytes, seconds: float) -> tuple[bool, Any, float]:
    """Whether it returned, what it returned or raised, and how long the helper's processor worked on it."""
    helper.send_bytes(call)
    if not helper.poll(SLOW_SECONDS):
        with out_of_turn():
            if not helper.poll(seconds + MARGIN_SECONDS):  # it is stopped, or waits for a disk
                raise EOFError
    answer: tuple[bool, Any, float] = helper.recv()
    return answer


class _Pool:
    """The helpers that wait for a call, and what forks them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Connection[Any, Any]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def taken(self, module: str) -> "Connection[Any, Any]":
        """A helper; a new one when none waits."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._process is None or self._process.poll() is not None:
                self._start(module)
            ours, theirs = Pipe()
            with theirs, contextlib.suppress(OSError):  # what forks it is dead: so is the helper, as its caller sees
                assert self._channel is not None
                socket.send_fds(self._channel, [b"."], [theirs.fileno()])
            return ours

    def back(self, helper: "Connection[Any, Any]", *, kept: bool) -> None:
        """It has answered."""
        if not kept:
            helper.close()
            return
        with self._lock:
            self._idle.append(helper)

    def gone(self, helper: "Connection[Any, Any]") -> None:
        """It has died, and others perhaps with it."""
        helper.close()
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    def close(self) -> None:
        with self._lock:
            for each in self._idle:
                each.close()
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


_pool = _Pool()


def _serve(channel: socket.socket) -> None:
    """Fork a helper for each connection that comes, until the other end of the channel closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    while True:
        said, descriptors, *_ = socket.recv_fds(channel, 1, 1)
        if not said:
            return
        with contextlib.suppress(OSError):  # no process to be had: the closed connection says so
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
        with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
            while True:
                _work_through(connection)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)  # never back into the loop of what forked it


def _work_through(connection: "Connection[Any, Any]") -> None:
    """One call. The timer's signal is handled by nobody: it ends this process, whatever it is doing."""
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
    """Load once what every helper needs, and keep the collector from copying it in each of them."""
    control_group.told().enter()
    import_module(module)
    library()
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=0))
