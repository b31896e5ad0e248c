"""Begun jobs whose host was lost: a new attempt elsewhere, at no cost to retries, budgets and streaks (ruling Q5)."""

from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState
from workflows.tree import continuation, finalize, job_offers
from workflows.tree.step import Step


def begins_elsewhere(step: Step, outcome: JobOutcome) -> bool:
    """Run the job as a new attempt. Return False where nothing more begins: then the outcome is the job's end.

    A finalize always runs again, since the tree cannot end without it (ruling G1).
    """
    state, job_id = step.state, outcome.job_id
    parent, leg = state.find_leg(job_id) or (None, None)
    is_final = state.finalize is not None and state.finalize.job_id == job_id
    stopped = parent is not None and parent.batch is not None and bool(parent.batch.stopped)
    if not is_final and (stopped or finalize.ending(step)):
        return False
    job_offers.told_moved(step, outcome)
    note = f"attempt {outcome.attempt} was interrupted: {outcome.reason}"
    if leg is None:
        chain = state.coordinators[state.homes[job_id]]
        continuation.another_attempt(step, chain, note, outcome.attempt)
        if state.paused or state.frozen:
            job_offers.take_back(step, [job_id])
        return True
    branch = leg.own_branch
    leg.ended(JobState.CANCELLED, outcome.reason)
    step.leg_again(leg, note, counted=False)
    leg.moved_from, leg.own_branch = outcome.attempt, branch
    return True
