"""How a tree ends early: one finalize, whatever asks for it, and the operator's kill (rulings G1, G2)."""

from workflows.contract.models import Action, FailurePolicy
from workflows.policy.bounds import Refusal
from workflows.policy.failure import policy_of
from workflows.tree import rounds
from workflows.tree.commands import CancelJob, CancelTimer, CloseTree
from workflows.tree.jobs import JobState, TaskState
from workflows.tree.pauses import RoundEnd
from workflows.tree.payloads import Data
from workflows.tree.records import RETRY, JobRecord
from workflows.tree.state import FAILING, Batch, Coordinator, Finalize, Leg, Phase, TreeState
from workflows.tree.step import Step


def ending(step: Step) -> bool:
    """The finalize is asked for: nothing new starts, and failures have no policy any more."""
    return step.state.finalize is not None


def tripped(step: Step, refusal: Refusal, job_id: str) -> None:
    """A bound said no: its event, and the tree's one finalize. Others run to their end, nothing new starts.

    A blocked task has no continuation (ruling D4), so there the refusal is all.
    """
    step.refused(refusal, job_id)
    if not step.state.blocked:
        request(step, refusal.kind, refusal.message)


def request(step: Step, kind: str, reason: str, waiting_become: JobState = JobState.SKIPPED) -> None:
    """The first reason stands (ruling G1); nobody is waited for any more (ruling F9)."""
    if step.state.finalize is None:
        step.state.finalize = Finalize(kind=kind, reason=reason)
    rounds.close_all(step, RoundEnd.KILLED if step.state.killed_by else RoundEnd.OVERTAKEN, reason)
    for chain in step.state.coordinators.values():
        if chain.batch is not None:
            stop_waiting(step, chain.batch, waiting_become, f"the tree is being finalized: {reason}")


def stop_waiting(step: Step, batch: Batch, become: JobState, reason: str) -> None:
    """Legs that have not started never will, and a pending retry is given up."""
    for leg in batch.legs.values():
        if leg.timer is not None:
            step.command(CancelTimer(key=leg.timer))
            leg.timer, leg.state = None, JobState.QUEUED
        if leg.state is JobState.QUEUED and not leg.twin:
            end_unstarted(step, leg, become, reason)
            if batch.stopped and leg.state in FAILING and policy_of(leg) is FailurePolicy.BLOCK_PARENT:
                batch.blocked_by.append(leg.id)


def end_unstarted(step: Step, leg: Leg, become: JobState, reason: str) -> None:
    """A leg that never ran, and why; one that was to run again keeps the failure it had."""
    leg.state, leg.reason = (leg.failed_as, leg.reason) if leg.failed_as else (become, reason)
    step.change(leg.job_id, state=leg.state, reason=leg.reason, next="", ended_at=step.now)


def kill(step: Step, actor: str, *, immediate: bool) -> None:
    """Twice is one kill; a later `--now` still cancels what runs (ruling G2)."""
    state = step.state
    if state.closed and not state.blocked:
        return
    if state.killed_by is None:
        state.killed_by = actor
        reason = f"killed by {actor}"
        waiting = [leg.job_id for leg in state.legs() if leg.state is JobState.QUEUED and not leg.twin]
        data: Data = {"actor": actor, "immediate": immediate, "cancelled": waiting, "running": state.running}
        step.event("delegation_killed", state.root_id, f"the tree was {reason}", data)
        if not state.started:
            _cancel_unstarted(step, reason)
            return
        request(step, "delegation_killed", reason, JobState.CANCELLED)
        if state.closed_at is not None:
            state.exclude(state.closed_at)
            state.closed, state.closed_at = False, None
            dismiss(step)
    if immediate:
        for job_id in state.running:
            step.command(CancelJob(job_id=job_id))


def dismiss(step: Step) -> None:
    """The end of a blocked task by an operator's kill: no continuation would come, so no finalize does (ruling G2)."""
    if step.state.finalize is not None:
        step.state.finalize.done = True
    step.task(TaskState.CANCELLED, f"killed by {step.state.killed_by}", "")


def _cancel_unstarted(step: Step, reason: str) -> None:
    step.state.started = True
    step.change(step.state.root_id, state=JobState.CANCELLED, reason=reason, next="", ended_at=step.now)
    step.state.root.phase = Phase.OVER
    step.task(TaskState.CANCELLED, reason, "")


def root_over(step: Step, chain: Coordinator, job_state: JobState, reason: str) -> None:
    """The root's chain has come to its end: the task takes its outcome (ruling E7)."""
    finalize, last = step.state.finalize, step.state.jobs[chain.job_id]
    if finalize is not None:
        if _speaks_for_the_tree(step, last):
            finalize.done = True
            step.task(TaskState.CANCELLED, finalize.reason, "")
    elif job_state is JobState.SUCCEEDED:
        step.task(TaskState.DONE, f"the coordinator decided {last.decision or 'nothing more to do'}", "")
    else:
        block_task(step, f"the coordinator's job {chain.job_id} ended {job_state}: {reason}", chain.job_id)


def _speaks_for_the_tree(step: Step, last: JobRecord) -> bool:
    """A killed root that just came to its own end, or has nothing to sum up, needs no finalize run."""
    nothing_done = not any(job.delegation_id for job in step.state.jobs.values())
    return step.state.killed_by is not None and (last.decision is not None or nothing_done)


def finalized(step: Step, job_state: JobState, reason: str) -> None:
    """The finalize continuation is over, and with it the tree: its decision is the outcome (ruling G1)."""
    finalize = step.state.finalize
    if finalize is None:
        return
    finalize.done = True
    if step.state.killed_by is not None:
        step.task(TaskState.CANCELLED, finalize.reason, "")
    elif job_state is JobState.SUCCEEDED:
        step.task(TaskState.DONE, f"finalized: {finalize.reason}", "")
    else:
        text = f"finalized ({finalize.reason}); the finalize job ended {job_state}: {reason}"
        step.task(TaskState.BLOCKED, text, "a finalized tree takes no retry: start a new one")


def block_task(step: Step, reason: str, job_id: str) -> None:
    """Blocked at once, with the command that re-opens it; no coordinator below asks or starts any more (B3, D4)."""
    step.task(TaskState.BLOCKED, reason, f"{RETRY} {job_id}")
    step.event("task_blocked", job_id, reason, {"retry": job_id})
    for chain in step.state.coordinators.values():
        rounds.overtake(step, chain, reason)
        if chain.batch is not None:
            stop_waiting(step, chain.batch, JobState.SKIPPED, f"the task is blocked: {reason}")


def close(step: Step) -> None:
    """Nothing runs and nothing will, unless an operator re-opens a blocked tree from this state (ruling D4)."""
    state = step.state
    finalize = state.finalize
    last = state.jobs[finalize.job_id if finalize and finalize.job_id else state.root.job_id]
    state.closed, state.closed_at = True, state.now
    step.command(
        CloseTree(
            root_job_id=state.root_id,
            task_state=state.task.state,
            decision=last.decision,
            summary=last.summary,
            reason=state.task.reason,
            jobs=len(state.jobs),
            usage=state.usage,
            cost_usd=state.cost_usd,
            branches=_branches(state),
        )
    )


def _branches(state: TreeState) -> tuple[str, ...]:
    """The work of jobs that succeeded; a job that needed others' work has it on its own branch too."""
    worked = (job for job in state.jobs.values() if job.state is JobState.SUCCEEDED and job.action is Action.IMPLEMENT)
    return tuple(job.branch for job in worked if job.branch)
