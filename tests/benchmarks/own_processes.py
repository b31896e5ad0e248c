"""Processes that end with the benchmark that started them, and what the kernel has counted for them."""

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

from bridge.daemon import tied
from bridge.machine.ports import choose_port

PATIENCE = 60.0
_TICK: int = os.sysconf("SC_CLK_TCK")


def end_on_signals() -> None:
    """A SIGTERM or SIGHUP ends the benchmark as Ctrl-C does: what it started is stopped."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))


@contextmanager
def running(
    words: tuple[str, ...], environment: Mapping[str, str], log: Path, *, talks: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """A program in a session of its own, so that Ctrl-C is ours to pass on; it dies with us even if we are killed."""
    pipe = subprocess.PIPE if talks else subprocess.DEVNULL
    argv = (sys.executable, "-I", "-S", tied.__file__, str(os.getpid()), *words)
    with log.open("a") as said:
        out = subprocess.PIPE if talks else said
        process = subprocess.Popen(
            argv, stdin=pipe, stdout=out, stderr=said, env=environment, start_new_session=True, text=True
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
    """A process that is told what to do, and answers, in lines of JSON."""

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
    """Wait for programs whose command names this folder: runs outlive a worker, these for a moment only."""
    deadline = time.monotonic() + PATIENCE
    while (left := _naming(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _naming(folder: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) + b"/" in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found


@dataclass(frozen=True)
class Processor:
    """Seconds of processor time of a process, and of those children of it that have ended and been waited for."""

    own: float
    children: float

    @classmethod
    def of(cls, pid: int) -> "Processor":
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        user, system, children_user, children_system = (int(field) / _TICK for field in fields[11:15])
        return cls(user + system, children_user + children_system)


def machine() -> float:
    """Seconds of processor time that everything on this machine took so far, whoever started it."""
    user, nice, system, _, _, interrupts, soft, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + interrupts + soft) / _TICK


def free_port() -> int:
    return choose_port(0, "a benchmark").port


def environment(code: Path, **more: Any) -> dict[str, str]:
    """Ours, but nothing that points at another service or cluster; modules come from this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "TEMPORAL_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return kept | {"PYTHONPATH": str(code), "PATH": path} | {name: str(value) for name, value in more.items()}
