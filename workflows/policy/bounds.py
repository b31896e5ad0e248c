"""The hard bounds: depth, width, number of jobs, time, tokens and cost (rulings C1 to C4)."""

from collections.abc import Iterator, Sequence

from workflows.contract.size_limits import COUNTS
from workflows.model.briefs import BudgetLine
from workflows.model.event_kinds import Data, EventKind
from workflows.model.refusals import Refusal
from workflows.model.rows import JobRecord, TaskRecord
from workflows.model.settings import Bounds
from workflows.model.spend import Ledger
from workflows.model.states import Continuation
from workflows.policy.prices import dollars

WARNING_SHARE = 0.8


def ledger_of(task: TaskRecord, jobs: Sequence[JobRecord], now: float) -> Ledger:
    """Return a tree's use of its budgets, computed from its rows. The root's first attempt, the finalize and moved
    attempts are free (C3, C4, Q5).
    """
    counted = sum(job.attempt - job.moves for job in jobs if job.continuation is not Continuation.FINALIZE)
    return Ledger(
        jobs=max(0, counted - 1),
        elapsed_seconds=task.elapsed_seconds(now),
        tokens=sum(job.usage.total for job in jobs),
        cost_usd=sum(job.cost_usd for job in jobs),
        price_assumed=any(job.price_assumed for job in jobs),
    )


def admit(bounds: Bounds, ledger: Ledger, *, depth: int, width: int, new_jobs: int) -> Refusal | None:
    """Return a refusal for the first bound that a new set exceeds, in the order of ruling C1; None if the set may be
    dispatched.
    """
    most, deepest = widest(bounds), bounds.max_delegation_depth
    if width > most:
        message = f"{width} delegations in one result exceed the width cap of {most}"
        return Refusal(EventKind.DELEGATION_WIDTH_EXCEEDED, message, {"width": width, "cap": most})
    if depth >= deepest:
        message = f"a job at depth {depth} may not delegate: the depth cap is {deepest}"
        return Refusal(EventKind.DELEGATION_DEPTH_EXCEEDED, message, {"depth": depth, "cap": deepest})
    batch = f"delegation batch of {new_jobs} new job(s)"
    return jobs(bounds, ledger, new_jobs, batch) or exhausted_budget(bounds, ledger)


def jobs(bounds: Bounds, ledger: Ledger, new: int, what: str) -> Refusal | None:
    """Refuse jobs beyond the tree's job budget; exactly the budget is admitted (ruling C3)."""
    cap = bounds.max_delegation_total_jobs
    if ledger.jobs + new <= cap:
        return None
    message = f"{what} would exceed the per-root job budget of {cap}"
    return Refusal(EventKind.DELEGATION_BUDGET_EXCEEDED, message, {"new_jobs": new, "jobs": ledger.jobs, "cap": cap})


def exhausted_budget(bounds: Bounds, ledger: Ledger) -> Refusal | None:
    """Return a refusal for the first budget that is used up. It is checked on every fan-out and before every deferred
    start (ruling C4).
    """
    clock, tokens, budget = (
        bounds.max_delegation_wall_clock_seconds,
        bounds.max_delegation_token_budget,
        bounds.max_delegation_cost_usd,
    )
    if ledger.elapsed_seconds > clock:
        message = f"the task has run {ledger.elapsed_seconds:.0f} s of its {clock:.0f} s"
        return Refusal(
            EventKind.DELEGATION_WALLTIME_EXCEEDED, message, {"elapsed": ledger.elapsed_seconds, "budget": clock}
        )
    if tokens and ledger.tokens >= tokens:
        message = f"the task has used {ledger.tokens} of its {tokens} tokens"
        return Refusal(EventKind.DELEGATION_COST_EXCEEDED, message, {"tokens": ledger.tokens, "budget": tokens})
    if budget and ledger.cost_usd >= budget:
        message = f"the task has cost {dollars(ledger.cost_usd, assumed=ledger.price_assumed)} of its ${budget:.2f}"
        data: Data = {"cost_usd": ledger.cost_usd, "budget": budget, "price_assumed": ledger.price_assumed}
        return Refusal(EventKind.DELEGATION_COST_USD_EXCEEDED, message, data)
    return None


def widest(bounds: Bounds) -> int:
    """Return the most delegations that one result may have."""
    return min(bounds.max_delegation_width, COUNTS["delegations"])


def budget_line(bounds: Bounds, ledger: Ledger, depth: int) -> BudgetLine:
    """Return the use of each bound for the prompt of a coordinator at this depth (rulings C4, E6)."""
    return BudgetLine(
        jobs=ledger.jobs,
        jobs_cap=bounds.max_delegation_total_jobs,
        depth=min(depth, bounds.max_delegation_depth),
        depth_cap=bounds.max_delegation_depth,
        elapsed_seconds=ledger.elapsed_seconds,
        wall_clock_seconds=bounds.max_delegation_wall_clock_seconds,
        tokens=ledger.tokens,
        token_budget=bounds.max_delegation_token_budget,
        cost_usd=ledger.cost_usd,
        cost_budget_usd=bounds.max_delegation_cost_usd,
        price_assumed=ledger.price_assumed,
        warned=tuple(name for name, _, _ in near(bounds, ledger)),
        width=widest(bounds),
    )


def near(bounds: Bounds, ledger: Ledger) -> Iterator[tuple[str, float, float]]:
    """Yield every budget that is used to 80 % or more: its name, the amount used, and the limit (ruling C4)."""
    used: dict[str, tuple[float, float]] = {
        "jobs": (ledger.jobs, bounds.max_delegation_total_jobs),
        "wall_clock": (ledger.elapsed_seconds, bounds.max_delegation_wall_clock_seconds),
        "tokens": (ledger.tokens, bounds.max_delegation_token_budget),
        "cost_usd": (ledger.cost_usd, bounds.max_delegation_cost_usd),
    }
    for name, (amount, budget) in used.items():
        if budget and amount >= WARNING_SHARE * budget:
            yield name, amount, budget
