"""Continuations: further jobs of a coordinator's chain, and their briefs (rulings D1, C2, C3, E6).

`policy/prompts/continuation` turns the brief into text.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from workflows.contract.models import Action, Decision, SynthesisRule
from workflows.model.briefs import BriefLeg, ContinuationBrief, Correction
from workflows.model.event_kinds import Data, EventKind
from workflows.model.jobs import JobRun
from workflows.model.long_texts import RefusedSet, Text
from workflows.model.rounds import Reply
from workflows.model.rows import JobRecord
from workflows.model.states import Continuation, JobState
from workflows.policy import binding_words, bounds, state_limits
from workflows.policy.batch_verdict import APPROVING
from workflows.tree import finalize, job_offers
from workflows.tree.chains import Batch, Coordinator, Leg
from workflows.tree.state import Finalize
from workflows.tree.step import Step

MOST_SUMMARIES = 16
"""The most dependencies of which a leg gets summaries; of more, it gets only the states."""


def next_id(step: Step) -> str:
    """Return the next job id: `<root>.<n>`, n counting from 1 in dispatch order (ruling B1)."""
    step.state.last_number += 1
    return f"{step.state.root_id}.{step.state.last_number}"


@dataclass(frozen=True)
class Cause:
    """Why a continuation runs: the fields of its brief that are not in the tree's state."""

    flavour: Continuation
    notes: tuple[str, ...] = ()
    correction: Correction | None = None
    refused: tuple[RefusedSet, ...] = ()
    valid_agents: tuple[str, ...] = ()
    attempt: int = 0
    attempts: int = 0


def proceed(step: Step, chain: Coordinator, cause: Cause) -> bool:
    """Enqueue a continuation. If it would exceed the job budget, trip that bound instead, and return False."""
    refusal = bounds.jobs(step.state.input.settings.bounds, step.state.ledger(), 1, "a continuation")
    if refusal is not None:
        finalize.trip(step, refusal, chain.job_id, unrun=cause.flavour is not Continuation.NORMAL)
        return False
    _enqueue(step, chain, cause)
    return True


def enqueue_finalize(step: Step, pending: Finalize) -> None:
    """Enqueue the tree's last job, to which no bound applies (ruling C2)."""
    notes = (f"the task is being finalized: {pending.reason}",)
    cause = Cause(Continuation.FINALIZE, notes, refused=tuple(pending.refused))
    pending.job_id = _enqueue(step, step.state.root, cause)
    message = f"finalize continuation {pending.job_id} enqueued: {pending.reason}"
    data: Data = {"cause": pending.kind, "reason": pending.reason}
    step.event(EventKind.DELEGATION_FINALIZE_ENQUEUED, pending.job_id, message, data)


def _enqueue(step: Step, chain: Coordinator, cause: Cause) -> str:
    flavour, depth = cause.flavour, step.state.jobs[chain.job_id].delegation_depth + 1
    step.state.spent_jobs += flavour is not Continuation.FINALIZE  # a finalize is outside every count (ruling C4)
    brief = _brief(step, chain, cause, depth, _replies(step, chain, flavour))
    if chain.batch is not None and not chain.batch.continued:
        chain.batch.continued = True
        chain.add_work(work for leg in chain.batch.merge_order() for work in step.state.work_of(leg))
    run = _run_of(step, chain, brief, next_id(step), chain.job_id, depth)
    step.state.homes[run.job_id] = chain.coordinator_id
    if flavour is not Continuation.FINALIZE:  # a finalize has an event of its own
        message = f"{flavour} continuation {run.job_id} of {chain.coordinator_id} enqueued after {chain.job_id}"
        data: Data = {"after": chain.job_id, "flavour": flavour.value, "notes": list(cause.notes)}
        step.event(EventKind.CONTINUATION_ENQUEUED, run.job_id, message, data)
    step.add(record_of(run, step.now))
    _run(step, chain, run)
    return run.job_id


def _replies(step: Step, chain: Coordinator, flavour: Continuation) -> Reply:
    """Return people's replies since the chain's last job; a finalize gets those of all chains (rulings E6, F5)."""
    chain.told, chain.reply = chain.reply, None
    chains = step.state.coordinators.values() if flavour is Continuation.FINALIZE else ()
    replies = [reply for reply in (chain.told, *(other.reply for other in chains)) if reply]
    for past in step.state.rounds.get(chain.coordinator_id, ()):
        past.text = ""
    return Reply(
        answers=[answer for reply in replies for answer in reply.answers],
        guidance="\n\n".join(reply.guidance for reply in replies if reply.guidance),
        unmatched=[name for reply in replies for name in reply.unmatched],
    )


def run_again(step: Step, chain: Coordinator, actor: str) -> None:
    """Run the chain's last job as a new attempt, by an operator's order."""
    reason = step.state.jobs[chain.job_id].reason
    another_attempt(step, chain, f"run again by {actor}; the attempt before ended: {reason}")


def another_attempt(step: Step, chain: Coordinator, note: str, moved_from: int = 0) -> None:
    """Run the chain's last job as a new attempt, with an up-to-date brief. A moved attempt does not count against the
    job budget (Q5).
    """
    job = step.state.jobs[chain.job_id]
    run = chain.run
    if job.continuation is Continuation.NONE:
        chain.branch = ""
        line = bounds.budget_line(step.state.input.settings.bounds, step.state.ledger(), job.delegation_depth)
        run = run.model_copy(update={"before": note, "budget": line})
    else:
        chain.reply = chain.told
        replies = _replies(step, chain, job.continuation)
        brief = _brief(step, chain, Cause(job.continuation, (note,)), job.delegation_depth, replies)
        run = _run_of(step, chain, brief, job.job_id, job.parent_job_id, job.delegation_depth)
    run = run.model_copy(update={"attempt": job.attempt + 1, "moved_from": moved_from})
    step.again(job.job_id, note, counted=not moved_from)
    _run(step, chain, run)


def _run_of(
    step: Step, chain: Coordinator, brief: ContinuationBrief, job_id: str, after: str | None, depth: int
) -> JobRun:
    """Return the chain's first run changed into a continuation: with this brief, and without the fields that only legs
    have.
    """
    limit = chain.run.assignment.timeout_seconds
    if brief.flavour is Continuation.FINALIZE:
        limit = step.state.input.settings.timeouts.default_gate_timeout or limit
    return chain.run.model_copy(
        update={
            "job_id": job_id,
            "parent_job_id": after,
            "delegation_id": None,
            "delegation_depth": depth,
            "assignment": chain.run.assignment.model_copy(update={"prompt": Text(), "timeout_seconds": limit}),
            "attempt": 1,
            "moved_from": 0,
            "continuation": brief.flavour,
            "brief": brief,
            "budget": None,
            "before": "",
            "guidance": (),
            "artifacts": (),
            "artifact_digest": None,
            "shared_worktree": None,
            "deps": (),
            "line": step.state.line_of(chain),
            "own_branch": "" if chain.run.shared_worktree else chain.branch,
            "goal": None,
            "follows": (),
        }
    )


def _run(step: Step, chain: Coordinator, run: JobRun) -> None:
    chain.runs(run.job_id)
    job_offers.offer_coordinator(step, run)


def _brief(step: Step, chain: Coordinator, cause: Cause, depth: int, replies: Reply) -> ContinuationBrief:
    state, last = step.state, step.state.jobs[chain.job_id]
    nested = chain.coordinator_id != state.root_id
    caveat = state.input.caveat if not nested else ""  # only the root's chain sums up the whole tree, caveat included
    asked = chain.run.assignment
    return ContinuationBrief(
        flavour=cause.flavour,
        correction=cause.correction,
        goal=state.input.assignment.prompt,
        assignment=asked.prompt if nested else None,
        belongs_to=binding_words.in_words(asked.pull_request, asked.issue, asked.github),
        orders=chain.run.guidance,
        parent_job_id=chain.batch.parent_job_id if chain.batch else chain.job_id,
        answers=tuple(replies.answers),
        guidance=replies.guidance,
        unmatched=tuple(replies.unmatched),
        budget=bounds.budget_line(state.input.settings.bounds, state.ledger(), depth),
        legs=tuple(_legs(step, chain, cause.flavour)),
        previous_decision=last.decision,
        previous_summary=last.summary,
        previous_discarded=chain.discarded,
        notes=(*_skipped_legs(chain.batch), *cause.notes, *((f"{caveat}: say so in your summary",) if caveat else ())),
        refused=cause.refused,
        valid_agents=cause.valid_agents,
        attempt=cause.attempt,
        attempts=cause.attempts,
        approved=chain.batch.approved if chain.batch else False,
        inline_artifact_bodies=state.input.settings.inline_artifact_bodies,
    )


def _legs(step: Step, chain: Coordinator, flavour: Continuation) -> Iterator[BriefLeg]:
    """Yield the legs of the batch. A finalize gets all legs of the tree, including older generations and nested
    legs.
    """
    if flavour is Continuation.FINALIZE:
        known = {leg.job_id: leg for leg in step.state.legs() if not leg.twin}
        delegated = (job for job in step.state.jobs.values() if job.delegation_id)
        yield from (_job(step, job, known.get(job.job_id)) for job in delegated)
    elif chain.batch is not None:
        yield from (_leg(step, chain.batch, leg) for leg in chain.batch.legs.values())


def _findings(leg: Leg | None, decision: Decision | None) -> str:
    """Return a leg's answer or findings; "" for a review or check that approves, whose minor remarks need no work."""
    if leg is None:
        return ""
    answers = leg.assignment.action is Action.ASK and SynthesisRule.VERIFY not in leg.rules
    return leg.findings if answers or decision not in APPROVING else ""


def _leg(step: Step, batch: Batch, named: Leg) -> BriefLeg:
    leg = batch.acting(named.id)
    job = step.state.jobs[leg.outcome_job_id or leg.job_id]
    return BriefLeg(
        id=named.id,
        job_id=leg.job_id,
        parent_job_id=batch.parent_job_id,
        worker=named.assignment.worker.name,
        ephemeral=named.assignment.worker.ephemeral,
        action=named.assignment.action,
        state=leg.state,
        reason=leg.reason,
        decision=step.state.decision_of(leg),
        phase=named.assignment.phase,
        summary=job.summary,
        findings=_findings(leg, step.state.decision_of(leg)),
        pull_request=_own_pull_request(step, job),
        branch=job.branch,
        touched_files=leg.touched_files,
        artifact_digest=leg.artifact_digest,
        twin_of=named.twin,
    )


def outcomes_before(step: Step, batch: Batch, leg: Leg) -> tuple[BriefLeg, ...]:
    """Return the outcomes of a leg's dependencies. If there are more than `MOST_SUMMARIES`, leave out their texts
    (ruling P3).
    """
    over = (dep for dep in leg.deps if batch.acting(dep).state is JobState.SUCCEEDED)
    deps = [_leg(step, batch, batch.legs[dep]) for dep in over]
    if len(deps) <= MOST_SUMMARIES:
        return tuple(
            dep.model_copy(update={"findings": state_limits.findings_beside(dep.findings, len(deps))}) for dep in deps
        )
    return tuple(dep.model_copy(update={"summary": "", "findings": "", "touched_files": ()}) for dep in deps)


def _own_pull_request(step: Step, job: JobRecord) -> int | None:
    """Return the pull request that the job itself opened, not the one its tree belongs to."""
    return job.pull_request if job.pull_request != step.state.input.assignment.pull_request else None


def _skipped_legs(batch: Batch | None) -> tuple[str, ...]:
    unrun = {JobState.SKIPPED, JobState.CANCELLED}
    legs = batch.legs.values() if batch else ()
    return tuple(f"part {leg.id} {leg.state.in_a_sentence}: {leg.reason}" for leg in legs if leg.state in unrun)


def _job(step: Step, job: JobRecord, leg: Leg | None) -> BriefLeg:
    chain = step.state.coordinators.get(job.job_id)
    last = step.state.jobs[chain.job_id] if chain else job
    return BriefLeg(
        id=job.delegation_id or "",
        job_id=job.job_id,
        parent_job_id=job.parent_job_id or "",
        worker=job.agent,
        ephemeral=job.ephemeral,
        action=job.action,
        state=leg.state if leg else job.state,
        reason=leg.reason if leg else job.reason,
        decision=last.decision,
        phase=job.phase,
        summary=last.summary,
        findings=_findings(leg, last.decision),
        pull_request=_own_pull_request(step, last) or _own_pull_request(step, job),
        branch=last.branch or job.branch,
        touched_files=leg.touched_files if leg else (),
        artifact_digest=leg.artifact_digest if leg else None,
    )


def record_of(run: JobRun, now: float, reason: str = "") -> JobRecord:
    """Return the row of a new, queued job."""
    return JobRecord(
        job_id=run.job_id,
        root_job_id=run.root_job_id,
        parent_job_id=run.parent_job_id,
        delegation_id=run.delegation_id,
        delegation_depth=run.delegation_depth,
        task_id=run.task_id,
        repo=run.repo,
        agent=run.assignment.worker.name,
        ephemeral=run.assignment.worker.ephemeral,
        runtime=run.assignment.worker.runtime,
        action=run.assignment.action,
        continuation=run.continuation,
        state=JobState.QUEUED,
        revision=0,
        attempt=run.attempt,
        reason=reason,
        model=run.assignment.model,
        effort=run.assignment.effort,
        phase=run.assignment.phase,
        pull_request=run.assignment.pull_request,
        issue=run.assignment.issue,
        queued_at=now,
    )
