"""Re-opening: the retry of a job in a blocked task (ruling D4), and jobs that were lost with their workflow (G2).

This module defines which retries are accepted, what they do, and which of them rows offer (ruling B3).

A blocked tree closes: its workflow ends, and the store keeps its last state. A retry starts a workflow with the same id
from that state, with `RetryRequested`. So an abandoned tree uses no resources.
"""

from collections.abc import Iterator

from workflows.contract.size_limits import cut_to_bound
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome
from workflows.model.rows import BATCH_BLOCKED, DISMISS
from workflows.model.states import FAILING, JobState, TaskState, WaitsFor
from workflows.policy import bounds
from workflows.policy.batch_verdict import APPROVING
from workflows.text.plurals import quantity
from workflows.tree import blocking, continuation, dispatch, finalize, job_end, pause_rounds
from workflows.tree.chains import Batch, Coordinator, Leg, Phase
from workflows.tree.state import TreeMemory
from workflows.tree.step import Step


def refuse_retry(state: TreeMemory, job_id: str) -> str | None:
    """Return why this job cannot be retried, or None. Operations check this before they change the tree."""
    job = state.jobs.get(job_id)
    if job is None:
        return f"there is no job {job_id} in task {state.root_id}"
    if state.finalize is not None:
        return f"tree {state.root_id} is finalized ({state.finalize.reason}): start a new one"
    if state.task.state.has_ended:
        return f"task {state.task.task_id} is {state.task.state}"
    if state.is_paused:
        waiting = pause_rounds.open_rounds(state)[0]
        return f"tree {state.root_id} is paused for a person and starts nothing: {waiting.commands[0]}"
    limits, used = state.input.settings.bounds, state.ledger()
    refusal = bounds.jobs(limits, used, 1, f"running {job_id} again") or bounds.exhausted_budget(limits, used)
    if refusal is not None:
        return refusal.message
    pair = state.find_leg(job_id)
    if pair is None:
        return None if _is_ended_root(state, job_id) else f"job {job_id} is {job.state}; its batch is over"
    chain, leg = pair
    if chain.batch is None or not _again(chain.batch, leg):
        return f"part {leg.id} is {leg.state}: only a part that failed, or ran in a blocked batch, is run again"
    if not _open(state, chain):
        return f"the batch of part {leg.id} is over: its lead has gone on"
    return _held_back(state, chain.batch, leg)


def retry(step: Step, actor: str, job_id: str) -> None:
    """Run the leg, or the root's last job, as a new attempt, and re-open every batch above it."""
    state = step.state
    if state.closed_at is not None:
        # Exclude the time the tree was closed.
        state.exclude(state.closed_at)
        state.closed_at = state.now
    why_not = refuse_retry(state, job_id)
    if why_not is not None:
        step.event(
            EventKind.RETRY_REFUSED, job_id if job_id in state.jobs else state.root_id, why_not, {"actor": actor}
        )
        return
    state.closed, state.closed_at = False, None
    step.event(EventKind.RETRY_REQUESTED, job_id, f"{actor} runs {job_id} again", {"actor": actor})
    pair = state.find_leg(job_id)
    if pair is None:
        step.task(TaskState.OPEN, f"{job_id} runs again by order of {actor}")
        continuation.run_again(step, state.root, actor)
        return
    chain, leg = pair
    frozen = list(state.coordinators.values()) if state.is_blocked else []
    step.leg_again(leg, f"run again by {actor}; attempt {leg.attempt} {leg.state.in_a_sentence}: {leg.reason}")
    opened = _reopen(step, chain, leg, actor)
    if not state.is_blocked:
        _unskip(step, [*opened, *(other.batch for other in frozen if other.batch)])
    for other in list(state.coordinators.values()):
        pause_rounds.refresh(step, other)
    if not state.is_paused:
        dispatch.start(step, chain, leg)


def _is_ended_root(state: TreeMemory, job_id: str) -> bool:
    ended = state.root.phase is Phase.OVER and state.task.state is TaskState.BLOCKED
    return ended and job_id == state.root.job_id and state.jobs[job_id].state in FAILING


def _again(batch: Batch, leg: Leg) -> bool:
    """Return whether the leg can be retried: it failed, or it ran in a batch that a vote or quorum blocked."""
    by_rule = bool(batch.stopped) and not batch.blocked_by and leg.state is JobState.SUCCEEDED
    return leg.timer is None and bool(leg.outcome_job_id) and (leg.failing or by_rule)


def _held_back(state: TreeMemory, batch: Batch, leg: Leg) -> str | None:
    """Return why the run order forbids the retry, or None (rulings C7, I3)."""
    if leg.worktree in state.busy_worktrees:
        return f"worktree {leg.worktree} of part {leg.id} is in use"
    lost = [dep for dep in batch.acting_deps(leg) if dep.state is not JobState.SUCCEEDED]
    return f"its dependency {lost[0].id} is {lost[0].state}: service job retry {lost[0].job_id} first" if lost else None


def _open(state: TreeMemory, chain: Coordinator) -> bool:
    """Return whether the coordinator still waits for its batch, and every coordinator above it too."""
    if chain.phase not in {Phase.WAITING, Phase.BLOCKED} or chain.batch is None or chain.batch.continued:
        return False
    if chain.coordinator_id == state.root_id:
        return True
    pair = state.leg_of(chain)
    return pair is not None and pair[1].timer is None and _open(state, pair[0])


def _reopen(step: Step, chain: Coordinator, leg: Leg, actor: str) -> list[Batch]:
    """Remove the block that the leg caused from its batch and from those above. A batch that other legs block stays
    blocked. Return the opened batches.
    """
    batch = chain.batch
    if batch is None:
        return []
    batch.unblock(leg)
    chain.phase = Phase.WAITING
    pair = step.state.leg_of(chain)
    if pair is None:
        if not batch.stopped and step.state.is_blocked:
            step.task(TaskState.OPEN, f"{leg.job_id} runs again by order of {actor}")
        return [batch]
    parent, above = pair
    above.begin()
    return [batch, *_reopen(step, parent, above, actor)]


def _unskip(step: Step, batches: list[Batch]) -> None:
    """Queue skipped legs again; a leg that still cannot run is skipped again by the usual rule."""
    going_on = (each for each in batches if not each.stopped and not each.continued)
    for leg in (leg for batch in going_on for leg in batch.acting_legs):
        if leg.state is JobState.SKIPPED or (leg.failing and leg.failed_as):
            leg.unskip()
            step.change(leg.job_id, state=JobState.QUEUED, reason="waits again", next="", ended_at=None)


def show_commands(step: Step) -> None:
    """Update the commands in all rows, so that no row offers a command that would be refused."""
    state = step.state
    _show_task_command(step)
    wanted = {job_id: blocking.way_back(step, again) for job_id, again in _blocking_jobs(state)}
    held_back = state.held_back if state.is_frozen else {}
    for job_id, job in list(state.jobs.items()):
        if job_id in held_back:
            if (job.next, job.waits_for) != (state.task.next, state.task.waits_for):
                reason = "waits until the blocked task is opened again"
                step.change(job_id, reason=reason, next=state.task.next, waits_for=state.task.waits_for)
        elif job_id in wanted:
            if (job.next, job.waits_for) != (wanted[job_id], WaitsFor.RETRY):
                step.change(job_id, next=wanted[job_id], waits_for=WaitsFor.RETRY)
        elif job.waits_for is WaitsFor.RETRY:
            step.change(job_id, next=state.first.get(job_id, ""))


def show_blocks(step: Step) -> None:
    """Say in each job's reason whether its delegations are blocked (rulings B3, D4)."""
    batches = (chain.batch for chain in step.state.coordinators.values())
    blocked = {each.parent_job_id: each.stopped for each in batches if each is not None and each.stopped}
    for job_id, job in list(step.state.jobs.items()):
        reason = cut_to_bound("reason", f"{BATCH_BLOCKED}{blocked[job_id]}") if job_id in blocked else ""
        if job.reason != reason and (reason or job.has_blocked_batch):
            step.change(job_id, reason=reason)


def _show_task_command(step: Step) -> None:
    state = step.state
    if state.is_frozen:
        retry = next((each for each in _ways_on(state) if refuse_retry(state, each) is None), None)
        if retry:
            step.next_step(blocking.way_back(step, retry), WaitsFor.RETRY, retry)
        else:
            step.next_step(f"{DISMISS} {state.root_id}", WaitsFor.DISMISS)
    elif state.is_blocked and state.finalize is not None and not state.finalize.done:
        ends = f"is being ended: {state.finalize.reason}; {finalize.way_to_its_end(step)}"
        step.next_step(ends, WaitsFor.RUNS)


def _blocking_jobs(state: TreeMemory) -> Iterator[tuple[str, str]]:
    """Yield each blocking job with the job to retry for it."""
    if state.root.phase is Phase.OVER and state.is_frozen and refuse_retry(state, state.root.job_id) is None:
        yield state.root.job_id, state.root.job_id
    batches = (chain.batch for chain in state.coordinators.values() if chain.batch and chain.batch.stopped)
    for leg in (batch.legs[each] for batch in batches for each in batch.blocked_by):
        again = blocking.culprit(state, leg)
        if refuse_retry(state, again) is None:
            yield leg.job_id, again


def _ways_on(state: TreeMemory) -> Iterator[str]:
    """Yield the jobs whose retry could re-open the task, the likeliest first."""
    batch = state.root.batch
    if state.root.phase is Phase.OVER or batch is None:
        yield state.root.job_id
        return
    yield from (blocking.culprit(state, batch.legs[each]) for each in batch.blocked_by)
    if not batch.blocked_by:
        # A vote or a quorum blocked it: legs that did not approve first, then all that ran (ruling E2).
        ran = [leg for leg in batch.acting_legs if leg.outcome_job_id]
        yield from (leg.job_id for leg in ran if state.jobs[leg.outcome_job_id].decision not in APPROVING)
        yield from (leg.job_id for leg in ran)
    yield from (leg.job_id for leg in state.legs() if leg.failing)


def refuse_taking_up(state: TreeMemory) -> str | None:
    """Return why this tree cannot be continued after its workflow was ended from outside, or None. A finalize counts
    against no budget (ruling C4).
    """
    final = state.finalize.job_id if state.finalize else None
    again = len([job_id for job_id in state.in_flight if job_id != final])
    what = f"running {quantity(again, 'interrupted job')} again"
    refusal = bounds.jobs(state.input.settings.bounds, state.ledger(), again, what) if again else None
    return refusal.message if refusal else None


def take_up(step: Step, actor: str, why: str, since: float) -> None:
    """Continue a tree after an outage: extend its time and its open rounds by the outage, and run interrupted jobs
    again.
    """
    state, gap = step.state, max(0.0, step.now - since)
    if not state.is_paused:
        state.exclude(since)
    for waiting in (waiting for several in state.rounds.values() for waiting in several if waiting.open):
        waiting.expires_at, waiting.armed_at = waiting.expires_at + gap, waiting.armed_at + gap
    data: dict[str, str | int | float | bool | list[str] | None] = {"actor": actor, "again": state.in_flight}
    step.event(EventKind.TREE_TAKEN_UP, state.root_id, f"{actor} has it go on after its workflow was lost: {why}", data)
    for leg in state.legs():
        leg.timer = None
    for job_id in state.in_flight:
        _run_anew(step, job_id, actor, why)


def _run_anew(step: Step, job_id: str, actor: str, why: str) -> None:
    """Run an interrupted job as a new attempt. In a stopped batch or an ending tree, end the job instead."""
    state, job = step.state, step.state.jobs[job_id]
    pair, ends = state.find_leg(job_id), finalize.ending(step)
    is_final = state.finalize is not None and state.finalize.job_id == job_id
    stopped = pair is not None and pair[0].batch is not None and bool(pair[0].batch.stopped)
    if not is_final and (ends or stopped or (pair is None and state.is_paused)):
        job_end.end_job(
            step, JobOutcome(job_id=job_id, attempt=job.attempt, state=JobState.CANCELLED, reason=why[:300])
        )
        return
    state.offers.pop(job_id, None)  # it is unknown whether the host had begun it
    step.change(job_id, state=JobState.CANCELLED, reason=why, ended_at=step.now)
    if pair is None:
        continuation.run_again(step, state.coordinators[state.homes[job_id]], actor)
        state.spent_jobs -= is_final  # a finalize is outside every count (ruling C4)
        return
    pair[1].end(JobState.CANCELLED, why)
    step.leg_again(pair[1], f"run again by {actor}; attempt {job.attempt} was interrupted: {why}")
