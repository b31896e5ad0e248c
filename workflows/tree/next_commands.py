"""The commands that a blocked task and its jobs offer: only such as would be taken now (ruling B3)."""

from collections.abc import Iterator

from workflows.model.rows import DISMISS
from workflows.model.states import WaitsFor
from workflows.policy.synthesis import APPROVING
from workflows.tree import finalize, rounds
from workflows.tree.chains import Batch, Phase
from workflows.tree.job_end import culprit
from workflows.tree.retry import refuse_retry
from workflows.tree.state import TreeState
from workflows.tree.step import Step


def show(step: Step) -> None:
    """What each row says a person can type is what this state takes; nothing is offered that would be refused."""
    rounds.show_verbs(step)
    state = step.state
    _of_task(step)
    wanted = {job_id: (finalize.way_back(step, again), WaitsFor.RETRY) for job_id, again in _jobs(state)}
    if state.frozen:
        wanted |= dict.fromkeys(state.held_back, (state.task.next, state.task.waits_for))
    for job_id, job in list(state.jobs.items()):
        if job_id in wanted and (job.next, job.waits_for) != wanted[job_id]:
            text, waits_for = wanted[job_id]
            step.change(job_id, next=text, waits_for=waits_for)
        elif job_id not in wanted and job.waits_for is WaitsFor.RETRY:
            step.change(job_id, next=state.first.get(job_id, ""))


def _of_task(step: Step) -> None:
    state = step.state
    if state.frozen:
        retry = next((each for each in _ways_on(state) if refuse_retry(state, each) is None), None)
        if retry:
            step.next_step(finalize.way_back(step, retry), WaitsFor.RETRY)
        else:
            step.next_step(f"{DISMISS} {state.root_id}", WaitsFor.DISMISS)
    elif state.blocked and state.finalize is not None and not state.finalize.done:
        ends = f"is being ended: {state.finalize.reason}; {finalize.way_to_its_end(step)}"
        step.next_step(ends, WaitsFor.RUNS)


def _jobs(state: TreeState) -> Iterator[tuple[str, str]]:
    """Each job that blocks something, with the job that has to be run again for it."""
    if state.root.phase is Phase.OVER and state.frozen and refuse_retry(state, state.root.job_id) is None:
        yield state.root.job_id, state.root.job_id
    batches = (chain.batch for chain in state.coordinators.values() if chain.batch and chain.batch.stopped)
    for leg in (batch.legs[each] for batch in batches for each in batch.blocked_by):
        again = culprit(state, leg)
        if refuse_retry(state, again) is None:
            yield leg.job_id, again


def _ways_on(state: TreeState) -> Iterator[str]:
    """Jobs whose retry could open the task again, the likeliest first."""
    batch = state.root.batch
    if state.root.phase is Phase.OVER or batch is None:
        yield state.root.job_id
        return
    yield from (culprit(state, batch.legs[each]) for each in batch.blocked_by)
    if not batch.blocked_by:
        yield from _ballots(state, batch)
    yield from (leg.job_id for leg in state.legs() if leg.failing)


def _ballots(state: TreeState, batch: Batch) -> Iterator[str]:
    """Where a vote or a quorum blocked: who did not approve, then everybody who ran (ruling E2)."""
    ran = [state.jobs[leg.outcome_job_id] for leg in batch.legs.values() if leg.outcome_job_id and not leg.twin]
    legs = [leg.job_id for leg in batch.legs.values() if leg.outcome_job_id and not leg.twin]
    against = [job_id for job_id, job in zip(legs, ran, strict=True) if job.decision not in APPROVING]
    yield from (*against, *legs)
