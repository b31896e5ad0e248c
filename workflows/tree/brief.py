"""What a continuation is told, gathered from the state (ruling E6). It becomes text in `policy/prompts/render`."""

from workflows.contract.models import Decision, SynthesisRule
from workflows.model.briefs import BriefLeg, BudgetLine, ContinuationBrief
from workflows.model.rows import JobRecord
from workflows.model.states import Continuation, JobState
from workflows.tree.chains import Batch, Coordinator, Leg
from workflows.tree.step import Step


def brief(
    step: Step, chain: Coordinator, flavour: Continuation, depth: int, notes: tuple[str, ...]
) -> ContinuationBrief:
    """Everything the prompt says that the state knows; the caller adds what its flavour needs."""
    state, last = step.state, step.state.jobs[chain.job_id]
    nested = chain.coordinator_id != state.root_id
    if flavour is Continuation.FINALIZE:
        legs = _whole_tree(step)
    else:
        legs = _batch(step, chain.batch, with_findings=flavour is Continuation.REPLAN) if chain.batch else ()
    return ContinuationBrief(
        flavour=flavour,
        goal=state.input.assignment.prompt,
        assignment=chain.run.assignment.prompt if nested else None,
        orders=chain.run.guidance,
        parent_job_id=chain.batch.parent_job_id if chain.batch else chain.job_id,
        budget=_budget(step, depth),
        legs=legs,
        previous_decision=last.decision,
        previous_summary=last.summary,
        notes=(*_skipped(chain.batch), *notes, *_caveat(step, nested=nested)),
        approved=chain.batch.approved if chain.batch else False,
        inline_artifact_bodies=state.input.settings.inline_artifact_bodies,
    )


def _caveat(step: Step, *, nested: bool) -> tuple[str, ...]:
    """Whoever sums up the whole tree says it too."""
    caveat = step.state.input.caveat
    return (f"{caveat}: say so in your summary",) if caveat and not nested else ()


def _budget(step: Step, depth: int) -> BudgetLine:
    bounds, used = step.state.input.settings.bounds, step.state.ledger()
    return BudgetLine(
        jobs=used.jobs,
        jobs_cap=bounds.max_delegation_total_jobs,
        depth=min(depth, bounds.max_delegation_depth),
        depth_cap=bounds.max_delegation_depth,
        elapsed_seconds=used.elapsed_seconds,
        wall_clock_seconds=bounds.max_delegation_wall_clock_seconds,
        tokens=used.tokens,
        token_budget=bounds.max_delegation_token_budget,
        cost_usd=used.cost_usd,
        cost_budget_usd=bounds.max_delegation_cost_usd,
        price_assumed=used.price_assumed,
        warned=tuple(step.state.warned),
    )


def _batch(step: Step, batch: Batch, *, with_findings: bool) -> tuple[BriefLeg, ...]:
    return tuple(_leg(step, batch, leg, with_findings=with_findings) for leg in batch.legs.values())


def _leg(step: Step, batch: Batch, named: Leg, *, with_findings: bool) -> BriefLeg:
    leg = batch.acting(named.id)
    job = step.state.jobs[leg.outcome_job_id or leg.job_id]
    quoted = with_findings and SynthesisRule.VERIFY in leg.rules
    return BriefLeg(
        id=named.id,
        job_id=leg.job_id,
        parent_job_id=batch.parent_job_id,
        worker=named.assignment.worker.name,
        ephemeral=named.assignment.worker.ephemeral,
        action=named.assignment.action,
        state=leg.state,
        reason=leg.reason,
        decision=decision_of(step, leg),
        phase=named.assignment.phase,
        summary=job.summary,
        findings=leg.findings if quoted else "",
        pull_request=job.pull_request,
        branch=job.branch,
        touched_files=leg.touched_files,
        artifact_digest=leg.artifact_digest,
        twin_of=named.twin,
    )


def decision_of(step: Step, leg: Leg) -> Decision | None:
    """What the leg decided; nothing when its chain ended otherwise than the job that spoke last."""
    job = step.state.jobs.get(leg.outcome_job_id)
    return job.decision if job is not None and job.state is leg.state else None


def _skipped(batch: Batch | None) -> tuple[str, ...]:
    unrun = {JobState.SKIPPED, JobState.CANCELLED}
    legs = batch.legs.values() if batch else ()
    return tuple(f"leg {leg.id} was {leg.state}: {leg.reason}" for leg in legs if leg.state in unrun)


def _whole_tree(step: Step) -> tuple[BriefLeg, ...]:
    """A finalize sums up everything the tree did, older generations and nested legs included."""
    known = {leg.job_id: leg for leg in step.state.legs() if not leg.twin}
    return tuple(_job(step, job, known.get(job.job_id)) for job in step.state.jobs.values() if job.delegation_id)


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
        pull_request=last.pull_request or job.pull_request,
        branch=last.branch or job.branch,
        touched_files=leg.touched_files if leg else (),
        artifact_digest=leg.artifact_digest if leg else None,
    )
