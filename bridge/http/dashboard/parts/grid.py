"""The jobs of a tree as rows of a tree grid, and the use of each of its bounds."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bridge.http.dashboard.frame.render import count, money, span
from bridge.operations.jobs.jobs import Tree
from workflows.model.rows import JobRecord
from workflows.model.states import Continuation
from workflows.policy.decisions import decided


@dataclass(frozen=True)
class Row:
    """A job, and its position among its siblings."""

    job: JobRecord
    level: int
    place: int
    of: int
    parent: bool
    """True if other rows are below it."""

    @property
    def name(self) -> str:
        return name_of(self.job)

    @property
    def seconds(self) -> float | None:
        return seconds_of(self.job)

    @property
    def decision(self) -> str:
        return decided(self.job.state, self.job.decision)


@dataclass(frozen=True)
class Used:
    """The use of one bound: the amount used, the limit (0: unlimited), and both in words."""

    name: str
    explained: str
    used: float
    bound: float
    says: str
    left: str


def rows(jobs: Sequence[JobRecord]) -> Iterator[Row]:
    """Yield each job below its parent, in dispatch order."""
    below: dict[str | None, list[JobRecord]] = {}
    known = {job.job_id for job in jobs}
    for job in jobs:
        below.setdefault(job.parent_job_id if job.parent_job_id in known else None, []).append(job)
    waiting = [(1, at, job) for at, job in reversed([*enumerate(below.get(None, ()), 1)])]
    while waiting:
        level, place, job = waiting.pop()
        mine = below.get(job.job_id, [])
        siblings = below[job.parent_job_id if job.parent_job_id in known else None]
        yield Row(job, level, place, len(siblings), bool(mine))
        waiting += [(level + 1, at, each) for at, each in reversed([*enumerate(mine, 1)])]


def name_of(job: JobRecord) -> str:
    """Return a job's name in the grid: the leg's, or for continuations the reason."""
    if job.delegation_id:
        return job.delegation_id
    match job.continuation:
        case Continuation.NONE:
            return "root"
        case Continuation.NORMAL:
            return "continuation"
        case Continuation.FINALIZE:
            return "summing up"
        case _:
            return f"{job.continuation} continuation"


def seconds_of(job: JobRecord) -> float | None:
    """Return the run time of a job; None before its start."""
    return None if job.started_at is None else max(0.0, (job.ended_at or time.time()) - job.started_at)


def spend(tree: Tree) -> tuple[Used, ...]:
    """Return the use of every hard bound of the tree (rulings C1 to C4)."""
    bounds, used = tree.bounds, tree.spent
    depth = max((job.delegation_depth for job in tree.jobs), default=0)
    batches = Counter(job.parent_job_id for job in tree.jobs if job.delegation_id)
    width = max(batches.values(), default=0)
    return (
        _whole("Jobs", "Runs of jobs: legs, retries, continuations", used.jobs, bounds.max_delegation_total_jobs),
        _time(used.elapsed_seconds, bounds.max_delegation_wall_clock_seconds),
        _whole("Tokens", "Read and written by all its agents", used.tokens, bounds.max_delegation_token_budget),
        _dollars(used.cost_usd, bounds.max_delegation_cost_usd, assumed=used.price_assumed),
        _whole("Levels", "How deep agents hand on to further agents", depth, bounds.max_delegation_depth),
        _whole("Width", "Legs of the widest result, and how many one may have", width, bounds.max_delegation_width),
    )


def _whole(name: str, explained: str, used: int, bound: int) -> Used:
    return Used(name, explained, used, bound, *_words(count(used), count(bound), count(max(0, bound - used)), bound))


def _time(used: float, bound: float) -> Used:
    said = _words(span(used), span(bound), span(max(0.0, bound - used)), bound)
    return Used("Time", "Without the time it waited for people", used, bound, *said)


def _dollars(used: float, bound: float, *, assumed: bool) -> Used:
    said = money(used, assumed=assumed)
    left = money(max(0.0, bound - used), assumed=assumed)
    return Used("Dollars", "By the price table", used, bound, *_words(said, money(bound), left, bound))


def _words(used: str, bound: str, left: str, limit: float) -> tuple[str, str]:
    return (f"{used} of {bound}", f"{left} left") if limit else (used, "no bound is set")
