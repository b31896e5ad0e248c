"""The merge gate: decides whether a tree's work is ready to be merged, with the reasons if not, and which tree decides
about a pull request (ruling L10).
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from workflows.contract.models import Action, Decision, SynthesisRule
from workflows.github.effective_jobs import Chain, ChainLeg, Generation, chain_of
from workflows.github.merge_gate_inputs import GateInputs, JobFacts, LaterReview, Look, Plan, WorkState
from workflows.model.rounds import RoundEnd
from workflows.model.rows import JobRecord
from workflows.model.states import FAILING, Continuation, JobState, TaskState
from workflows.policy.batch_verdict import APPROVING
from workflows.policy.decisions import report
from workflows.policy.failure_policies import allows_merge

AGAINST = frozenset({Decision.CHANGES_REQUESTED, Decision.BLOCKED, Decision.FAILED})
_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-(\d+)-[0-9a-f]+")
"""The ref of a merge queue's candidate commit."""


class GateState(StrEnum):
    """Pending: work or a decision is still missing. Failing: a verdict is negative, or a force push replaced an
    approved commit. Unknown: this host cannot see the commit to judge.
    """

    PENDING = "pending"
    FAILING = "failing"
    PASSING = "passing"
    UNKNOWN = "unknown"


_WORST_FIRST = (GateState.FAILING, GateState.UNKNOWN, GateState.PENDING)


@dataclass(frozen=True)
class GateVerdict:
    """The state, a sentence with the next command for each reason, and the judged commit."""

    state: GateState
    reasons: tuple[str, ...]
    head: str | None
    unseen: tuple[str, ...] = ()
    """The reviewing jobs that have not seen all of the head: a later review can settle that."""


@dataclass(frozen=True)
class _Reason:
    says: str
    next: str
    state: GateState = GateState.FAILING
    unseen_by: str = ""
    """The job that has not seen all of the head."""

    def __str__(self) -> str:
        return f"{' '.join(self.says.split())}; next: {self.next}"


def queued_number(ref: str) -> int | None:
    """Return the number of the pull request that a merge queue's ref belongs to; None for every other branch."""
    queued = _QUEUED.fullmatch(ref)
    return int(queued[1]) if queued else None


def deciding_tree(trees: Iterable[tuple[str, Collection[Action]]]) -> str | None:
    """Return the root of the newest tree that works or reviews; if all trees only ask, the newest one's.

    The trees come newest first, each with its jobs' actions. A tree that only asks says nothing about a merge.
    """
    newest = None
    for root, actions in trees:
        newest = newest or root
        if any(action is not Action.ASK for action in actions):
            return root
    return newest


def judge(seen: GateInputs) -> GateVerdict:
    """Return the verdict with all objections, failing ones first."""
    reasons = [*_of_task(seen), *_of_rounds(seen)]
    if seen.task.state is TaskState.DONE:
        reasons += _of_work(seen)
        reasons = reasons or [*_of_another(seen)]
    reasons = sorted(dict.fromkeys(reasons), key=lambda reason: _WORST_FIRST.index(reason.state))
    state = reasons[0].state if reasons else GateState.PASSING
    unseen = tuple(reason.unseen_by for reason in reasons if reason.unseen_by)
    return GateVerdict(state, tuple(map(str, reasons)), seen.head.sha, unseen)


def _of_task(seen: GateInputs) -> Iterator[_Reason]:
    """Yield objections from the task. Only a done task with all jobs ended and no finalize can be ready."""
    task, root = seen.task, seen.task.root_job_id
    match task.state:
        case TaskState.OPEN | TaskState.AWAITING_HUMAN:
            if not any(each.end is None for each in seen.rounds):
                why = f": {task.why}" if task.why else ""
                yield _Reason(
                    f"the task {root} is not done{why}", f"service job tree {root} --watch", GateState.PENDING
                )
        case TaskState.BLOCKED | TaskState.CANCELLED:
            what_next = task.next or f"service job tree {root}"
            yield _Reason(f"the task {root} is {task.state}: {task.reason}", what_next)
        case TaskState.DONE:
            for job in seen.jobs:
                if not job.state.has_ended:
                    yield _Reason(f"{_job_name(job)} is still {job.state}", _show(job), GateState.PENDING)
    last = next((job for job in seen.jobs if job.continuation is Continuation.FINALIZE), None)
    if task.state is TaskState.DONE and (last or seen.finalized):
        why = seen.finalized or (last.reason if last else "") or "its plan was not carried out"
        yield _Reason(f"the task {root} was ended early: {why}", f"service job show {last.job_id if last else root}")


def _of_rounds(seen: GateInputs) -> Iterator[_Reason]:
    for row in seen.rounds:
        if row.end is None:
            command = row.commands[0] if row.commands else f"service job show {row.coordinator_id}"
            yield _Reason(f"round {row.number} of {row.coordinator_id} needs an answer", command, GateState.PENDING)


def _of_work(seen: GateInputs) -> Iterator[_Reason]:
    chain = chain_of(seen.jobs, seen.jobs[0])
    readers = frozenset(job.job_id for job in seen.jobs if job.delegation_id and _reads(seen, job))
    alone = not chain.generations and chain.jobs[-1].action is Action.REVIEW
    yield from _of_outcome(chain.jobs[-1], alone=alone)
    yield from _failed_legs(seen, chain, readers)
    yield from _of_head(seen)
    if seen.head.sha is None:
        yield from (each for each in _of_readers(seen, chain, readers, alone=alone) if each.state is GateState.FAILING)
        return
    yield from _of_readers(seen, chain, readers, alone=alone)
    yield from _of_later(seen)
    yield from (reason for job in chain.standing() for reason in _unmerged_work(seen, job))


def _of_outcome(last: JobRecord, *, alone: bool) -> Iterator[_Reason]:
    """Yield an objection from the coordinator's decision. A root that only reviews is `alone`: it is judged as a
    reviewer.
    """
    if not alone and last.decision in AGAINST:
        yield _Reason(f"{_job_name(last)} {report(last.decision)}", _show(last))


def _of_head(seen: GateInputs) -> Iterator[_Reason]:
    head = seen.head
    if head.foreign:
        yield _Reason(head.foreign, head.next)
    if head.sha is None:
        state = GateState.UNKNOWN if head.hidden else GateState.PENDING
        yield _Reason(head.problem, head.next or f"service job branches {seen.task.root_job_id}", state)


def _failed_legs(seen: GateInputs, chain: Chain, readers: frozenset[str]) -> Iterator[_Reason]:
    """Yield an objection for each leg of the last generations that failed or requests changes; later generations
    replace earlier ones.

    A failure is no objection if its policy leaves the decision to the coordinator, or if a person accepted it.
    """
    for generation in chain.generations[-1:]:
        for leg in generation.legs:
            below = [*_failed_legs(seen, leg.chain, readers)]
            if leg.job.job_id in readers:  # its own verdict is judged with those of the other readers
                yield from below
            elif leg.outcome.state is JobState.SUCCEEDED and leg.outcome.decision in AGAINST:
                yield _Reason(f"{_job_name(leg.job)} {report(leg.outcome.decision)}", _show(leg.outcome))
            elif not _let_pass(seen, leg):
                yield from below
                if leg.outcome.state in FAILING:
                    yield _Reason(f"{_job_name(leg.job)} {_end_words(leg.outcome)}", _show(leg.outcome))


def _let_pass(seen: GateInputs, leg: ChainLeg) -> bool:
    policy = seen.plans.get(leg.job.job_id, Plan()).failure_policy
    if policy is not None and allows_merge(policy):
        return True
    over = (each for each in seen.rounds if each.end is RoundEnd.CONTINUED)
    passed = {(failed.job_id, failed.attempt) for each in over for failed in each.failing}
    return (leg.job.job_id, leg.job.attempt) in passed


def _reads(seen: GateInputs, job: JobRecord) -> bool:
    return job.action is Action.REVIEW or SynthesisRule.VERIFY in seen.plans.get(job.job_id, Plan()).rules


def _of_readers(seen: GateInputs, chain: Chain, readers: frozenset[str], *, alone: bool) -> Iterator[_Reason]:
    """Yield objections of reviewing jobs. A verdict holds until a later review, so the last generation with readers
    counts.
    """
    if alone:
        yield from _verdict(seen, chain.jobs[-1], chain.jobs[-1])
        return
    last = chain.last_with(readers)
    if last and all(_abstains(leg.outcome) for _, leg in last):
        leg = last[0][1]
        yield _Reason(f"{_job_name(leg.job)} abstained, and so did all who were to look", _show(leg.outcome))
    for generation, leg in last:
        if not (_has_quorum(seen, generation, readers) and SynthesisRule.VERIFY not in _plan(seen, leg).rules):
            yield from _verdict(seen, leg.job, leg.outcome)


def _has_quorum(seen: GateInputs, generation: Generation, readers: frozenset[str]) -> bool:
    """Return whether enough readers approve exactly this head commit: then the other readers are not awaited (ruling
    E3).
    """
    plans = [_plan(seen, leg) for leg in generation.legs]
    needed = max((plan.quorum or 1 for plan in plans if SynthesisRule.QUORUM in plan.rules), default=0)
    approving = [leg for leg in generation.legs if _approves(leg.outcome)]
    here = [leg for leg in approving if leg.job.job_id not in readers or _facts(seen, leg.job).look is Look.HERE]
    return 0 < needed <= len(here)


def _verdict(seen: GateInputs, job: JobRecord, outcome: JobRecord) -> Iterator[_Reason]:
    facts, head = _facts(seen, job), seen.head
    if _abstains(outcome):
        return
    if not _approves(outcome):
        yield _Reason(f"{_job_name(job)} {_end_words(outcome)}", _show(outcome))
    elif facts.look is Look.HERE or _settles(seen):
        return
    elif facts.replaced:
        says = (
            f"{_job_name(job)} reviewed an older head, before {(head.sha or '')[:7]} was pushed over it: order a review"
        )
        yield _Reason(says, facts.look_again or _show(job), unseen_by=job.job_id)
    elif facts.look is Look.ELSEWHERE:
        says = f"{_job_name(job)} looked at {facts.looked_at or 'something else'}, the head is {(head.sha or '')[:7]}"
        says += f": it has not seen {facts.unseen}" if facts.unseen else ""
        yield _Reason(
            says, facts.look_again or _show(job), GateState.PENDING, unseen_by=job.job_id if facts.unseen else ""
        )
    else:
        problem = facts.problem or "its run tells no commits"
        says = f"what {_job_name(job)} looked at is not known: {problem}"
        yield _Reason(says, _show(job), GateState.PENDING, unseen_by=job.job_id)


def _settles(seen: GateInputs) -> bool:
    """Return whether a later review of this head replaces the earlier ones, now or once it has ended."""
    later = seen.later
    return later is not None and _is_of_head(seen, later) and not (later.over and _abstains(later.job))


def _is_of_head(seen: GateInputs, later: LaterReview) -> bool:
    return later.facts.look is Look.HERE or (later.head == seen.head.sha and not later.over)


def _of_later(seen: GateInputs) -> Iterator[_Reason]:
    """Yield an objection if the review of this head that a person ordered later is not done, or does not approve."""
    later = seen.later
    if later is None or not _is_of_head(seen, later) or _abstains(later.job):
        return
    name = f"the later review {later.job.job_id}"
    if not later.over:
        yield _Reason(f"{name} is not done", f"service job tree {later.job.root_job_id} --watch", GateState.PENDING)
    elif not _approves(later.job):
        yield _Reason(f"{name} {_end_words(later.job)}", _show(later.job))


def _unmerged_work(seen: GateInputs, job: JobRecord) -> Iterator[_Reason]:
    facts = _facts(seen, job)
    if facts.work is WorkState.UNMERGED:
        command = facts.merge or f"service job merge {job.job_id}"
        says = facts.conflict or f"{_job_name(job)} is not in {seen.head.name}"
        yield _Reason(says, command, GateState.PENDING)
    elif facts.work is WorkState.GONE:
        command = f"service job branches {seen.task.root_job_id}"
        yield _Reason(f"{_job_name(job)} is not in {seen.head.name}, and its branch is gone", command)


def _of_another(seen: GateInputs) -> Iterator[_Reason]:
    """Yield an objection if no work or review of the tree concerns this head. Without this check, any tree would pass
    any pull request.
    """
    if not any(each.work is WorkState.MERGED or each.look is Look.HERE for each in seen.facts.values()):
        says = f"nothing of the task {seen.task.root_job_id} is in {seen.head.name}, and none of its parts looked at it"
        yield _Reason(says, f"service job branches {seen.task.root_job_id}", GateState.PENDING)


def _facts(seen: GateInputs, job: JobRecord) -> JobFacts:
    return seen.facts.get(job.job_id, JobFacts())


def _plan(seen: GateInputs, leg: ChainLeg) -> Plan:
    return seen.plans.get(leg.job.job_id, Plan())


def _approves(job: JobRecord) -> bool:
    return job.state is JobState.SUCCEEDED and job.decision in APPROVING


def _abstains(job: JobRecord) -> bool:
    return job.state is JobState.SUCCEEDED and job.decision is Decision.SKIPPED


def _end_words(job: JobRecord) -> str:
    if job.state is JobState.SUCCEEDED:
        return report(job.decision)
    how = "never ran" if job.state is JobState.SKIPPED else job.state.in_a_sentence
    return f"{how}: {job.reason}" if job.reason else how


def _job_name(job: JobRecord) -> str:
    if job.delegation_id:
        return f"part {job.delegation_id} ({job.job_id})"
    return f"the lead ({job.job_id})"


def _show(job: JobRecord) -> str:
    return f"service job show {job.job_id}"
