"""Ends what a test run started and could not stop itself, because it was killed.

Servers and daemons outlive whoever started them. So each pytest process puts a mark of its own into the environment,
which all that it starts inherits, and has a guard: a process that waits for its end, then kills what bears the mark.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from types import FrameType

MARK = "GUARDED_TEST_RUN"


def begin() -> None:
    """Start the guard of this process."""
    mark = os.environ[MARK] = f"{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-I", "-S", __file__, mark, str(os.getpid())]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={}, start_new_session=True)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, partial(_terminated, os.getpid()))


def _terminated(run: int, number: int, frame: FrameType | None) -> None:
    """End like Ctrl-C does, so that fixtures stop what they started. A forked child just ends."""
    if os.getpid() == run:
        signal.default_int_handler(number, frame)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def marked(mark: str) -> list[int]:
    """Return the processes with this mark in their environment."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                pids.append(int(path.parent.name))
        except OSError:  # it has ended, or is of another account
            continue
    return pids


def main(mark: str, parent: int) -> None:
    """Wait for the end of the parent, and kill what it left."""
    while os.getppid() == parent:
        time.sleep(0.2)
    while pids := marked(mark):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
