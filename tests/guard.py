"""Ends what a test run started and could not stop itself, because it was killed.

Servers and daemons outlive whoever started them. So each pytest process puts a mark of its own into the environment,
which all that it starts inherits, and has a guard: a process that waits for its end, then kills what bears the mark.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

MARK = "SERVICE_TEST_RUN"
DONE = b"done"


class Guard:
    """The guard of this process, from `begin` to `end`."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        mark = f"{self._pid}-{time.monotonic_ns()}"
        os.environ[MARK] = mark
        command = [sys.executable, "-I", "-S", __file__, mark, str(self._pid)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env={}, start_new_session=True)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._terminated)

    def end(self) -> None:
        """Let the guard go: the run has stopped everything itself."""
        self._process.communicate(DONE)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        """End like Ctrl-C does, so that fixtures stop what they started. A forked child just ends."""
        if os.getpid() == self._pid:
            signal.default_int_handler(number, frame)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def wait(parent: int) -> bool:
    """Wait for the end of the parent; return whether it stopped everything itself."""
    while os.getppid() == parent:
        if select.select([0], [], [], 0.5)[0]:
            return os.read(0, 100) == DONE
    return False


def marked(mark: str) -> list[int]:
    """Return the processes with this mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or is of another account
            continue
    return found


def main(mark: str, parent: int) -> None:
    if not wait(parent):
        while found := marked(mark):
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
