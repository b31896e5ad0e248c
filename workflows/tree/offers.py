"""The commands that a blocked task and its jobs offer: only such as would be taken now (ruling B3)."""

from collections.abc import Iterator

from workflows.policy.synthesis import APPROVING
from workflows.tree.ending import culprit
from workflows.tree.records import DISMISS, RETRY
from workflows.tree.reopening import refuse_retry
from workflows.tree.state import FAILING, Batch, Phase, TreeState
from workflows.tree.step import Step


def offer(step: Step) -> None:
    """What each row says a person can type is what this state takes; nothing is offered that would be refused."""
    state = step.state
    wanted = dict(_jobs(state))
    for job_id, job in list(state.jobs.items()):
        if (job_id in wanted or job.next.startswith(RETRY)) and job.next != wanted.get(job_id, ""):
            step.change(job_id, next=wanted.get(job_id, ""))
    if state.frozen:
        retry = next((each for each in _ways_on(state) if refuse_retry(state, each) is None), None)
        step.next_step(f"{RETRY} {retry}" if retry else f"{DISMISS} {state.root_id}")
    elif state.task.next.startswith((RETRY, DISMISS)):
        step.next_step("")


def _jobs(state: TreeState) -> Iterator[tuple[str, str]]:
    """Each job that blocks something, with the command that runs again what has to be."""
    if state.root.phase is Phase.OVER and state.frozen and refuse_retry(state, state.root.job_id) is None:
        yield state.root.job_id, f"{RETRY} {state.root.job_id}"
    batches = (chain.batch for chain in state.coordinators.values() if chain.batch and chain.batch.stopped)
    for leg in (batch.legs[each] for batch in batches for each in batch.blocked_by):
        again = culprit(state, leg)
        if refuse_retry(state, again) is None:
            yield leg.job_id, f"{RETRY} {again}"


def _ways_on(state: TreeState) -> Iterator[str]:
    """Jobs whose retry could open the task again, the likeliest first."""
    batch = state.root.batch
    if state.root.phase is Phase.OVER or batch is None:
        yield state.root.job_id
        return
    yield from (culprit(state, batch.legs[each]) for each in batch.blocked_by)
    if not batch.blocked_by:
        yield from _ballots(state, batch)
    yield from (leg.job_id for leg in state.legs() if leg.state in FAILING)


def _ballots(state: TreeState, batch: Batch) -> Iterator[str]:
    """Where a vote or a quorum blocked: who did not approve, then everybody who ran (ruling E2)."""
    ran = [state.jobs[leg.outcome_job_id] for leg in batch.legs.values() if leg.outcome_job_id and not leg.twin]
    legs = [leg.job_id for leg in batch.legs.values() if leg.outcome_job_id and not leg.twin]
    against = [job_id for job_id, job in zip(legs, ran, strict=True) if job.decision not in APPROVING]
    yield from (*against, *legs)
