"""Leftovers of dead workers: processes are reported first and killed second; folders of runs are kept for some time."""

import asyncio
import contextlib
import json
import logging
import math
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.runs.os_processes import kill_all, left_over_line, marks, report_left_over, with_mark
from activities.runs.run_folders import Key, key_of
from activities.runs.supervised_run import Claim, home_mark, mark_of, stop

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Orphan:
    """A run that no workflow waits for, or the processes of a run whose supervisor is dead."""

    run_dir: Path
    supervisor: int | None
    """None if the supervisor is dead."""
    pids: tuple[int, ...]

    @property
    def mark(self) -> str:
        return mark_of(self.run_dir)

    def __str__(self) -> str:
        return left_over_line(self.run_dir, self.supervisor, self.pids)


def find_orphans(runs: Path, wanted: Collection[Key]) -> tuple[Orphan, ...]:
    """Find this home's runs that are alive although no workflow wants them, or whose supervisor is dead. Change
    nothing.

    `wanted` are the runs that a workflow will attach to again.
    """
    home = home_mark(runs)
    split = (mark.rpartition("@") for _, mark in marks())
    left = {name for name, _, of_home in split if of_home == home}  # before the claims: later starts have one
    claims = {path.parent.name: Claim.read(path.parent) for path in runs.glob("*/claim")}
    alive = {name for name, claim in claims.items() if claim and claim.alive}
    unwanted = {name for name in alive if key_of(name) not in wanted}
    orphans = []
    for run_dir in (runs / name for name in sorted(unwanted | (left - alive))):
        claim = Claim.read(run_dir)
        supervisor = claim.pid if claim is not None and claim.alive else None
        orphans.append(Orphan(run_dir, supervisor, tuple(sorted(with_mark(mark_of(run_dir))))))
    return tuple(orphan for orphan in orphans if orphan.supervisor or orphan.pids)


async def end(orphans: Collection[Orphan], report_file: Path, grace: float = 10.0) -> None:
    """Report the orphans, then end them."""
    if not orphans:
        return
    await asyncio.to_thread(report, orphans, report_file)
    if left := sum(await asyncio.gather(*(kill_orphan(orphan, grace) for orphan in orphans))):
        log.error("%d processes could not be ended; look at %s", left, report_file)


async def end_runs(runs: Path, keys: Collection[Key], report_file: Path, grace: float) -> int:
    """Report and end the agents of these attempts, by job and number. Return how many ran."""
    alive = await asyncio.to_thread(find_orphans, runs, set())
    ended = [orphan for orphan in alive if key_of(orphan.run_dir.name) in keys]
    await end(ended, report_file, grace)
    return len(ended)


async def kill_orphan(orphan: Orphan, grace: float = 10.0) -> int:
    """Stop the supervisor if it lives, then kill all processes with the mark. Return how many could not be killed."""
    if orphan.supervisor is not None:
        await stop(orphan.run_dir, grace)
    return kill_all(lambda: with_mark(orphan.mark))


def report(orphans: Collection[Orphan], path: Path) -> None:
    """Log the orphans, also to a file that `service doctor` reads, before anything is killed."""
    for orphan in orphans:
        log.warning("%s; it is ended now", orphan)
        report_left_over(path, orphan.run_dir, orphan.supervisor, orphan.pids)


def recent(path: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the reports of the last `seconds`. Skip incomplete lines that a crash left."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    for line in lines:
        with contextlib.suppress(ValueError):
            report_ = json.loads(line)
            if report_["at"] > time.time() - seconds:
                yield report_


def old_runs(runs: Path, is_over: Callable[[Key], bool], before: float = math.inf) -> Iterator[Path]:
    """Yield the folders of attempts that are over and have no living process, untouched since `before`."""
    for run_dir in sorted(runs.glob("*/")):
        key = key_of(run_dir.name) if run_dir.stat().st_mtime < before else None
        if key is not None and is_over(key) and not _lives(run_dir):
            yield run_dir


def discard_run(run_dir: Path) -> None:
    """Remove a folder unless its run lives; a partly removed folder is found again."""
    if not _lives(run_dir):
        shutil.rmtree(run_dir)


def _lives(run_dir: Path) -> bool:
    claim = Claim.read(run_dir)
    return claim is not None and claim.alive
