"""An operator runs a job again: the one way out of a blocked task (ruling D4).

A blocked tree closes: its workflow returns the state it ended with. The retry is an operation that starts the same
workflow id again from that state and feeds it `RetryRequested`; so a tree nobody comes back to holds nothing open.
"""

from workflows.policy import bounds
from workflows.policy.order import acting_deps
from workflows.tree import continuing, dispatch, round_view, rounds
from workflows.tree.jobs import JobState, TaskState
from workflows.tree.state import FAILING, Batch, Coordinator, Leg, Phase, TreeState
from workflows.tree.step import Step


def refuse_retry(state: TreeState, job_id: str) -> str | None:
    """Why this job cannot be run again now; None when it can. What an operation asks before it disturbs the tree."""
    job = state.jobs.get(job_id)
    if job is None:
        return f"there is no job {job_id} in tree {state.root_id}"
    if state.finalize is not None:
        return f"tree {state.root_id} is finalized ({state.finalize.reason}): start a new one"
    if state.task.state in {TaskState.DONE, TaskState.CANCELLED}:
        return f"task {state.task.task_id} is {state.task.state}"
    if state.paused:
        waiting = round_view.open_rounds(state)[0]
        return f"tree {state.root_id} is paused for a person and starts nothing: {waiting.commands[0]}"
    limits, used = state.input.settings.bounds, state.ledger()
    refusal = bounds.jobs(limits, used, 1, f"running {job_id} again") or bounds.exhausted(limits, used)
    if refusal is not None:
        return refusal.message
    found = state.find_leg(job_id)
    if found is None:
        return None if _is_ended_root(state, job_id) else f"job {job_id} is {job.state}; its batch is over"
    chain, leg = found
    if chain.batch is None or not _again(chain.batch, leg):
        return f"leg {leg.id} is {leg.state}: only a leg that failed, or ran in a blocked batch, is run again"
    if not _open(state, chain):
        return f"the batch of leg {leg.id} is over: its coordinator has gone on"
    return _held_back(state, chain.batch, leg)


def retry(step: Step, actor: str, job_id: str) -> None:
    """The leg, or the root's last job, runs again as a new attempt; everything above it is open again."""
    state = step.state
    if state.closed_at is not None:
        # Nobody worked on a closed tree.
        state.exclude(state.closed_at)
        state.closed_at = state.now
    why_not = refuse_retry(state, job_id)
    if why_not is not None:
        step.event("retry_refused", job_id, why_not, {"actor": actor})
        return
    state.closed, state.closed_at = False, None
    step.event("retry_requested", job_id, f"{actor} runs {job_id} again", {"actor": actor})
    found = state.find_leg(job_id)
    if found is None:
        step.task(TaskState.OPEN, f"{job_id} runs again by order of {actor}", "")
        continuing.run_again(step, state.root, actor)
        return
    chain, leg = found
    frozen = list(state.coordinators.values()) if state.blocked else []
    _requeue(step, leg, actor)
    opened = _reopen(step, chain, leg, actor)
    if not state.blocked:
        _unskip(step, [*opened, *(each.batch for each in frozen if each.batch)])
    for each in list(state.coordinators.values()):
        rounds.refresh(step, each)
    if not state.paused:
        dispatch.start(step, chain, leg)


def _is_ended_root(state: TreeState, job_id: str) -> bool:
    ended = state.root.phase is Phase.OVER and state.task.state is TaskState.BLOCKED
    return ended and job_id == state.root.job_id and state.jobs[job_id].state in FAILING


def _again(batch: Batch, leg: Leg) -> bool:
    """What failed; or, where a vote or quorum blocked the batch, any leg that ran."""
    by_rule = bool(batch.stopped) and not batch.blocked_by and leg.state is JobState.SUCCEEDED
    return leg.timer is None and bool(leg.outcome_job_id) and (leg.state in FAILING or by_rule)


def _held_back(state: TreeState, batch: Batch, leg: Leg) -> str | None:
    """What the run order says against it, an operator's order or not (rulings C7, I3)."""
    if leg.worktree in state.busy_worktrees:
        return f"worktree {leg.worktree} of leg {leg.id} is in use"
    lost = [dep for dep in acting_deps(batch.legs, leg) if dep.state is not JobState.SUCCEEDED]
    return f"its dependency {lost[0].id} is {lost[0].state}: service job retry {lost[0].job_id} first" if lost else None


def _open(state: TreeState, chain: Coordinator) -> bool:
    """Nobody has gone on without this chain: neither its own coordinator nor one above it."""
    if chain.phase not in {Phase.WAITING, Phase.BLOCKED} or chain.batch is None or chain.batch.continued:
        return False
    if chain.coordinator_id == state.root_id:
        return True
    found = state.leg_of(chain)
    return found is not None and found[1].timer is None and _open(state, found[0])


def _requeue(step: Step, leg: Leg, actor: str) -> None:
    step.state.coordinators.pop(leg.job_id, None)
    step.state.spent_jobs += 1
    leg.attempt, leg.escalated = leg.attempt + 1, False
    before, leg.state = leg.state, JobState.QUEUED
    step.again(leg.job_id, leg.attempt, f"run again by {actor}; attempt {leg.attempt - 1} ended {before}: {leg.reason}")


def _reopen(step: Step, chain: Coordinator, leg: Leg, actor: str) -> list[Batch]:
    """Takes the leg's block off its batch, and so on up; a batch that another leg blocks too stays blocked."""
    batch = chain.batch
    if batch is None:
        return []
    batch.blocked_by = [each for each in batch.blocked_by if each != leg.id]
    chain.phase = Phase.WAITING
    if not batch.blocked_by:
        batch.stopped = ""
    found = step.state.leg_of(chain)
    if found is None:
        if not batch.stopped and step.state.blocked:
            step.task(TaskState.OPEN, f"{leg.job_id} runs again by order of {actor}", "")
        return [batch]
    parent, above = found
    above.state, above.reason = JobState.RUNNING, ""
    return [batch, *_reopen(step, parent, above, actor)]


def _unskip(step: Step, batches: list[Batch]) -> None:
    """Legs that were skipped wait again; those that still cannot run are skipped again by the same rule as before."""
    going_on = (each for each in batches if not each.stopped and not each.continued)
    for leg in (leg for batch in going_on for leg in batch.legs.values() if not leg.twin):
        if leg.state is JobState.SKIPPED or (leg.state in FAILING and leg.failed_as):
            leg.state, leg.reason = JobState.QUEUED, ""
            step.change(leg.job_id, state=JobState.QUEUED, reason="waits again", next="", ended_at=None)
