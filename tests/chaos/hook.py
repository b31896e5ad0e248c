"""The side of the processes under test: at each station, ask the controller what to do. Standard library only."""

import _thread
import contextlib
import ctypes
import errno
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from activities.stations import hook as stations

CONTROLLER = "CHAOS_CONTROLLER"
"""The variable with the controller's socket. Without it nothing is hooked."""
CLOCK = "clock"
"""The file beside that socket with a module whose clock is to be wrong, by how many seconds, and libfaketime's path."""
UNCACHED = "uncached"
"""The file beside that socket which has a worker begin without a cache of workflows; it writes its pid there."""
ROOT = str(Path(__file__).parents[2])
FIRST = str(Path(__file__).with_name("first"))
_numbers = iter(range(1, sys.maxsize))


def install() -> None:
    """Hook the stations of this process, if its environment names a controller."""
    if CONTROLLER in os.environ:
        obey_clock(Path(os.environ[CONTROLLER]).parent)
        obey_cache(Path(os.environ[CONTROLLER]).parent)
        stations.hook = arrive


def obey_clock(folder: Path) -> None:
    """Start this process anew under libfaketime if its clock is to be wrong. Its monotonic clock stays right."""
    try:
        module, seconds, library = (folder / CLOCK).read_text().split()
    except (OSError, ValueError):
        return
    if "FAKETIME" not in os.environ and module in sys.orig_argv:
        wrong = {"LD_PRELOAD": library, "FAKETIME": f"{int(seconds):+}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        os.execve(sys.executable, sys.orig_argv, os.environ | wrong)


def obey_cache(folder: Path) -> None:
    """Make the workers of this process without a cache of workflows, if it is to have none."""
    if "activities" not in sys.orig_argv or not (folder / UNCACHED).exists():
        return
    from temporalio.worker import Worker

    make: Any = Worker.__init__

    def uncached(self: Worker, *words: Any, **named: Any) -> None:
        with contextlib.suppress(OSError), (folder / UNCACHED).open("a") as file:
            file.write(f"{os.getpid()} ")
        make(self, *words, **named | {"max_cached_workflows": 0})

    setattr(Worker, "__init__", uncached)  # noqa: B010


def arrive(station: str, subject: str, detail: str) -> None:
    """Tell the controller of an arrival, and carry out its answer. Go on if no controller listens."""
    _hook_isolated_programs()
    arrival = {"station": station, "subject": subject, "detail": detail, "pid": os.getpid(), "number": next(_numbers)}
    arrival["thread"] = _thread.get_native_id()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.connect(os.environ[CONTROLLER])
            line.sendall(json.dumps(arrival).encode() + b"\n")
            answer = line.makefile().readline().split()
    except OSError:
        return
    if answer[:1] == ["raise"]:
        number: int = getattr(errno, answer[1])
        raise OSError(number, f"{os.strerror(number)} (at {station})")
    if answer[:1] == ["hold"]:
        ctypes.PyDLL(None).usleep(int(float(answer[1]) * 1e6))  # a PyDLL call keeps the interpreter's lock


def _hook_isolated_programs() -> None:
    """Let the fork server of a worker, which starts isolated, and the supervisors that it forks, be hooked too."""
    spawn: Any = sys.modules.get("activities.runs.spawn")
    if spawn is None or getattr(spawn, "ISOLATED", ()) == ("-P",):
        return
    environment, hooked = spawn.group_environment, {CONTROLLER: os.environ[CONTROLLER], "PYTHONPATH": f"{FIRST}:{ROOT}"}
    spawn.ISOLATED = ("-P",)
    spawn.group_environment = lambda: environment() | hooked
