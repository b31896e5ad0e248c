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
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from activities.boxes.box import Box
from activities.boxes.enter import described, takes_first
from activities.runs import records, supervisor
from activities.runs.os_processes import identity, kill_all, marked, send
from activities.runs.output import last_lines, last_words
from activities.runs.process_end import gone
from activities.runs.records import Kind, UnbelievedError
from activities.runs.regular_files import NotRegularError, size_of
from activities.runs.run_folders import RunError, made_run_key, ready, run_key
from activities.runs.spawn import spawn
from activities.runs.supervisor import EndKind
from activities.sealing.seal_key import SealKeyError

PROGRESS_SECONDS = 2.0
STOP_MARGIN_SECONDS = 20.0
SAID_LIMIT = 2000


@dataclass(frozen=True)
class RunRequest:
    """What to run, and in which directory the run itself is kept (`run_folders`)."""

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
    most_bytes: int = 0
    """Of a file that it writes, its output too; 0: no bound."""


@dataclass(frozen=True)
class RunEnd:
    """How a run ended. Unless `survivors` says otherwise, nothing of it is alive any more."""

    kind: EndKind
    run_dir: Path
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""
    """Why it was not started, was ended by the service, or why its end is unknown."""
    problem: str = ""
    """Why what its folder says is not believed."""
    started_at: float | None = None
    ended_at: float | None = None
    survivors: int = 0
    ran_out: str = ""
    """Which limit of its control group it has met, in words."""

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
    """Who took the run. No pid: it was cancelled before anything started, or there is a problem."""

    at: float
    pid: int | None = None
    start: str | None = None
    mark: str | None = None
    problem: str = ""
    """Why nobody can know what became of the run: it is never started again, and never taken for ended well."""

    @classmethod
    def read(cls, run_dir: Path, key: bytes | None = None) -> "Claim | None":
        """None when nobody has claimed the run yet. In a copy of a home, the original's supervisors are not ours.

        Who holds the run's `key` is not held up by a home whose key cannot be used any more.
        """
        try:
            content = _read(run_dir, Kind.CLAIM, key)
        except UnbelievedError as error:
            return cls(0.0, problem=str(error))
        if content is None:
            return None
        claim = cls(**content)
        return claim if claim.mark in (None, mark_of(run_dir)) else replace(claim, start=None)

    @property
    def alive(self) -> bool:
        """Whether the supervisor lives: same pid, same start."""
        return self.pid is not None and self.start is not None and identity(self.pid) == self.start


def mark_of(run_dir: Path) -> str:
    """What everything of a run carries in its environment, `<folder>@<home>`: unique on the host (ruling B1)."""
    return f"{run_dir.name}@{home_mark(run_dir.parent)}"


@lru_cache(16)
def home_mark(runs: Path) -> str:
    """Tells the runs of one service home from those of another, or of a copy."""
    return hashlib.sha256(os.fsencode(runs.resolve())).hexdigest()[:12]


async def run(request: RunRequest, on_progress: Callable[[Progress], None] | None = None) -> RunEnd:
    """Start the run unless it was started before, wait for its end, and return it.

    Cancelling the caller leaves the run alone (`stop` ends it); the next call attaches again.
    """
    claim = await asyncio.to_thread(begin, request)
    return await follow(request.run_dir, claim, on_progress)


def begin(request: RunRequest) -> Claim:
    """Start the run unless it was started before; whose it is."""
    key = made_run_key(request.run_dir)  # one that cannot be used stops this: nothing is taken for forged because of it
    return Claim.read(request.run_dir, key) or _start(request)


async def stop(run_dir: Path, grace: float = 10.0) -> RunEnd:
    """End the run: INT and TERM for at most `grace` seconds, then KILL for all of it. Not started yet, it never is."""
    made_run_key(run_dir)
    claim = Claim.read(run_dir)
    if claim is None:
        claim = await asyncio.to_thread(_claim_as_cancelled, run_dir)
    if claim.alive and claim.pid is not None:
        with contextlib.suppress(OSError):  # on a full disk the run's own grace holds
            _publish(run_dir, Kind.STOP, records.sealed(made_run_key(run_dir), run_dir, Kind.STOP, str(grace).encode()))
        send(claim.pid, signal.SIGTERM)
        if not await gone(claim.pid, lambda: claim.alive, grace + STOP_MARGIN_SECONDS):
            send(claim.pid, signal.SIGKILL)
    return await follow(run_dir, claim, None)


def read_end(run_dir: Path, key: bytes | None = None) -> RunEnd | None:
    """The recorded end of a run, if it has one that is believed."""
    with contextlib.suppress(UnbelievedError):
        if (end := _read(run_dir, Kind.EXIT, key)) is not None:
            return RunEnd(**{**end, "kind": EndKind(end["kind"]), "run_dir": run_dir})
    claim = Claim.read(run_dir, key)
    if claim is not None and claim.pid is None and not claim.problem:
        return RunEnd(EndKind.CANCELLED, run_dir, ended_at=claim.at)
    return None


def give_up(run_dir: Path, why: str) -> None:
    """Nobody knows whether the run was started: it never is again. A claim that is there stands."""
    ready(run_dir)
    supervisor.claim(run_dir, made_run_key(run_dir), {"at": time.time(), "problem": why})


def prepared(request: RunRequest) -> tuple[bytes, bool]:
    """Its folder with all that a supervisor reads; the key it reads that with, and whether it is first in its box."""
    run_dir = ready(request.run_dir)
    key = made_run_key(run_dir)
    if request.prompt is not None:
        _publish(run_dir, "prompt", request.prompt)
    box = described(request.box, request.argv) if request.box else None
    spec = {
        "prompt": None if request.prompt is None else hashlib.sha256(request.prompt).hexdigest(),
        "mark": mark_of(request.run_dir),
        "argv": request.argv,
        "cwd": str(request.cwd.absolute()),
        "env": dict(request.env),
        "timeout_seconds": request.timeout_seconds,
        "grace_seconds": request.grace_seconds,
        "box": box,
        "most_bytes": request.most_bytes,
    }
    _publish(run_dir, Kind.SPEC, records.sealed(key, run_dir, Kind.SPEC, json.dumps(spec).encode()))
    return key, takes_first(box)


def _start(request: RunRequest) -> Claim:
    """Spawn a supervisor and wait until the run is claimed, by it or by one that was faster."""
    run_dir = request.run_dir.absolute()
    if (claim := _lost_claim(run_dir)) is not None:
        return claim
    key, first = prepared(request)
    try:
        spawn(run_dir, key, first=first)
    except NotRegularError as error:
        raise RunError(f"the run could not be started: {error}", f"ls -l {run_dir}") from None
    claim = Claim.read(run_dir, key)
    if claim is None:
        said = _said(run_dir)
        raise RunError(f"the run in {run_dir} could not be started: {said}", "df -h; service job retry <job>")
    return claim


def _lost_claim(run_dir: Path) -> Claim | None:
    """The claim of a run that was about to be started before; one that goes on without any is not started again."""
    if not (run_dir / Kind.SPEC.value).exists() or not marked(mark_of(run_dir)):
        return None
    if (claim := Claim.read(run_dir)) is None:
        give_up(run_dir, f"what was started in {run_dir} goes on, and its claim is gone")
        claim = Claim.read(run_dir)
    return claim


def _claim_as_cancelled(run_dir: Path) -> Claim:
    ready(run_dir)
    supervisor.claim(run_dir, made_run_key(run_dir), {"at": time.time()})
    claim = Claim.read(run_dir)
    assert claim is not None
    return claim


async def follow(run_dir: Path, claim: Claim, on_progress: Callable[[Progress], None] | None) -> RunEnd:
    """Wait for the end of a run that was claimed, and return it."""
    key = made_run_key(run_dir)
    progress: Progress | None = None
    while claim.alive and claim.pid is not None:
        if on_progress is not None:
            progress = _look(run_dir / "stdout.log", claim.pid, progress)
            on_progress(progress)
        await gone(claim.pid, lambda: claim.alive, PROGRESS_SECONDS)
    end = read_end(run_dir, key)
    return end if end is not None else await asyncio.to_thread(_unknown, run_dir, claim, key)


def _look(stdout: Path, pid: int, known: Progress | None) -> Progress:
    """Reads again only what has grown: to search the last words for secrets takes a millisecond."""
    size = size_of(stdout)
    return known if known is not None and known.stdout_bytes == size else Progress(pid, size, last_words(stdout))


def _unknown(run_dir: Path, claim: Claim, key: bytes) -> RunEnd:
    """The supervisor is dead and left no record that is believed: whatever it started must not go on unseen."""
    survivors = kill_all(lambda: marked(mark_of(run_dir)))
    problem = claim.problem or _forged_end(run_dir, key)
    error = problem or f"the supervisor {claim.pid} died without recording an end. {_said(run_dir)}".strip()
    return RunEnd(EndKind.UNKNOWN, run_dir, error=error, problem=problem, started_at=claim.at, survivors=survivors)


def _forged_end(run_dir: Path, key: bytes) -> str:
    try:
        _read(run_dir, Kind.EXIT, key)
    except UnbelievedError as error:
        return str(error)
    return ""


def _said(run_dir: Path) -> str:
    """The supervisor's own last words."""
    return last_lines(run_dir / "supervisor.log", SAID_LIMIT).strip()


def _publish(run_dir: Path, name: str, data: bytes) -> None:
    """Complete or not at all, whoever else writes the same."""
    with NamedTemporaryFile(dir=run_dir, prefix=f"{name}.", delete=False) as file:
        file.write(data)
    os.replace(file.name, run_dir / name)


def _read(run_dir: Path, kind: Kind, key: bytes | None) -> dict[str, Any] | None:
    """A record's content, None when there is none; UnbelievedError when it is not the service's."""
    path = run_dir / kind.value
    if not os.path.lexists(path):
        return None
    problem = f"{path} cannot be checked: the service home has no seal key"
    try:
        key = key or run_key(run_dir)
    except SealKeyError as error:
        problem = str(error)
    if key is None:
        raise UnbelievedError(problem)
    try:
        return json.loads(records.read(key, run_dir, kind))  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None
