"""One supervised run of a program. `run` is idempotent: the program starts once, and every caller gets the same end.

No process library is used, because it would lose track of its child processes when the worker ends. Here the process
belongs to a supervisor in its own session, so it outlives the worker; a later call attaches to it.
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
from activities.boxes.enter import describe
from activities.runs import output_times, records, supervisor
from activities.runs.await_process import wait_until_gone
from activities.runs.os_processes import identity, kill_all, send, with_mark
from activities.runs.output import last_line, last_lines
from activities.runs.records import RecordKind, UnbelievedError
from activities.runs.regular_files import NotRegularError, size_of
from activities.runs.run_folders import RunError, made_run_key, ready, run_key
from activities.runs.spawn import spawn
from activities.runs.supervisor import EndKind
from activities.sealing.seal_key import SealKeyError
from activities.stations.hook import reach

PROGRESS_SECONDS = 2.0
STOP_MARGIN_SECONDS = 20.0
SAID_LIMIT = 2000


@dataclass(frozen=True)
class RunRequest:
    """The program to run, and the directory of the run itself (`run_folders`)."""

    run_dir: Path
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment: the run doesn't inherit the worker's."""
    prompt: bytes | None = None
    timeout_seconds: float | None = None
    grace_seconds: float = 10.0
    box: Box | None = None
    """The box of the program; None runs it without one."""
    most_bytes: int = 0
    """Size limit of each file that the run writes, including its output; 0: no limit."""


@dataclass(frozen=True)
class RunEnd:
    """The end of a run. None of its processes is alive, except those counted in `survivors`."""

    kind: EndKind
    run_dir: Path
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""
    """The reason why the run was not started, was ended by the service, or has an unknown end."""
    problem: str = ""
    """The reason why the run's records are not trusted."""
    started_at: float | None = None
    ended_at: float | None = None
    survivors: int = 0
    ran_out: str = ""
    """The limit of its control group that the run reached, in words."""

    @property
    def stdout(self) -> Path:
        """Return the file of the command's standard output."""
        return self.run_dir / "stdout.log"

    @property
    def stderr(self) -> Path:
        """Return the file of the command's standard error."""
        return self.run_dir / "stderr.log"


@dataclass(frozen=True)
class Progress:
    """The current activity of a run. `last_line` has no secrets (ruling A12)."""

    pid: int
    stdout_bytes: int
    last_line: str


@dataclass(frozen=True)
class Claim:
    """A supervisor's claim on a run. Without a pid, the run was cancelled before its start, or can't start because of
    `problem`.
    """

    at: float
    pid: int | None = None
    start: str | None = None
    mark: str | None = None
    problem: str = ""
    """The reason why the run's end can't be known. Such a run is never started again, and never counts as a success."""

    @classmethod
    def read(cls, run_dir: Path, key: bytes | None = None) -> "Claim | None":
        """Read the claim; None if the run has none. In a copied home, the original's supervisors count as dead.

        With the run's `key`, the claim can be read even if the home's key has become unusable.
        """
        try:
            content = _read(run_dir, RecordKind.CLAIM, key)
        except UnbelievedError as error:
            return cls(0.0, problem=str(error))
        if content is None:
            return None
        claim = cls(**content)
        return claim if claim.mark in (None, mark_of(run_dir)) else replace(claim, start=None)

    @property
    def alive(self) -> bool:
        """Return whether the supervisor lives: a process with its pid and its start time."""
        return self.pid is not None and self.start is not None and identity(self.pid) == self.start


def mark_of(run_dir: Path) -> str:
    """Return the mark in the environment of all processes of a run, `<folder>@<home>`: unique on the host (ruling
    B1).
    """
    return f"{run_dir.name}@{home_mark(run_dir.parent)}"


@lru_cache(16)
def home_mark(runs: Path) -> str:
    """Return a digest of the home's path, which distinguishes its runs from those of another home or of a copy."""
    return hashlib.sha256(os.fsencode(runs.resolve())).hexdigest()[:12]


async def run(request: RunRequest, on_progress: Callable[[Progress], None] | None = None) -> RunEnd:
    """Start the run unless it was started before, wait for its end, and return it.

    Cancelling the caller leaves the run alone (`stop` ends it); the next call attaches again.
    """
    claim = await asyncio.to_thread(begin, request)
    return await follow(request.run_dir, claim, on_progress)


def begin(request: RunRequest) -> Claim:
    """Start the run unless it was started before, and return its claim."""
    key = made_run_key(request.run_dir)  # an unusable key stops this: else a genuine record would count as forged
    return Claim.read(request.run_dir, key) or _start(request)


async def stop(run_dir: Path, grace: float = 10.0) -> RunEnd:
    """Stop the run: SIGINT and SIGTERM for at most `grace` seconds, then SIGKILL. A run not started yet never
    starts.
    """
    made_run_key(run_dir)
    claim = Claim.read(run_dir)
    if claim is None:
        claim = await asyncio.to_thread(_claim_as_cancelled, run_dir)
    if claim.alive and claim.pid is not None:
        with contextlib.suppress(OSError):  # on a full disk the run's own grace applies
            _publish(
                run_dir,
                RecordKind.STOP,
                records.with_seal(made_run_key(run_dir), run_dir, RecordKind.STOP, str(grace).encode()),
            )
        send(claim.pid, signal.SIGTERM)
        if not await wait_until_gone(claim.pid, lambda: claim.alive, grace + STOP_MARGIN_SECONDS):
            send(claim.pid, signal.SIGKILL)
    return await follow(run_dir, claim, None)


def never_starts(run_dir: Path) -> bool:
    """Return whether the run was cancelled before its start; cancel it if it has not started yet."""
    claim = Claim.read(run_dir) or _claim_as_cancelled(run_dir)
    return claim.pid is None and not claim.problem


def read_end(run_dir: Path, key: bytes | None = None) -> RunEnd | None:
    """Return the recorded end of a run; None without a trusted record."""
    with contextlib.suppress(UnbelievedError):
        if (end := _read(run_dir, RecordKind.EXIT, key)) is not None:
            return RunEnd(**{**end, "kind": EndKind(end["kind"]), "run_dir": run_dir})
    claim = Claim.read(run_dir, key)
    if claim is not None and claim.pid is None and not claim.problem:
        return RunEnd(EndKind.CANCELLED, run_dir, ended_at=claim.at)
    return None


def give_up(run_dir: Path, why: str) -> None:
    """Claim a run of unknown state with a problem, so that it never starts. An existing claim stays."""
    ready(run_dir)
    supervisor.claim(run_dir, made_run_key(run_dir), {"at": time.time(), "problem": why})


def prepare(request: RunRequest) -> bytes:
    """Write the run's folder for its supervisor, and return the run's key."""
    run_dir = ready(request.run_dir)
    key = made_run_key(run_dir)
    if request.prompt is not None:
        _publish(run_dir, "prompt", request.prompt)
    spec = {
        "prompt": None if request.prompt is None else hashlib.sha256(request.prompt).hexdigest(),
        "mark": mark_of(request.run_dir),
        "argv": request.argv,
        "cwd": str(request.cwd.absolute()),
        "env": dict(request.env),
        "timeout_seconds": request.timeout_seconds,
        "grace_seconds": request.grace_seconds,
        "box": describe(request.box, request.argv) if request.box else None,
        "most_bytes": request.most_bytes,
    }
    _publish(run_dir, RecordKind.SPEC, records.with_seal(key, run_dir, RecordKind.SPEC, json.dumps(spec).encode()))
    return key


def _start(request: RunRequest) -> Claim:
    """Spawn a supervisor and wait until the run is claimed, by this supervisor or by a faster one."""
    run_dir = request.run_dir.absolute()
    if (claim := _lost_claim(run_dir)) is not None:
        return claim
    key = prepare(request)
    reach("program to be started", run_dir.name)
    try:
        spawn(run_dir, key)
    except NotRegularError as error:
        raise RunError(f"the run could not be started: {error}", f"ls -l {run_dir}") from None
    claim = Claim.read(run_dir, key)
    if claim is None:
        reason = _last_words(run_dir)
        raise RunError(f"the run in {run_dir} could not be started: {reason}", "df -h; service job retry <job>")
    reach("program started", run_dir.name)
    return claim


def _lost_claim(run_dir: Path) -> Claim | None:
    """Return the claim of a run that was prepared before and has living processes; give the run up if its claim is
    missing.
    """
    if not (run_dir / RecordKind.SPEC.value).exists() or not with_mark(mark_of(run_dir)):
        return None
    if (claim := Claim.read(run_dir)) is None:
        give_up(run_dir, f"processes started in {run_dir} are still running, and its claim is missing")
        claim = Claim.read(run_dir)
    return claim


def _claim_as_cancelled(run_dir: Path) -> Claim:
    ready(run_dir)
    supervisor.claim(run_dir, made_run_key(run_dir), {"at": time.time()})
    claim = Claim.read(run_dir)
    assert claim is not None
    return claim


async def follow(run_dir: Path, claim: Claim, on_progress: Callable[[Progress], None] | None) -> RunEnd:
    """Wait for the end of a claimed run, and return it."""
    key = made_run_key(run_dir)
    progress, stdout = None, run_dir / "stdout.log"
    while claim.alive and claim.pid is not None:
        if on_progress is not None:
            before, progress = progress, _look(stdout, claim.pid, progress)
            if progress is not before:
                output_times.note(stdout)
            on_progress(progress)
        await wait_until_gone(claim.pid, lambda: claim.alive, PROGRESS_SECONDS)
    output_times.note(stdout)
    end = read_end(run_dir, key)
    return end if end is not None else await asyncio.to_thread(_unknown, run_dir, claim, key)


def _look(stdout: Path, pid: int, known: Progress | None) -> Progress:
    """Return the run's progress. Read the output only if it has grown: searching it for secrets takes a millisecond."""
    size = size_of(stdout)
    return known if known is not None and known.stdout_bytes == size else Progress(pid, size, last_line(stdout))


def _unknown(run_dir: Path, claim: Claim, key: bytes) -> RunEnd:
    """Kill the remaining processes of a dead supervisor that left no trusted record, and return an end of kind
    `unknown`.
    """
    survivors = kill_all(lambda: with_mark(mark_of(run_dir)))
    problem = claim.problem or _forged_end(run_dir, key)
    error = problem or f"the supervisor {claim.pid} died without recording an end. {_last_words(run_dir)}".strip()
    return RunEnd(EndKind.UNKNOWN, run_dir, error=error, problem=problem, started_at=claim.at, survivors=survivors)


def _forged_end(run_dir: Path, key: bytes) -> str:
    try:
        _read(run_dir, RecordKind.EXIT, key)
    except UnbelievedError as error:
        return str(error)
    return ""


def _last_words(run_dir: Path) -> str:
    """Return the last lines that the supervisor logged."""
    return last_lines(run_dir / "supervisor.log", SAID_LIMIT).strip()


def _publish(run_dir: Path, name: str, data: bytes) -> None:
    """Write a file atomically, even if other processes write it too."""
    with NamedTemporaryFile(dir=run_dir, prefix=f"{name}.", delete=False) as file:
        file.write(data)
    os.replace(file.name, run_dir / name)


def _read(run_dir: Path, kind: RecordKind, key: bytes | None) -> dict[str, Any] | None:
    """Read a record; None if it is missing. Raise UnbelievedError if it is not the service's."""
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
