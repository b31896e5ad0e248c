"""The objections to merging a tree's legs, from jobs that judged them: on which commits, and with which decision
(L10).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from pydantic import ValidationError

from activities.store import attempt_rows, tree_rows
from activities.store.attempt_rows import Given
from bridge.operations.service import Service
from workflows.contract.graph import twins
from workflows.contract.models import Action, Decision, Delegation, SynthesisRule
from workflows.github.effective_jobs import chain_of
from workflows.github.merge_gate_inputs import Plan
from workflows.model.rows import JobRecord
from workflows.model.states import JobState
from workflows.policy.batch_verdict import APPROVING
from workflows.policy.decisions import report


def plans_of(service: Service, jobs: Sequence[JobRecord], given: Mapping[str, Given]) -> dict[str, Plan]:
    """Return the plan each job was delegated with, by job id."""
    if not jobs:
        return {}
    root = jobs[0].root_job_id
    kept = tree_rows.get(service.store, root) if root not in given else None
    sets = {root: kept.start.legs if kept else ()} | {job_id: _read(each) for job_id, each in given.items()}
    plans = {(parent, leg): plan for parent, legs in sets.items() for leg, plan in _plans(legs)}
    mine = {job.job_id: plans.get((job.parent_job_id or "", job.delegation_id or "")) for job in jobs}
    return {job_id: plan for job_id, plan in mine.items() if plan}


def _read(given: Given) -> tuple[Delegation, ...]:
    with suppress(ValidationError):
        return tuple(map(Delegation.model_validate, given.delegations))
    return ()


def _plans(legs: Sequence[Delegation]) -> Iterator[tuple[str, Plan]]:
    """Yield the plans of legs; a leg that replaces a duplicate leg also has the duplicate's plan (ruling C5)."""
    acting = twins(legs)
    for leg in legs:
        asked = [leg, *(each for each in legs if acting.get(each.id) == leg.id)]
        yield (
            leg.id,
            Plan(
                failure_policy=next((each.failure_policy for each in asked if each.failure_policy), None),
                rules=frozenset(each.synthesis_rule for each in asked if each.synthesis_rule),
                quorum=max((each.quorum for each in asked if each.quorum is not None), default=None),
            ),
        )


class Objections:
    """The objections to merging legs of a tree: from their own decisions, and from those of their checkers."""

    def __init__(self, service: Service, jobs: Sequence[JobRecord]) -> None:
        self._jobs = jobs
        given = attempt_rows.given_in(service.store, jobs[0].root_job_id) if jobs else {}
        plans = plans_of(service, jobs, given)
        self._readers = [
            (job, given[job.job_id].given or ())
            for job in jobs
            if job.action is Action.REVIEW or SynthesisRule.VERIFY in plans.get(job.job_id, Plan()).rules
            if job.job_id in given
        ]

    def to(self, job: JobRecord, head: str | None) -> tuple[str, str]:
        """Return the first objection to merging a job's work, and the objecting job; two empty texts without an
        objection.
        """
        last = chain_of(self._jobs, job).jobs[-1]
        if last.decision is not None and last.decision not in APPROVING:
            return f"{last.job_id} {report(last.decision)}", last.job_id
        for reader, given in self._readers:
            if head in given and _against(reader):
                how = report(reader.decision) if reader.decision else reader.state.in_a_sentence
                name = reader.delegation_id or reader.job_id
                return f"part {name} ({reader.job_id}), which looked at it, {how}", reader.job_id
        return "", ""


def _against(reader: JobRecord) -> bool:
    """Return whether a reader ended without an approval; an abstention or a stop does not count."""
    if reader.state is JobState.SUCCEEDED:
        return reader.decision not in {*APPROVING, Decision.SKIPPED}
    return reader.state in {JobState.FAILED, JobState.BLOCKED}
