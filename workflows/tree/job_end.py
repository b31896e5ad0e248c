"""What the end of a job changes in its leg, its chain and its batch (rulings D2 to D8, E7, A11)."""

from dataclasses import replace

from workflows.contract.models import FailurePolicy
from workflows.contract.size_limits import cut_to_bound
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome
from workflows.model.spend import Usage
from workflows.model.states import FAILING, JobState
from workflows.policy import bounds, state_limits
from workflows.policy.backoff import retry_backoff
from workflows.policy.decisions import ended_as
from workflows.policy.prices import Cost, price_of
from workflows.text.digests import digest
from workflows.text.plurals import quantity
from workflows.tree import blocking, dispatch, finalize, job_offers, moving, pause_rounds
from workflows.tree.chains import Batch, Coordinator, Leg, Phase
from workflows.tree.commands import StartTimer
from workflows.tree.dispatch import Dispatch
from workflows.tree.step import Step

MOST_NAMED = 5
"""The most delegations that a reason names."""


def end_job(step: Step, outcome: JobOutcome) -> None:
    """Apply an outcome once. Outcomes of other attempts, or of jobs not in flight, are ignored."""
    if moving.offer_again(step, outcome) or not job_offers.end_offer(step, outcome):
        return
    state, job = step.state, step.state.jobs[outcome.job_id]
    ended = _record(step, outcome)
    if moving.begin_again(step, outcome):
        return
    outcome = _leaf(step, outcome) if job.ephemeral else outcome
    pair = state.find_leg(outcome.job_id)
    if state.finalize is not None and state.finalize.job_id == outcome.job_id:
        _end_finalize(step, outcome, ended)
    elif pair is not None:
        _end_leg_job(step, *pair, outcome, ended)
    elif job.delegation_id is None:
        _end_chain_job(step, state.coordinators[state.homes[outcome.job_id]], outcome, ended)


def _leaf(step: Step, outcome: JobOutcome) -> JobOutcome:
    """Remove the delegations from an ephemeral worker's outcome, and record that: such a worker may not delegate
    (ruling C1).
    """
    if not outcome.delegation_count:
        return outcome
    ids = [each.id for each in outcome.delegations]
    message = f"an ephemeral worker cannot delegate: {quantity(outcome.delegation_count, 'delegation')} ignored"
    step.event(EventKind.DELEGATION_IGNORED_EPHEMERAL, outcome.job_id, message, {"delegations": ids})
    return outcome.model_copy(update={"delegations": (), "long_prompts": {}, "not_kept": 0})


def _record(step: Step, outcome: JobOutcome) -> JobState:
    """Record a job's row, its spend, and the notices of its run. Return the job's end state."""
    state, job = step.state, step.state.jobs[outcome.job_id]
    ended = ended_as(outcome)
    first = cut_to_bound("reason", outcome.first) if ended in FAILING else ""
    if first:
        state.first[outcome.job_id] = first
    tokens = outcome.usage
    known = {"input_tokens": max(0, tokens.input_tokens), "output_tokens": max(0, tokens.output_tokens)}
    used = Usage() + tokens.model_copy(update=known)
    price = _price(step, outcome, used)
    state.usage, state.cost_usd = state.usage + used, state.cost_usd + price.usd
    state.price_assumed = state.price_assumed or price.assumed
    step.change(
        outcome.job_id,
        state=ended,
        reason=cut_to_bound("reason", _stopped_by(step, outcome)),
        next=first,
        decision=outcome.decision,
        summary=cut_to_bound("summary", outcome.summary),
        model=outcome.model or job.model,
        branch=outcome.branch or job.branch,
        head_sha=outcome.head_sha or job.head_sha,
        pull_request=outcome.pull_request or job.pull_request,
        result_digest=outcome.result_digest,
        usage=job.usage + used,
        cost_usd=job.cost_usd + price.usd,
        price_assumed=job.price_assumed or price.assumed,
        ended_at=step.now,
    )
    for notice in outcome.notices:
        step.notice(notice, outcome.job_id)
    return ended


def _stopped_by(step: Step, outcome: JobOutcome) -> str:
    """Return the outcome's reason; for a job that a kill stopped, the reason names who killed the tree (ruling B3)."""
    killed = step.state.killed_by is not None and outcome.state is JobState.CANCELLED and outcome.reason
    if killed:
        return f"{outcome.reason}: killed by {step.state.killed_by}"
    return f"{outcome.reason}{_not_run(outcome)}"


def _price(step: Step, outcome: JobOutcome, used: Usage) -> Cost:
    asked = step.state.jobs[outcome.job_id].model
    price = price_of(used, reported=outcome.model, asked=asked, overrides=step.state.input.settings.prices)
    return replace(price, assumed=price.assumed or outcome.estimated)


def _end_finalize(step: Step, outcome: JobOutcome, ended: JobState) -> None:
    """End the finalize; its delegations and questions are ignored (ruling G1)."""
    finalize.record_ignored(step, outcome)
    finalize.end_finalize(step, ended, _reason(outcome))
    step.state.root.phase = Phase.OVER


def _end_chain_job(step: Step, chain: Coordinator, outcome: JobOutcome, ended: JobState) -> None:
    """End a job of the root or a continuation: dispatch its delegations, or end its chain."""
    pause_rounds.ask(step, chain, outcome.job_id, outcome.human_questions)
    chain.wrote(step.state.jobs[outcome.job_id])
    chain.discarded = state_limits.discarded_files(outcome)
    pair = step.state.leg_of(chain)
    if pair is not None:
        _absorb(pair[1], outcome, pair[0].batch, chain.ladder.history)
    if not _hold(step, chain, outcome):
        go_on(step, chain, outcome, ended)


def _hold(step: Step, chain: Coordinator, outcome: JobOutcome) -> bool:
    """Hold a result back if its coordinator asks people, or if it has delegations while the tree starts nothing. Return
    whether it was held (F2, F8, D4).
    """
    asks = any(not each.leg for each in chain.asking)
    waits = step.state.is_paused or step.state.is_blocked
    if finalize.ending(step) or not (asks or (waits and outcome.delegation_count)):
        return False
    if outcome.delegations and not dispatch.has_room(step, outcome):
        chain.left_out = len(outcome.delegations)
        outcome = state_limits.without_set(outcome)
    chain.hold(state_limits.reduce_held_result(outcome, comes_back=asks))
    pause_rounds.refresh(step, chain)
    pause_rounds.show(step)
    return True


def go_on(step: Step, chain: Coordinator, outcome: JobOutcome, ended: JobState) -> None:
    """Apply the result of a chain's latest job: dispatch its delegations, or end the chain."""
    pair = step.state.leg_of(chain)
    match _hand_out(step, chain, outcome, ended):
        case Dispatch.DISPATCHED | Dispatch.CORRECTING:
            return
        case Dispatch.DROPPED if pair is None:
            chain.phase = Phase.OVER  # the refusal has requested the finalize
        case _:
            chain_over(step, chain, ended, _reason(outcome))


def _end_leg_job(step: Step, parent: Coordinator, leg: Leg, outcome: JobOutcome, ended: JobState) -> None:
    """End a delegated job. This ends its leg too, unless the job delegates and so becomes a coordinator."""
    if not outcome.delegation_count or outcome.conflict:
        pause_rounds.ask(step, parent, outcome.job_id, outcome.human_questions, leg.id)
    _absorb(leg, outcome, parent.batch)
    if outcome.conflict:
        _stop(step, parent, leg, ended, f"branches could not be merged: {outcome.conflict}")
        return
    if outcome.delegation_count:
        run = dispatch.run_of(step, parent, leg).model_copy(update={"goal": None, "follows": ()})  # told by its brief
        chain = Coordinator(coordinator_id=leg.job_id, run=run, job_id=leg.job_id)
        step.state.coordinators[leg.job_id] = chain
        chain.wrote(step.state.jobs[leg.job_id])
        chain.discarded = state_limits.discarded_files(outcome)
        pause_rounds.ask(step, chain, outcome.job_id, outcome.human_questions)
        if _hold(step, chain, outcome) or _hand_out(step, chain, outcome, ended) in {
            Dispatch.DISPATCHED,
            Dispatch.CORRECTING,
        }:
            return
        del step.state.coordinators[leg.job_id]
    leg_over(step, parent, leg, ended, _reason(outcome))


def _hand_out(step: Step, chain: Coordinator, outcome: JobOutcome, ended: JobState) -> Dispatch | None:
    """Dispatch an outcome's delegations. Return None if it has none, or did not succeed (ruling A11)."""
    if not outcome.delegation_count:
        return None
    if ended is JobState.SUCCEEDED:
        return dispatch.delegate(step, chain, outcome)
    ids = [each.id for each in outcome.delegations]
    message = f"a {ended} result does not delegate: {quantity(outcome.delegation_count, 'delegation')} not dispatched"
    step.event(EventKind.DELEGATION_DROPPED, outcome.job_id, message, {"delegations": ids})
    return None


def _absorb(leg: Leg, outcome: JobOutcome, batch: Batch | None, history: str = "") -> None:
    """Store the outcome of a chain's latest job in its leg; the history of the chain counts as progress too (H3)."""
    leg.outcome_job_id = outcome.job_id
    if leg.finds:
        finding = [other for other in (batch.legs.values() if batch else ()) if other.finds]
        leg.findings = state_limits.findings(outcome, len(finding))
    else:
        leg.findings = state_limits.needs(outcome)
    leg.touched_files = state_limits.files(outcome)
    leg.artifact_digest = outcome.artifact_digest
    own = outcome.progress or f"{outcome.state} {outcome.decision}"
    leg.progress = digest([own, history]) if history else own


def _reason(outcome: JobOutcome) -> str:
    return cut_to_bound("summary", f"{outcome.reason or outcome.summary}{_not_run(outcome)}")


def _not_run(outcome: JobOutcome) -> str:
    """Return an addition to a reason that names the delegations of a blocked or failed result, which are not run
    (ruling A11).
    """
    if not outcome.delegation_count or ended_as(outcome) not in {JobState.BLOCKED, JobState.FAILED}:
        return ""
    named = [each.id for each in outcome.delegations[:MOST_NAMED]]
    more = f" and {outcome.delegation_count - len(named)} more" if outcome.delegation_count > len(named) else ""
    return f" (its delegations were not run: {', '.join(named)}{more})"


def chain_over(step: Step, chain: Coordinator, ended: JobState, reason: str) -> None:
    """End a chain, and with it its leg; the root's chain ends the task."""
    chain.phase = Phase.OVER
    pair = step.state.leg_of(chain)
    if pair is None:
        finalize.root_over(step, chain, ended, reason)
    else:
        leg_over(step, *pair, ended, reason)


def leg_over(step: Step, chain: Coordinator, leg: Leg, ended: JobState, reason: str) -> None:
    """End a leg. If it failed, retry it while retries are left, else apply its policy; in an ending tree do neither.

    A leg that asks people is not retried either: the answer goes to its coordinator, which decides (ruling F2).
    """
    reason = cut_to_bound("reason", reason) if ended in FAILING else ""
    batch = chain.batch
    if ended in FAILING and any(each.leg == leg.id for each in chain.asking):
        leg.end(ended, reason)
        leg.asked = True
        return
    stopped = step.state.is_frozen or batch is None or bool(batch.stopped)
    again = ended in FAILING and not finalize.ending(step) and not stopped
    if again and leg.retries_used < leg.retry and _retry(step, leg, ended, reason):
        return
    leg.end(ended, reason)
    if ended in FAILING and not finalize.ending(step) and batch is not None:
        _meet_policy(step, chain, leg)


def _retry(step: Step, leg: Leg, ended: JobState, reason: str) -> bool:
    """Schedule a retry after a backoff, if the job budget has room. Return whether it did (rulings D3, C3)."""
    refusal = bounds.jobs(step.state.input.settings.bounds, step.state.ledger(), 1, f"a retry of part {leg.id}")
    if refusal is not None:
        step.record_refusal(refusal, leg.job_id)
        return False
    seconds, attempt = retry_backoff(leg.retries_used), leg.attempt
    leg.end(ended, reason)
    coming = f"attempt {attempt + 1} starts {seconds:.0f} s after it"
    step.leg_again(leg, f"attempt {attempt} {ended.in_a_sentence}: {reason}", coming)
    key = leg.pause_before_retry(ended, reason)
    step.command(
        StartTimer(
            key=key, seconds=seconds, summary=f"{step.state.path_of(leg.job_id)}: waits before attempt {attempt + 1}"
        )
    )
    return True


def retry_due(step: Step, key: str) -> None:
    """End a leg's wait for its retry. It then starts like any other leg, when budgets and worktrees allow (C4, I3)."""
    leg = next((each for each in step.state.legs() if each.timer == key), None)
    if leg is not None:
        leg.timer = None
        pause_rounds.show(step)


def _meet_policy(step: Step, chain: Coordinator, leg: Leg) -> None:
    match leg.policy:
        case FailurePolicy.BLOCK_PARENT:
            _stop(step, chain, leg, leg.state, f"part {leg.id} {leg.state.in_a_sentence}: {leg.reason}")
        case FailurePolicy.CONTINUE | FailurePolicy.ESCALATE:
            pass  # the batch decides on an escalation when it is settled
        case FailurePolicy.ESCALATE_HUMAN:
            leg.escalated = True
            pause_rounds.refresh(step, chain)


def _stop(step: Step, chain: Coordinator, leg: Leg, ended: JobState, reason: str) -> None:
    """Stop the batch: skip legs that have not started, let running ones finish, enqueue no continuation (ruling D4)."""
    leg.end(ended if ended in FAILING else JobState.BLOCKED, cut_to_bound("reason", reason))
    if finalize.ending(step) or chain.batch is None:
        return
    chain.batch.blocked_by.append(leg.id)
    blocking.stop_batch(step, chain, chain.batch, reason, blocking.culprit(step.state, leg))
