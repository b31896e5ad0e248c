"""The state of a run, read from its directory: no worker or server is needed."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from activities.runs.output import last_line
from activities.runs.supervised_run import Claim


class RunStage(StrEnum):
    """The progress of a run without an outcome."""

    WAITING = "waiting"
    """Waits for a free slot."""
    RUNNING = "running"
    PUT_OFF = "put_off"
    ENDED = "ended"
    """Has ended and is being recorded."""


@dataclass(frozen=True)
class RunStatus:
    """A run without an outcome. `last_line` has no secrets (ruling A12)."""

    stage: RunStage = RunStage.WAITING
    output_bytes: int = 0
    last_line: str = ""
    last_output_at: float | None = None


def look(run_dir: Path) -> RunStatus:
    """Return the state of an attempt's newest program: the first, one that was run again, or one for the repair."""
    newest = newest_program(run_dir)
    if newest is None:
        return RunStatus()
    stage = RunStage.RUNNING if _runs(newest) else RunStage.ENDED
    stdout = newest / "stdout.log"
    try:
        seen = stdout.lstat()
    except FileNotFoundError:
        return RunStatus(stage)
    return RunStatus(stage, seen.st_size, last_line(stdout), seen.st_mtime if seen.st_size else None)


def has_ended(run_dir: Path) -> bool:
    """Return whether an attempt's newest program was started, and has ended."""
    newest = newest_program(run_dir)
    return newest is not None and not _runs(newest)


def _runs(program: Path) -> bool:
    claim = Claim.read(program)
    return claim is not None and claim.alive


def newest_program(run_dir: Path) -> Path | None:
    """Return the folder of the program that an attempt started last."""
    folders = (run_dir, *run_dir.parent.glob(f"{run_dir.name}.[a-z]*"))
    begun = {path: claim.at for path in folders if (claim := Claim.read(path))}
    return max(begun, key=lambda path: begun[path], default=None)
