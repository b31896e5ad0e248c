"""A tree whose workflow was ended from outside goes on: what ran then runs again, all else stands (ruling G2)."""

from workflows.policy import bounds
from workflows.tree import continuing, ending, finalizing
from workflows.tree.jobs import JobOutcome, JobState
from workflows.tree.state import TreeState
from workflows.tree.step import Step


def refuse_taking_up(state: TreeState) -> str | None:
    """Why this tree cannot go on; None when it can. A finalize is outside every count (ruling C4)."""
    final = state.finalize.job_id if state.finalize else None
    again = len([job_id for job_id in state.in_flight if job_id != final])
    what = f"running {again} interrupted job(s) again"
    refusal = bounds.jobs(state.input.settings.bounds, state.ledger(), again, what) if again else None
    return refusal.message if refusal else None


def take_up(step: Step, actor: str, why: str, since: float) -> None:
    """Nobody worked on it since then, and nobody could answer either."""
    state, gap = step.state, max(0.0, step.now - since)
    if not state.paused:
        state.exclude(since)
    for rounds in state.rounds.values():
        for each in rounds:
            if each.open:
                each.expires_at, each.armed_at = each.expires_at + gap, each.armed_at + gap
    data: dict[str, str | int | float | bool | list[str] | None] = {"actor": actor, "again": state.in_flight}
    step.event("tree_taken_up", state.root_id, f"{actor} has it go on after its workflow was lost: {why}", data)
    for leg in state.legs():
        if leg.timer is not None:
            leg.timer, leg.state = None, JobState.QUEUED
    for job_id in state.in_flight:
        _again(step, job_id, actor, why)


def _again(step: Step, job_id: str, actor: str, why: str) -> None:
    """As a new attempt; in a batch that is stopped, or a tree that is being finalized, it is over instead."""
    state, job = step.state, step.state.jobs[job_id]
    found, ends = state.find_leg(job_id), finalizing.ending(step)
    is_final = state.finalize is not None and state.finalize.job_id == job_id
    stopped = found is not None and found[0].batch is not None and bool(found[0].batch.stopped)
    if not is_final and (ends or stopped or (found is None and state.paused)):
        ending.job_ended(
            step, JobOutcome(job_id=job_id, attempt=job.attempt, state=JobState.CANCELLED, reason=why[:300])
        )
        return
    state.offers.pop(job_id, None)  # whether its host had begun it is not known any more
    step.change(job_id, state=JobState.CANCELLED, reason=why, ended_at=step.now)
    if found is None:
        continuing.run_again(step, state.coordinators[state.homes[job_id]], actor)
        state.spent_jobs -= is_final  # outside every count (ruling C4)
        return
    leg = found[1]
    state.spent_jobs += 1
    leg.attempt, leg.state = leg.attempt + 1, JobState.QUEUED
    reason = f"run again by {actor}; attempt {job.attempt} was interrupted: {why}"
    step.change(job_id, state=JobState.QUEUED, attempt=leg.attempt, reason=reason, next="", ended_at=None)
