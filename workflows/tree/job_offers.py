"""Offers of jobs to hosts, from dispatch until the job begins or is taken back (ruling B5).

An offered job is `queued`. One claim in the store decides whether the host begins it or the tree takes it back.
"""

from collections.abc import Collection

from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.orders import StopReason
from workflows.model.states import Continuation, JobState
from workflows.text.markdown import summary_line
from workflows.tree.commands import CancelJob, RunChild, RunCoordinator, TakeBack
from workflows.tree.events import JobBegun, JobHeldUp
from workflows.tree.state import Offer
from workflows.tree.step import Step

WAITS = "waits for its host to start it"


def offer_leg(step: Step, run: JobRun) -> None:
    """Offer a leg's attempt to its host."""
    run = _number(step, run)
    step.state.offers[run.job_id] = Offer(number=run.offer, attempt=run.attempt)
    step.command(RunChild(run=run, summary=_summary(step, run)))


def offer_coordinator(step: Step, run: JobRun) -> None:
    """Offer a coordinator's attempt to its host: the root's first start, or a continuation."""
    run = _number(step, run)
    step.state.held_back.pop(run.job_id, None)
    step.state.offers[run.job_id] = Offer(number=run.offer, attempt=run.attempt, run=run)
    step.command(RunCoordinator(run=run, summary=_summary(step, run)))


def _summary(step: Step, run: JobRun) -> str:
    """Return an attempt's path in the tree, its worker and action, and the tree's title."""
    work = f"{run.assignment.worker.name} {run.assignment.action}"
    again = f"attempt {run.attempt}" if run.attempt > 1 else ""
    why = "" if run.continuation is Continuation.NONE else step.state.jobs[run.job_id].name
    work = ", ".join(part for part in (work, why, again) if part)
    return summary_line(step.state.path_of(run.job_id), work, step.state.input.title)


def _number(step: Step, run: JobRun) -> JobRun:
    step.state.last_offer += 1
    step.change(run.job_id, reason=WAITS, next="", ended_at=None)
    return run.model_copy(update={"offer": step.state.last_offer})


def begin_offer(step: Step, event: JobBegun) -> None:
    """Mark a job as begun; ignore reports about an earlier offer."""
    offer = step.state.offers.get(event.job_id)
    if offer is not None and offer.number == event.offer:
        _begin(step, event.job_id, event.at)


def _begin(step: Step, job_id: str, at: float) -> None:
    del step.state.offers[job_id]
    started = max(at, step.state.jobs[job_id].queued_at)
    step.change(job_id, state=JobState.RUNNING, started_at=started, reason="", next="")
    if pair := step.state.find_leg(job_id):
        pair[1].begin()


def end_offer(step: Step, outcome: JobOutcome) -> bool:
    """Return whether the outcome ends an attempt in flight: one that ran or failed to start, and was not taken back."""
    offer, job = step.state.offers.get(outcome.job_id), step.state.jobs.get(outcome.job_id)
    if offer is None or offer.attempt != outcome.attempt:
        return job is not None and job.state is JobState.RUNNING and job.attempt == outcome.attempt
    if outcome.begun_at is not None or outcome.decision is not None:
        _begin(step, outcome.job_id, step.now if outcome.begun_at is None else outcome.begun_at)
        return True
    if not offer.taken_back or outcome.state is not JobState.CANCELLED or outcome.job_id == _final(step):
        del step.state.offers[outcome.job_id]
        return True
    _return_to_tree(step, outcome.job_id)
    return False


def _return_to_tree(step: Step, job_id: str) -> None:
    """Remove the offer of a job that was taken back before it began."""
    offer = step.state.offers.pop(job_id)
    if offer.run is not None:
        step.state.held_back[job_id] = offer.run
    step.change(job_id, reason="taken back before it began")
    message = f"{job_id} was taken back before it began"
    step.event(EventKind.JOB_TAKEN_BACK, job_id, message, {"attempt": offer.attempt})


def held_up(step: Step, event: JobHeldUp) -> None:
    """Write into the row of a running or offered attempt why it waits, and which command ends the wait (ruling B3)."""
    job, offer = step.state.jobs.get(event.job_id), step.state.offers.get(event.job_id)
    if event.offer:
        waits = offer is not None and offer.number == event.offer and not offer.taken_back
    else:
        waits = job is not None and job.state is JobState.RUNNING and job.attempt == event.attempt
    if waits:
        step.change(event.job_id, reason=event.reason, next=event.next)


def _final(step: Step) -> str | None:
    return step.state.finalize.job_id if step.state.finalize else None


def on_offer(step: Step) -> list[str]:
    """Return the offered jobs, without the finalize, which is never taken back."""
    return [job_id for job_id in step.state.offers if job_id != _final(step)]


def take_back(step: Step, jobs: Collection[str] | None = None) -> None:
    """Take back all offers, or those of the given jobs.

    Offers of the current step are simply withdrawn: no host can have begun them.
    """
    for job_id in on_offer(step):
        offer = step.state.offers[job_id]
        if offer.taken_back or not (jobs is None or job_id in jobs):
            continue
        if step.withdraw(job_id):
            _return_to_tree(step, job_id)
        else:
            offer.taken_back = True
            step.command(TakeBack(job_id=job_id, attempt=offer.attempt, offer=offer.number))


def stop_all(step: Step) -> None:
    """Cancel all begun jobs, and take back all offers (ruling G2)."""
    for offer in step.state.offers.values():
        offer.taken_back = True
    for job_id in step.state.in_flight:
        step.command(CancelJob(job_id=job_id, why=StopReason.KILLED))
