"""Jobs that continue on another host. The move does not count as a retry, against budgets, or in streaks (ruling
Q5).
"""

from workflows.model.event_kinds import Data, EventKind
from workflows.model.jobs import JobOutcome
from workflows.model.states import JobState
from workflows.policy.moving import moves_as_it_is
from workflows.tree import continuation, finalize, job_offers
from workflows.tree.step import Step


def offer_again(step: Step, outcome: JobOutcome) -> bool:
    """Offer an attempt to another host if the first host had not begun it; a leg is offered with its batch. Return
    False if the outcome is not of such an attempt.
    """
    offer = step.state.offers.get(outcome.job_id)
    if not moves_as_it_is(outcome) or offer is None or offer.attempt != outcome.attempt or offer.taken_back:
        return False
    del step.state.offers[outcome.job_id]
    _tell(step, outcome)
    if offer.run is not None:
        job_offers.offer_coordinator(step, offer.run)
    return True


def begin_again(step: Step, outcome: JobOutcome) -> bool:
    """Run a begun job that moves as a new attempt. Return False if the tree or the batch starts nothing more: then the
    outcome ends the job.

    A finalize always runs again, since the tree cannot end without it (ruling G1).
    """
    state, job_id = step.state, outcome.job_id
    parent, leg = state.find_leg(job_id) or (None, None)
    is_final = state.finalize is not None and state.finalize.job_id == job_id
    stopped = parent is not None and parent.batch is not None and bool(parent.batch.stopped)
    if not outcome.moved or (not is_final and (stopped or finalize.ending(step))):
        return False
    _tell(step, outcome)
    note = f"attempt {outcome.attempt} was interrupted: {outcome.reason}"
    if leg is None:
        chain = state.coordinators[state.homes[job_id]]
        continuation.another_attempt(step, chain, note, outcome.attempt)
        if state.is_paused or state.is_frozen:
            job_offers.take_back(step, [job_id])
        return True
    branch = leg.own_branch
    leg.end(JobState.CANCELLED, outcome.reason)
    step.leg_again(leg, note, counted=False)
    leg.moved_from, leg.own_branch = outcome.attempt, branch
    return True


def _tell(step: Step, outcome: JobOutcome) -> None:
    begun = not moves_as_it_is(outcome)
    data: Data = {"attempt": outcome.attempt, "begun": begun, "reason": outcome.reason}
    how = "begins again on another host" if begun else "is offered to another host"
    step.event(EventKind.JOB_MOVED, outcome.job_id, f"{outcome.job_id} {how}: {outcome.reason}", data)
