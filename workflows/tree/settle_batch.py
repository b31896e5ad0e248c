"""The progress of a batch: its legs start, unreachable ones are skipped, one continuation follows (rulings D1, E1 to
E5).
"""

from workflows.model.briefs import Correction
from workflows.model.event_kinds import Data, EventKind
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.refusals import Refusal
from workflows.model.states import Continuation, JobState
from workflows.policy import bounds, state_limits
from workflows.policy.batch_verdict import APPROVING, Ballot, Result, judge
from workflows.tree import blocking, continuation, dispatch, finalize, job_end, job_offers
from workflows.tree.chains import Batch, Coordinator, Phase
from workflows.tree.continuation import Cause
from workflows.tree.step import Step


def move_on(step: Step, chain: Coordinator) -> bool:
    """Advance a chain as far as possible; return True if that did more than start legs."""
    batch = chain.batch
    if batch is not None:
        blocking.stop_waiting(step, batch)
    if step.state.is_paused:
        return False
    if step.state.is_frozen:
        return _settle_in_blocked_task(step, chain, batch)
    if chain.job_id in step.state.held_back:
        return _offer_again(step, chain, step.state.held_back[chain.job_id])
    if chain.phase is Phase.HELD and chain.held is not None:
        return _release(step, chain, chain.held)
    if chain.phase is not Phase.WAITING or batch is None:
        return False
    for leg, culprit in batch.unreachable():
        why = f"its dependency {culprit.id} {culprit.state.in_a_sentence}"
        blocking.end_waiting_leg(step, leg, JobState.SKIPPED, why)
    _start_ready(step, chain, batch)
    if not batch.is_settled:
        return False
    _settle(step, chain, batch)
    return True


def _offer_again(step: Step, chain: Coordinator, run: JobRun) -> bool:
    """Offer a coordinator's job that was taken back again, unless the tree ends (ruling B5)."""
    if not finalize.ending(step):
        job_offers.offer_coordinator(step, run)
        return False
    finalize.never_began(step, chain, *blocking.end_without_run(step))
    if chain.phase is not Phase.OVER:
        _end(step, chain, JobState.CANCELLED, "the task is being finalized")
    return True


def _settle_in_blocked_task(step: Step, chain: Coordinator, batch: Batch | None) -> bool:
    """In a blocked task, only let a blocked batch block its leg; everything else waits for a retry (D4)."""
    if chain.phase is not Phase.WAITING or batch is None or not batch.stopped or not batch.is_settled:
        return False
    _record_settling(step, chain, batch, "stopped", batch.stopped)
    _block(step, chain, batch)
    return True


def _release(step: Step, chain: Coordinator, held: JobOutcome) -> bool:
    """Release a held result after the pause: if its coordinator was answered, that runs again; otherwise the result is
    applied (F2).
    """
    asked = bool(chain.reply and chain.reply.answers)
    left_out, chain.held, chain.left_out = chain.left_out or held.not_kept, None, 0
    if finalize.ending(step):
        if held.delegation_count:
            dispatch.delegate(step, chain, held)
        elif left_out and step.state.finalize is not None:
            step.state.finalize.refused.append(state_limits.left_out(held.job_id, left_out))
        _end(step, chain, JobState.CANCELLED, "the task is being finalized")
        return True
    ended = step.state.jobs[held.job_id].state
    if not asked and (held.delegation_count or not (left_out and ended is JobState.SUCCEEDED)):
        job_end.go_on(step, chain, held, ended)
        return True
    sets = (
        (state_limits.refused_set(held),)
        if held.delegations
        else (state_limits.left_out(held.job_id, left_out),)
        if left_out
        else ()
    )
    notes = ("the delegations below were held back while a person was asked",) if held.delegations else ()
    flavour, correction = (Continuation.ANSWERED, None) if asked else (Continuation.CORRECTIVE, Correction.LEFT_OUT)
    _continue(step, chain, Cause(flavour, notes, correction, sets))
    return True


def _start_ready(step: Step, chain: Coordinator, batch: Batch) -> None:
    for leg in batch.ready(step.state.offers):
        if batch.stopped or finalize.ending(step):
            return
        if leg.worktree and leg.worktree in step.state.busy_worktrees:
            continue
        refusal = bounds.exhausted_budget(step.state.input.settings.bounds, step.state.ledger())
        if refusal is None:
            dispatch.start(step, chain, leg)
            continue
        finalize.trip(step, refusal, chain.job_id)
        if not finalize.ending(step):
            blocking.stop_batch(step, chain, batch, refusal.message, leg.job_id)


def _settle(step: Step, chain: Coordinator, batch: Batch) -> None:
    """Settle a batch in exactly one way: an end, a block or a continuation (ruling D1)."""
    if finalize.ending(step):
        _record_settling(step, chain, batch, "ending", "the task is being finalized")
        _end(step, chain, JobState.CANCELLED, "the task is being finalized")
    elif batch.stopped:
        _record_settling(step, chain, batch, "stopped", batch.stopped)
        _block(step, chain, batch)
    else:
        _synthesize(step, chain, batch)


def _record_settling(step: Step, chain: Coordinator, batch: Batch, verdict: str, reason: str) -> None:
    ends = [f"{leg.id}: {batch.acting(leg.id).state}" for leg in batch.legs.values()]
    data: Data = {"coordinator": chain.coordinator_id, "verdict": verdict, "reason": reason, "legs": ends}
    why = f" ({reason})" if reason else ""
    message = f"the batch of {batch.parent_job_id} has settled, {verdict}{why}: {', '.join(ends)}"
    step.event(EventKind.BATCH_SETTLED, batch.parent_job_id, message, data)


def _end(step: Step, chain: Coordinator, state: JobState, reason: str) -> None:
    """End a delegated chain and its leg; the root's chain waits for the finalize."""
    if step.state.leg_of(chain) is None:
        chain.phase = Phase.OVER
    else:
        job_end.chain_over(step, chain, state, reason)


def _block(step: Step, chain: Coordinator, batch: Batch) -> None:
    chain.phase = Phase.BLOCKED
    if step.state.leg_of(chain) is not None:
        job_end.chain_over(step, chain, JobState.BLOCKED, batch.stopped)
        chain.phase = Phase.BLOCKED


def _synthesize(step: Step, chain: Coordinator, batch: Batch) -> None:
    limit = step.state.input.settings.bounds.max_delegation_non_progress_streak
    chain.ladder, rung = chain.ladder.generation_over([leg.part for leg in batch.acting_legs], limit)
    ballots = [
        Ballot(leg.id, leg.state, step.state.decision_of(leg), frozenset(leg.rules), leg.quorum)
        for leg in batch.acting_legs
    ]
    verdict = judge(ballots, overruled=batch.approved or batch.leaves_decision)
    _record_settling(step, chain, batch, verdict.result.value, verdict.reason)
    if verdict.result is Result.BLOCK:
        ran = (leg for leg in batch.legs.values() if leg.outcome_job_id)
        against = [leg.job_id for leg in ran if step.state.decision_of(leg) not in APPROVING]
        blocking.stop_batch(step, chain, batch, verdict.reason, against[0] if against else chain.job_id)
        _block(step, chain, batch)
        return
    message = f"{chain.ladder.streak + 1} generations in a row ended with the same decisions and side effects"
    if rung is not None and dispatch.climb(step, chain, rung, message, "progress"):
        _end(step, chain, JobState.CANCELLED, message)
    elif verdict.result is Result.REPLAN:
        _replan(step, chain, verdict.reason, (message,) if rung else ())
    elif rung is not None:
        _continue(step, chain, Cause(Continuation.CORRECTIVE, (message,), Correction.NO_PROGRESS))
    else:
        answered = chain.reply is not None and bool(chain.reply.answers)
        _continue(step, chain, Cause(Continuation.ANSWERED if answered else Continuation.NORMAL))


def _replan(step: Step, chain: Coordinator, reason: str, notes: tuple[str, ...]) -> None:
    """Enqueue a replan for a failed verdict; replans are counted per tree, and the count is never reset (ruling E5)."""
    state, cap = step.state, step.state.input.settings.bounds.max_verify_replan_attempts
    if state.verify_attempts >= cap:
        message = f"{reason}; no replan is left (limit {cap})"
        finalize.trip(step, Refusal(EventKind.VERIFY_REPLAN_EXHAUSTED, message, {"attempts": cap}), chain.job_id)
        _end(step, chain, JobState.CANCELLED, message)
        return
    state.verify_attempts += 1
    cause = Cause(Continuation.REPLAN, (reason, *notes), attempt=state.verify_attempts, attempts=cap)
    _continue(step, chain, cause)


def _continue(step: Step, chain: Coordinator, cause: Cause) -> None:
    if not continuation.proceed(step, chain, cause):
        _end(step, chain, JobState.CANCELLED, "no job is left for its continuation")
