"""Dispatch of delegations: the checks of a set, its legs' jobs, and the run of each job (rulings C1 to C6, B1).

The module `settle` decides when a leg may start.
"""

from collections.abc import Iterator
from enum import StrEnum

from workflows.contract.graph import twins
from workflows.contract.models import Delegation, SynthesisRule
from workflows.contract.worktree_names import AT_BASE, merged_leg
from workflows.model.briefs import Correction
from workflows.model.event_kinds import Data, EventKind
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.long_texts import Text
from workflows.model.refusals import Refusal
from workflows.model.states import Continuation
from workflows.policy import bounds, loops, preflight, state_limits
from workflows.policy.assignments import leg_assignment
from workflows.policy.cut_short import Cut
from workflows.policy.prompts.peoples_words import answer_to
from workflows.text.plurals import quantity
from workflows.tree import continuation, finalize, job_offers
from workflows.tree.chains import Batch, Coordinator, Leg
from workflows.tree.continuation import Cause
from workflows.tree.step import Step


class Dispatch(StrEnum):
    """What happened to a set of delegations."""

    DISPATCHED = "dispatched"
    CORRECTING = "correcting"
    DROPPED = "dropped"


def delegate(step: Step, chain: Coordinator, outcome: JobOutcome) -> Dispatch:
    """Dispatch a set of delegations, return it to its coordinator for correction, or keep all of it for the finalize
    prompt (ruling E6).
    """
    handed = _check(step, chain, outcome)
    pending = step.state.finalize
    if handed is Dispatch.DROPPED and pending is not None:
        pending.unrun = True
        whole = not outcome.not_kept and has_room(step, outcome)
        pending.refused.append(
            state_limits.refused_set(outcome)
            if whole
            else state_limits.left_out(outcome.job_id, outcome.delegation_count)
        )
    return handed


def has_room(step: Step, outcome: JobOutcome) -> bool:
    """Return whether the tree's state has room for a result's delegations; record an event if not (B6)."""
    if state_limits.fits(outcome, step.state.kept_sets()):
        return True
    ids = [each.id for each in outcome.delegations]
    message = f"{quantity(len(ids), 'delegation')} not kept: with those that wait, they exceed what a task can hold"
    step.event(EventKind.DELEGATION_DROPPED, outcome.job_id, message, {"delegations": ids})
    return False


def _check(step: Step, chain: Coordinator, outcome: JobOutcome) -> Dispatch:
    """Run the checks of ruling C1 in their order. The first that fails decides, and records one event."""
    if finalize.ending(step):
        return _drop_at_the_end(step, chain, outcome)
    count = outcome.delegation_count
    refusal = bounds.admit(
        step.state.input.settings.bounds,
        step.state.ledger(),
        depth=step.state.jobs[chain.job_id].delegation_depth,
        width=count,
        new_jobs=count - len(twins(outcome.delegations)),
    )
    if refusal is not None:
        finalize.trip(step, refusal, chain.job_id)
        return Dispatch.DROPPED
    tree = step.state.input
    works = sorted({work.leg for work in step.state.line_of(chain)} - {""})
    refusal = preflight.check(
        outcome.delegations, outcome.agents, tree.settings, outcome.templates, works=works, read_only=tree.read_only
    )
    if refusal is not None:
        return _unroutable(step, chain, outcome, refusal)
    signature = loops.signature(outcome.delegations, outcome.long_prompts)
    chain.ladder, rung = chain.ladder.check_set(signature)
    if rung is not None:
        message = "this set of delegations has been dispatched before"
        at_the_top = climb(step, chain, rung, message, "signature")
        return Dispatch.DROPPED if at_the_top else _correct(step, chain, outcome, Correction.REPEATED, (message,))
    chain.ladder = chain.ladder.add_set(signature)
    _admit(step, chain, outcome)
    return Dispatch.DISPATCHED


def _drop_at_the_end(step: Step, chain: Coordinator, outcome: JobOutcome) -> Dispatch:
    """Drop delegations of an ending tree, and record that. The kill or the bound that ends it has its own event."""
    pending = step.state.finalize
    message = f"{quantity(outcome.delegation_count, 'delegation')} dropped: {pending.reason if pending else ''}"
    ids = [each.id for each in outcome.delegations]
    step.event(EventKind.DELEGATION_DROPPED, chain.job_id, message, {"delegations": ids})
    return Dispatch.DROPPED


def _unroutable(step: Step, chain: Coordinator, outcome: JobOutcome, refusal: Refusal) -> Dispatch:
    """Enqueue a continuation that corrects the set, with its faults; at the streak's limit, request the finalize
    instead (ruling C6).
    """
    step.record_refusal(refusal, chain.job_id)
    step.change(chain.job_id, preflight_failed=refusal.message)
    chain.ladder = chain.ladder.count_unroutable_set()
    if chain.ladder.streak > step.state.input.settings.bounds.max_delegation_non_progress_streak:
        if not step.state.is_blocked:
            why = f"{chain.ladder.streak} sets in a row did not get on: {refusal.message}"
            finalize.request(step, refusal.kind, why, Cut(why))
        return Dispatch.DROPPED
    valid = tuple(sorted(agent.name for agent in outcome.agents))
    faults = refusal.data.get("faults")
    notes = tuple(faults) if isinstance(faults, list) else (refusal.message,)
    return _correct(step, chain, outcome, Correction.PREFLIGHT, notes, valid)


def climb(step: Step, chain: Coordinator, rung: loops.Rung, message: str, signal: str) -> bool:
    """Record a rung of the loop ladder; at the top, finalize the tree and return True."""
    data: Data = {"signal": signal, "streak": chain.ladder.streak}
    if rung is loops.Rung.WARNING:
        step.event(EventKind.DELEGATION_LOOP_WARNING, chain.job_id, message, data)
        return False
    finalize.trip(step, Refusal(EventKind.DELEGATION_LOOP_DETECTED, message, data), chain.job_id)
    return True


def _correct(
    step: Step,
    chain: Coordinator,
    outcome: JobOutcome,
    what: Correction,
    notes: tuple[str, ...],
    valid: tuple[str, ...] = (),
) -> Dispatch:
    """Return the complete set to its coordinator, which runs again to correct it."""
    cause = Cause(Continuation.CORRECTIVE, notes, what, (state_limits.refused_set(outcome),), valid)
    done = continuation.proceed(step, chain, cause)
    return Dispatch.CORRECTING if done else Dispatch.DROPPED


def _admit(step: Step, chain: Coordinator, outcome: JobOutcome) -> None:
    """Create the jobs of all legs, in the given order; a duplicate shares the job of its twin."""
    duplicates = twins(outcome.delegations)
    depth = step.state.jobs[chain.job_id].delegation_depth + 1
    legs = {each.id: _leg(step, each, outcome, duplicates.get(each.id)) for each in outcome.delegations}
    for leg in legs.values():
        if leg.twin:
            leg.job_id = legs[leg.twin].job_id
            _stands_for(legs[leg.twin], leg)
    chain.dispatch(Batch(parent_job_id=chain.job_id, artifact_digest=outcome.artifact_digest, legs=legs))
    for leg in legs.values():
        if not leg.twin:
            step.state.spent_jobs += 1
            step.state.homes[leg.job_id] = chain.coordinator_id
            reason = f"waits for {', '.join(leg.deps)}" if leg.deps else "waits to be started"
            step.add(continuation.record_of(_run(step, chain, leg, depth), step.now, reason))


def _stands_for(leg: Leg, duplicate: Leg) -> None:
    """Merge the rules, quorum and policy of a duplicate into the leg that runs for it (ruling C5)."""
    leg.rules = tuple(dict.fromkeys((*leg.rules, *duplicate.rules)))
    leg.quorum = max((each.quorum for each in (leg, duplicate) if each.quorum is not None), default=None)
    leg.failure_policy = leg.failure_policy or duplicate.failure_policy


def _leg(step: Step, delegation: Delegation, outcome: JobOutcome, twin: str | None) -> Leg:
    tree, long = step.state.input, outcome.long_prompts.get(delegation.id)
    prompt = Text(digest=long.digest) if long else Text(inline=delegation.prompt)
    return Leg(
        id=delegation.id,
        job_id="" if twin else continuation.next_id(step),
        assignment=leg_assignment(delegation, outcome.agents, tree.assignment, tree.settings, prompt),
        deps=delegation.deps,
        failure_policy=delegation.failure_policy,
        rules=(delegation.synthesis_rule,) if delegation.synthesis_rule else (),
        quorum=delegation.quorum,
        retry=delegation.retry,
        worktree=None if (delegation.worktree or "").startswith("@") else delegation.worktree,
        at_base=delegation.worktree == AT_BASE,
        merges=tuple(filter(None, [merged_leg(delegation.worktree)])),
        artifacts=delegation.artifacts,
        twin=twin,
    )


def start(step: Step, chain: Coordinator, leg: Leg) -> None:
    """Offer one attempt of a leg to its host."""
    leg.outcome_job_id = leg.job_id
    leg.asked, chain.asking = False, [each for each in chain.asking if each.leg != leg.id]
    run = run_of(step, chain, leg)
    if not (run.leaf or leg.assignment.worker.ephemeral):
        line = bounds.budget_line(step.state.input.settings.bounds, step.state.ledger(), run.delegation_depth)
        run = run.model_copy(update={"budget": line})
    job_offers.offer_leg(step, run)


def run_of(step: Step, chain: Coordinator, leg: Leg) -> JobRun:
    """Return the run of the current attempt of a leg."""
    return _run(step, chain, leg, step.state.jobs[leg.job_id].delegation_depth)


def _run(step: Step, chain: Coordinator, leg: Leg, depth: int) -> JobRun:
    batch, tree = chain.batch, step.state.input
    if batch is None:
        raise AssertionError(f"coordinator {chain.coordinator_id} has no batch, so its leg {leg.id} cannot run")
    rules, quorum = _counts_for(batch, leg)
    return JobRun(
        job_id=leg.job_id,
        root_job_id=tree.root_job_id,
        parent_job_id=batch.parent_job_id,
        delegation_id=leg.id,
        delegation_depth=depth,
        task_id=tree.task_id,
        repo=tree.repo,
        assignment=leg.assignment,
        attempt=leg.attempt,
        before=leg.before,
        moved_from=leg.moved_from,
        guidance=tuple(_guidance(step, chain, leg)),
        artifacts=leg.artifacts,
        artifact_digest=batch.artifact_digest if leg.artifacts else None,
        branch_deps=step.state.needed_work(chain, batch, leg),
        deps=step.state.given_work(batch, leg),
        line=() if leg.at_base else step.state.line_of(chain),
        at_base=leg.at_base,
        merges=leg.merges,
        own_branch=leg.own_branch,
        shared_worktree=leg.worktree,
        leaf=depth >= tree.settings.bounds.max_delegation_depth,
        goal=tree.assignment.prompt,
        follows=continuation.outcomes_before(step, batch, leg),
        rules=rules,
        quorum=quorum,
        require=tree.require,
        prefer=tree.prefer,
        read_only=tree.read_only,
    )


def _counts_for(batch: Batch, leg: Leg) -> tuple[tuple[SynthesisRule, ...], int | None]:
    """Return the synthesis rules that the leg's decision counts for, and the K of the quorum.

    These are its own verify rule, and the vote and quorum rules of any leg of its batch.
    """
    ballots = [other for other in batch.acting_legs if other.rules or other.quorum is not None]
    rules = {rule for ballot in ballots for rule in ballot.rules} & {SynthesisRule.VOTE, SynthesisRule.QUORUM}
    rules |= {SynthesisRule.VERIFY}.intersection(leg.rules)
    largest = max((ballot.quorum for ballot in ballots if ballot.quorum is not None), default=None)
    return tuple(sorted(rules)), largest if SynthesisRule.QUORUM in rules else None


def _guidance(step: Step, chain: Coordinator, leg: Leg) -> Iterator[str]:
    """Yield what people wrote for a leg that runs again: instructions and answers (ruling F3)."""
    if leg.attempt == 1:
        return
    for answer in chain.reply.answers if chain.reply else ():
        if answer.leg == leg.id and answer.text is not None:
            yield answer_to(answer.question, answer.text)
    rounds = step.state.rounds.get(chain.coordinator_id, [])
    yield from (rounds[number - 1].text for number in leg.guided_by if rounds[number - 1].text)
