"""What a dead worker left running: reported first, killed second (spec: agent runs survive the worker)."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from activities.runs.processes import kill_all, marked, marks
from activities.runs.run import Claim, stop


@dataclass(frozen=True)
class Orphan:
    """A run that goes on although nobody waits for it, or what is left of one whose supervisor is dead."""

    run_dir: Path
    supervisor: int | None
    """None when it is dead."""
    pids: tuple[int, ...]


def find_orphans(runs: Path, wanted: Collection[str]) -> tuple[Orphan, ...]:
    """Everything of this home that runs and is not wanted, or that no supervisor looks after. Touches nothing.

    `wanted` are the marks, `<job>.<attempt>`, of the runs that somebody will attach to again.
    """
    pids: dict[str, list[int]] = {}
    for pid, mark in marks():
        pids.setdefault(mark, []).append(pid)
    claims = {path.parent: Claim.read(path.parent) for path in sorted(runs.glob("*/claim"))}
    found = []
    for run_dir, claim in claims.items():
        supervisor = claim.pid if claim is not None and claim.alive else None
        of_run = tuple(sorted(pids.get(run_dir.name, ())))
        if (supervisor is not None and run_dir.name not in wanted) or (supervisor is None and of_run):
            found.append(Orphan(run_dir, supervisor, of_run))
    return tuple(found)


async def kill_orphan(orphan: Orphan, grace: float = 10.0) -> int:
    """Stop the supervisor if there is one, then kill what carries the mark. Returns how many could not be killed."""
    if orphan.supervisor is not None:
        await stop(orphan.run_dir, grace)
    return kill_all(lambda: marked(orphan.run_dir.name))
