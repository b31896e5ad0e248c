"""Stopped batches and blocked tasks, and the legs that never run because of them (rulings B3, D4, G2)."""

from workflows.model.event_kinds import EventKind
from workflows.model.rows import RETRY
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.policy.failure_policies import stops_batch
from workflows.tree import job_offers, pause_rounds
from workflows.tree.chains import Batch, Coordinator, Leg
from workflows.tree.commands import CancelTimer
from workflows.tree.state import TreeMemory
from workflows.tree.step import Step


def stop_batch(step: Step, chain: Coordinator, batch: Batch, reason: str, job_id: str) -> None:
    """Stop a batch, keeping the first reason. The root's batch blocks the task at once; another batch blocks its leg
    once it is settled.
    """
    batch.stop(reason)
    pause_rounds.overtake(step, chain, reason)
    job_offers.take_back(step, {leg.job_id for leg in batch.legs.values()})
    stop_waiting(step, batch)
    if step.state.leg_of(chain) is None and not step.state.is_blocked:
        block_task(step, reason, job_id)


def culprit(state: TreeMemory, leg: Leg) -> str:
    """Return the job to retry for a blocked leg: the job that blocked its chain, at any depth, rather than the whole
    chain.
    """
    chain = state.coordinators.get(leg.job_id)
    if chain is None or chain.batch is None or not chain.batch.blocked_by:
        return leg.job_id
    return culprit(state, chain.batch.legs[chain.batch.blocked_by[0]])


def block_task(step: Step, reason: str, job_id: str) -> None:
    """Block the task, and show the command that re-opens it. Until then no coordinator asks or starts anything (B3,
    D4).
    """
    job_offers.take_back(step)
    step.task(TaskState.BLOCKED, reason, way_back(step, job_id), WaitsFor.RETRY)
    step.event(EventKind.TASK_BLOCKED, job_id, reason, {"retry": job_id})
    for chain in step.state.coordinators.values():
        pause_rounds.overtake(step, chain, reason)
        if chain.batch is not None:
            stop_waiting(step, chain.batch)


def way_back(step: Step, job_id: str) -> str:
    """Return the command that retries the job, after any step without which the retry would fail (ruling B3)."""
    first = step.state.first.get(job_id)
    return f"{first}; then: {RETRY} {job_id}" if first else f"{RETRY} {job_id}"


def stop_waiting(step: Step, batch: Batch) -> None:
    """End the legs that are not offered, and cancel pending retries, if the batch, the task or the tree starts nothing
    more.
    """
    if not (batch.stopped or step.state.finalize is not None or step.state.is_blocked):
        return
    become, reason = end_without_run(step, batch)
    for leg in batch.legs.values():
        if leg.timer is not None:
            step.command(CancelTimer(key=leg.timer))
            leg.timer = None
        if leg.is_unstarted and leg.job_id not in step.state.offers:
            if step.state.finalize is not None:
                step.state.finalize.unrun = True
            end_waiting_leg(step, leg, become, reason)
            if batch.stopped and leg.failing and stops_batch(leg.policy):
                batch.blocked_by.append(leg.id)


def end_without_run(step: Step, batch: Batch | None = None) -> tuple[JobState, str]:
    """Return the end state and reason of a job that never ran: cancelled by a kill, otherwise skipped (ruling G2)."""
    finalize = step.state.finalize
    if finalize is not None:
        become = JobState.CANCELLED if step.state.killed_by else JobState.SKIPPED
        return become, f"the task is being finalized: {finalize.reason}"
    if batch is not None and batch.stopped:
        return JobState.SKIPPED, f"the batch is blocked: {batch.stopped}"
    return JobState.SKIPPED, f"the task is blocked: {step.state.task.reason}"


def end_waiting_leg(step: Step, leg: Leg, become: JobState, reason: str) -> None:
    """End a leg that will not run. A leg that waited for a retry keeps its failure."""
    leg.end(*((leg.failed_as, leg.reason) if leg.failed_as else (become, reason)))
    step.change(leg.job_id, state=leg.state, reason=leg.reason, next="", ended_at=step.now)
