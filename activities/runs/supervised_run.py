"""One run of a program, safe to ask for any number of times: it starts once, and everyone gets its one end.

No library: those that start processes know them as children, and forget them with the worker. Here the process belongs
to a supervisor in a session of its own, so it outlives the worker; a later call attaches to it.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from activities.boxes.box import Box
from activities.runs import supervisor
from activities.runs.os_processes import identity, kill_all, marked, send
from activities.runs.output import last_words, read_bounded
from activities.runs.spawn import spawn
from activities.runs.supervisor import EndKind
from workflows.model.errors import ServiceError

PROGRESS_SECONDS = 2.0
POLL_SECONDS = 0.1
STOP_MARGIN_SECONDS = 20.0


class RunError(ServiceError):
    """The supervisor could not take the run; nothing was started."""

    code = "run_not_started"


@dataclass(frozen=True)
class RunRequest:
    """What to run, and in which directory the run itself is kept, `<job>.<attempt>`."""

    run_dir: Path
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment: nothing of the worker's own gets through."""
    prompt: bytes | None = None
    timeout_seconds: float | None = None
    grace_seconds: float = 10.0
    box: Box | None = None
    """What holds it; None: nothing does."""


@dataclass(frozen=True)
class RunEnd:
    """How a run ended. Unless `survivors` says otherwise, nothing of it is alive any more."""

    kind: EndKind
    run_dir: Path
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""
    """Why it was not started, or why its end is unknown."""
    started_at: float | None = None
    ended_at: float | None = None
    survivors: int = 0

    @property
    def stdout(self) -> Path:
        """The file with everything the command printed."""
        return self.run_dir / "stdout.log"

    @property
    def stderr(self) -> Path:
        """The file with everything the command printed beside it."""
        return self.run_dir / "stderr.log"


@dataclass(frozen=True)
class Progress:
    """What a run is doing. `last_line` has no secrets (ruling A12)."""

    pid: int
    stdout_bytes: int
    last_line: str


@dataclass(frozen=True)
class Claim:
    """Who took the run. No pid: it was cancelled before anything started."""

    at: float
    pid: int | None = None
    start: str | None = None
    mark: str | None = None

    @classmethod
    def read(cls, run_dir: Path) -> "Claim | None":
        """None when nobody has claimed the run yet. In a copy of a home, the original's supervisors are not ours."""
        content = _read_json(run_dir / "claim")
        if content is None:
            return None
        claim = cls(**content)
        return claim if claim.mark in (None, mark_of(run_dir)) else replace(claim, start=None)

    @property
    def alive(self) -> bool:
        """Whether the supervisor lives: same pid, same start."""
        return self.pid is not None and self.start is not None and identity(self.pid) == self.start


def mark_of(run_dir: Path) -> str:
    """What everything of a run carries in its environment, `<job>.<attempt>@<home>`: unique on the host (ruling B1)."""
    return f"{run_dir.name}@{home_mark(run_dir.parent)}"


def home_mark(runs: Path) -> str:
    """Tells the runs of one service home from those of another, or of a copy."""
    return hashlib.sha256(os.fsencode(runs.resolve())).hexdigest()[:12]


async def run(request: RunRequest, on_progress: Callable[[Progress], None] | None = None) -> RunEnd:
    """Start the run unless it was started before, wait for its end, and return it.

    Cancelling the caller leaves the run alone (`stop` ends it); the next call attaches again.
    """
    claim = Claim.read(request.run_dir)
    if claim is None:
        claim = await asyncio.to_thread(_start, request)
    return await _follow(request.run_dir, claim, on_progress)


async def stop(run_dir: Path, grace: float = 10.0) -> RunEnd:
    """End the run: INT and TERM for at most `grace` seconds, then KILL for all of it. Not started yet, it never is."""
    claim = Claim.read(run_dir)
    if claim is None:
        claim = await asyncio.to_thread(_claim_as_cancelled, run_dir)
    if claim.alive and claim.pid is not None:
        with contextlib.suppress(OSError):  # on a full disk the run's own grace holds
            _publish(run_dir / "stop", str(grace).encode())
        send(claim.pid, signal.SIGTERM)
        if not await _gone(claim, grace + STOP_MARGIN_SECONDS):
            send(claim.pid, signal.SIGKILL)
    return await _follow(run_dir, claim, None)


def read_end(run_dir: Path) -> RunEnd | None:
    """The recorded end of a run, if it has one."""
    if (end := _read_json(run_dir / "exit.json")) is not None:
        return RunEnd(**{**end, "kind": EndKind(end["kind"]), "run_dir": run_dir})
    claim = Claim.read(run_dir)
    if claim is not None and claim.pid is None:
        return RunEnd(EndKind.CANCELLED, run_dir, ended_at=claim.at)
    return None


def _start(request: RunRequest) -> Claim:
    """Spawn a supervisor and wait until the run is claimed, by it or by one that was faster."""
    run_dir = request.run_dir.absolute()
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if request.prompt is not None:
        _publish(run_dir / "prompt", request.prompt)
    spec = {
        "mark": mark_of(request.run_dir),
        "argv": request.argv,
        "cwd": str(request.cwd.absolute()),
        "env": dict(request.env),
        "timeout_seconds": request.timeout_seconds,
        "grace_seconds": request.grace_seconds,
        "box": request.box.as_json() if request.box else None,
    }
    _publish(run_dir / "spec.json", json.dumps(spec).encode())
    spawn(run_dir)
    claim = Claim.read(run_dir)
    if claim is None:
        said = read_bounded(run_dir / "supervisor.log", 0, 2000).text.strip()
        raise RunError(f"the run in {run_dir} could not be started: {said}", "df -h; service job retry <job>")
    return claim


def _claim_as_cancelled(run_dir: Path) -> Claim:
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    supervisor.claim(run_dir, {"at": time.time()})
    claim = Claim.read(run_dir)
    assert claim is not None
    return claim


async def _follow(run_dir: Path, claim: Claim, on_progress: Callable[[Progress], None] | None) -> RunEnd:
    progress: Progress | None = None
    while claim.alive and claim.pid is not None:
        if on_progress is not None:
            progress = _look(run_dir / "stdout.log", claim.pid, progress)
            on_progress(progress)
        await _gone(claim, PROGRESS_SECONDS)
    end = read_end(run_dir)
    return end if end is not None else await asyncio.to_thread(_unknown, run_dir, claim)


def _look(stdout: Path, pid: int, known: Progress | None) -> Progress:
    """Reads again only what has grown: to search the last words for secrets takes a millisecond."""
    size = stdout.stat().st_size if stdout.exists() else 0
    return known if known is not None and known.stdout_bytes == size else Progress(pid, size, last_words(stdout))


def _unknown(run_dir: Path, claim: Claim) -> RunEnd:
    """The supervisor is dead and left no record: whatever it started must not go on unseen."""
    survivors = kill_all(lambda: marked(mark_of(run_dir)))
    said = read_bounded(run_dir / "supervisor.log", 0, 2000).text.strip()
    error = f"the supervisor {claim.pid} died without recording an end. {said}".strip()
    return RunEnd(EndKind.UNKNOWN, run_dir, error=error, started_at=claim.at, survivors=survivors)


async def _gone(claim: Claim, seconds: float) -> bool:
    """Wait for the supervisor's end, at most so long; wakes at once where the kernel can tell."""
    assert claim.pid is not None
    try:
        descriptor = os.pidfd_open(claim.pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):
        return await _poll(claim, seconds)
    try:
        # looked at after opening, so that a reused pid is not waited for
        return not claim.alive or await _readable(descriptor, seconds)
    finally:
        os.close(descriptor)


async def _readable(descriptor: int, seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), seconds)
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
    return True


async def _poll(claim: Claim, seconds: float) -> bool:
    for _ in range(max(1, round(seconds / POLL_SECONDS))):
        if not claim.alive:
            return True
        await asyncio.sleep(POLL_SECONDS)
    return not claim.alive


def _publish(path: Path, data: bytes) -> None:
    """Complete or not at all, whoever else writes the same."""
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        file.write(data)
    os.replace(file.name, path)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_bytes())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None
