"""Processes that end with the benchmark that started them, and the kernel's figures for them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.daemon import die_with_parent
from bridge.machine.ports import choose_port

PATIENCE = 60.0
_TICK: int = os.sysconf("SC_CLK_TCK")


def end_on_signals() -> None:
    """End the benchmark on SIGTERM or SIGHUP as on Ctrl-C, with all that it started."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))


@contextmanager
def running(
    words: tuple[str, ...], environment: Mapping[str, str], log: Path, *, talks: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Run a program in a session of its own, so that only we get Ctrl-C; it dies with us even if we are killed."""
    pipe = subprocess.PIPE if talks else subprocess.DEVNULL
    argv = (sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *words)
    with log.open("a") as log_file:
        out = subprocess.PIPE if talks else log_file
        process = subprocess.Popen(
            argv, stdin=pipe, stdout=out, stderr=log_file, env=environment, start_new_session=True, text=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Talk:
    """A process that takes orders and answers in lines of JSON."""

    process: subprocess.Popen[str]
    log: Path

    def __call__(self, do: str, **more: object) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"do": do} | more) + "\n")
            self.process.stdin.flush()
        if line := self.process.stdout.readline():
            answer: dict[str, float] = json.loads(line)
            return answer
        raise SystemExit(f"{do} failed:\n{self.log.read_text()[-3000:]}")


def until_gone(folder: Path) -> None:
    """Wait for programs whose command names this folder: runs outlive a worker, but these only for a moment."""
    deadline = time.monotonic() + PATIENCE
    while (left := _pids_that_name(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _pids_that_name(folder: Path) -> list[int]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) + b"/" in path.read_bytes() and int(path.parent.name) != os.getpid():
                pids.append(int(path.parent.name))
    return pids


@dataclass(frozen=True)
class Processor:
    """CPU seconds of a process, and of its children that have ended and been waited for."""

    own: float
    children: float

    @classmethod
    def of(cls, pid: int) -> "Processor":
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        user, system, children_user, children_system = (int(field) / _TICK for field in fields[11:15])
        return cls(user + system, children_user + children_system)


def machine() -> float:
    """Return the CPU seconds of everything on this machine so far."""
    user, nice, system, _, _, interrupts, soft, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + interrupts + soft) / _TICK


def free_port() -> int:
    return choose_port(0, "a benchmark").port


def environment(code: Path, **more: Any) -> dict[str, str]:
    """Return our environment without other services and clusters; modules come from this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "TEMPORAL_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return kept | {"PYTHONPATH": str(code), "PATH": path} | {name: str(value) for name, value in more.items()}
