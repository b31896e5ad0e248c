"""The daemon as a background process: start it and wait until it works, or stop it and wait until it has ended."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from activities.settings.home import Home
from bridge.daemon.foreground import importable
from bridge.daemon.logs import excerpt, log_end, open_log
from bridge.daemon.options import DaemonOptions
from bridge.machine.daemon_state import RESTART, ChildPhase, DaemonState, DaemonStatus, GroupPhase, silence, status
from bridge.machine.locks import FileLock, holder
from bridge.machine.step_messages import Step, unheard
from bridge.machine.writable import require_writable
from workflows.model.errors import ServiceError

_STOP_SECONDS = 40.0
_PAUSE = 0.05
_ENDING = (GroupPhase.STOPPING, GroupPhase.STOPPED, GroupPhase.FAILED)


def start(home: Home, options: DaemonOptions, step: Step = unheard) -> DaemonStatus:
    """Start the daemon in the background and wait until it works. Raise its error if it fails. Idempotent while a
    daemon runs.
    """
    require_writable(home)
    seen = status(home)
    if seen.pid is not None and seen.state is not None and seen.state.phase in _ENDING:
        _released_within(home, seen.pid, _STOP_SECONDS)  # a daemon that is ending does not count as running
    lock = FileLock.take(home.daemon_lock, wait=0.2)
    return _wait_until_up(home, _spawn(home, options, lock) if lock else None, step)


def stop(home: Home, step: Step = unheard) -> bool:
    """Stop the daemon and wait until it has ended. Return False if none ran."""
    pid = holder(home.daemon_lock)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    if not _released_within(home, pid, _STOP_SECONDS, step):
        os.kill(pid, signal.SIGKILL)
        if not _released_within(home, pid, _PAUSE * 100):
            raise ServiceError(f"the daemon (process {pid}) does not end", f"ps -p {pid} -o stat,wchan")
    return True


def _spawn(home: Home, options: DaemonOptions, lock: FileLock) -> subprocess.Popen[bytes]:
    """Spawn the daemon with its lock already held, so that a stop finds it even while it starts."""
    with open_log(home.logs / "daemon.log") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bridge.daemon", options.model_dump_json(), str(lock.fd)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.root,
            env={**os.environ, "SERVICE_HOME": str(home.root), **importable()},
            start_new_session=True,
            pass_fds=(lock.fd,),
        )
    lock.mark(process.pid)
    lock.release()
    # The daemon outlives this call on purpose; a long-lived caller must still reap it when it ends.
    threading.Thread(target=process.wait, daemon=True).start()
    return process


def _wait_until_up(home: Home, ours: subprocess.Popen[bytes] | None, step: Step) -> DaemonStatus:
    coming = ComingUp()
    while (seen := status(home)).silent_since is None:
        if seen.state is not None and seen.running:
            up = seen.state.phase in (GroupPhase.RUNNING, GroupPhase.DEGRADED)
            if ours is not None or not up:
                step(coming.look(seen.state))
            if up:
                return seen
        if not seen.running and (ours is None or ours.poll() is not None):
            state, log = seen.state, home.logs / "daemon.log"
            if state is not None and state.problem and (ours is None or state.pid == ours.pid):
                raise ServiceError(state.problem, state.hint)
            raise ServiceError(f"the daemon ended before it was ready{excerpt(log_end(log))}", f"less {log}")
        time.sleep(_PAUSE)
    raise ServiceError(silence(seen), RESTART)


def _released_within(home: Home, pid: int, seconds: float, step: Step = unheard) -> bool:
    deadline = time.monotonic() + seconds
    while holder(home.daemon_lock) == pid:
        state = status(home).state
        step(ending(state) if state else "stopping")
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
    return True


class ComingUp:
    """Reports the progress of a starting daemon until all its members work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._took: dict[str, float] = {}

    def look(self, state: DaemonState) -> str:
        """Return the started members with their start times, and the one that is starting: `server 1.2 s, worker 3 s
        …`.
        """
        now = self._clock()
        for child in state.children:
            if child.phase is not ChildPhase.WAITING:
                self._since.setdefault(child.name, now)
            if child.phase is ChildPhase.RUNNING:
                self._took.setdefault(child.name, now - self._since[child.name])
        return ", ".join(self._progress(child.name, now) for child in state.children if child.name in self._since)

    def _progress(self, name: str, now: float) -> str:
        took = self._took.get(name)
        return f"{name} {now - self._since[name]:.0f} s …" if took is None else f"{name} {took:.1f} s"


def ending(state: DaemonState) -> str:
    """Return the members of a stopping daemon that still run; the next one to stop comes first."""
    left = [child.name for child in reversed(state.children) if child.phase is not ChildPhase.STOPPED]
    return f"stopping {', '.join(left)}" if left else "stopping"
