"""Times of jobs as pages show them, and the use of each of a tree's bounds."""

import time
from collections import Counter
from dataclasses import dataclass

from bridge.http.dashboard.frame.render import count, money, short_count, span
from bridge.operations.jobs.jobs import Tree
from workflows.model.rows import JobRecord


@dataclass(frozen=True)
class BoundUse:
    """The use of one bound: the amount used, the limit (0: unlimited), and both in words."""

    name: str
    explained: str
    used: float
    bound: float
    says: str
    left: str


def seconds_of(job: JobRecord) -> float | None:
    """Return the run time of a job; None before its start."""
    return None if job.started_at is None else max(0.0, (job.ended_at or time.time()) - job.started_at)


def spend_in_sum(tree: Tree) -> str:
    """Return what a tree has used: "3 jobs, 41k tokens, $0.62 (limit $5.00), 12 min at work, 3 h waiting for you"."""
    used, limit = tree.spent, tree.bounds.max_delegation_cost_usd
    jobs = f"{len(tree.jobs)} job{'' if len(tree.jobs) == 1 else 's'}"
    dollars = money(used.cost_usd, assumed=used.price_assumed) + (f" (limit {money(limit)})" if limit else "")
    spent = f"{short_count(used.tokens)} tokens, {dollars}" if used.tokens else "tokens and cost not measured"
    waited = tree.task.waited_seconds(time.time())
    for_you = (f"{span(waited)} waiting for you",) if waited >= 1 else ()
    return ", ".join((jobs, spent, f"{span(used.elapsed_seconds)} at work", *for_you))


def spend(tree: Tree) -> tuple[BoundUse, ...]:
    """Return the use of every hard bound of the tree (rulings C1 to C4)."""
    bounds, used = tree.bounds, tree.spent
    depth = max((job.delegation_depth for job in tree.jobs), default=0)
    batches = Counter(job.parent_job_id for job in tree.jobs if job.delegation_id)
    width = max(batches.values(), default=0)
    return (
        _whole(
            "Jobs and retries",
            "Jobs of parts, their retries, and further jobs of leads; not the first job and the last",
            used.jobs,
            bounds.max_delegation_total_jobs,
        ),
        _time(used.elapsed_seconds, bounds.max_delegation_wall_clock_seconds),
        _whole("Tokens", "Read and written by all its agents", used.tokens, bounds.max_delegation_token_budget),
        _dollars(used.cost_usd, bounds.max_delegation_cost_usd, assumed=used.price_assumed),
        _most("Depth", "How deep agents hand on to further agents", depth, bounds.max_delegation_depth),
        _most("Width", "Parts of the widest result, and how many one may have", width, bounds.max_delegation_width),
    )


def _whole(name: str, explained: str, used: int, bound: int) -> BoundUse:
    return BoundUse(
        name, explained, used, bound, *_words(count(used), count(bound), count(max(0, bound - used)), bound)
    )


def _most(name: str, explained: str, used: int, bound: int) -> BoundUse:
    """Return the use of a limit of each result, of which nothing is left or used up."""
    return BoundUse(name, explained, used, bound, f"{used} (limit {bound})", "")


def _time(used: float, bound: float) -> BoundUse:
    words = _words(span(used), span(bound), span(max(0.0, bound - used)), bound)
    return BoundUse("Time", "Without the time it waited for people", used, bound, *words)


def _dollars(used: float, bound: float, *, assumed: bool) -> BoundUse:
    amount = money(used, assumed=assumed)
    left = money(max(0.0, bound - used), assumed=assumed)
    return BoundUse("Dollars", "By the price table", used, bound, *_words(amount, money(bound), left, bound))


def _words(used: str, bound: str, left: str, limit: float) -> tuple[str, str]:
    return (f"{used} (limit {bound})", f"{left} left") if limit else (used, "no limit")
