"""The verdict of the merge gate, case by case (ruling L10)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests import rows
from tests.rows import ROOT
from workflows.contract.models import Action, Decision, FailurePolicy, SynthesisRule
from workflows.github.merge_gate import GateState, GateVerdict, judge
from workflows.github.merge_gate_inputs import GateInputs, Head, JobFacts, LaterReview, Look, Plan, WorkState
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.rows import FailingRecord, JobRecord
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor

pytestmark = pytest.mark.ruling("L10")

HEAD = "def5678" + "0" * 33
PASSING, PENDING, FAILING = GateState.PASSING, GateState.PENDING, GateState.FAILING
HERE = JobFacts(look=Look.HERE)
ELSEWHERE = JobFacts(look=Look.ELSEWHERE, looked_at="abc1234", look_again="look again")
MERGED, UNMERGED, DROPPED = JobFacts(WorkState.MERGED), JobFacts(WorkState.UNMERGED), JobFacts(WorkState.DROPPED)
CONTINUE, ESCALATE = Plan(FailurePolicy.CONTINUE), Plan(FailurePolicy.ESCALATE)
VERIFY = Plan(rules=frozenset({SynthesisRule.VERIFY}))
QUORUM = Plan(rules=frozenset({SynthesisRule.QUORUM}), quorum=2)


def job(number: int, name: str | None, decision: str | None = "implemented", **fields: Any) -> JobRecord:
    """Return the tree's n-th job, ended; its times follow from its number."""
    base: dict[str, Any] = {
        "delegation_id": name,
        "decision": decision,
        "state": JobState(decision) if decision in ("failed", "blocked") else JobState.SUCCEEDED,
        "action": Action.IMPLEMENT,
        "queued_at": 10.0 * number,
        "started_at": 10.0 * number + 1,
        "ended_at": 10.0 * number + 9,
    }
    return rows.job(f"{ROOT}.{number}" if number else ROOT, **(base | fields))


def reader(number: int, name: str, decision: str | None = "approved", **fields: Any) -> JobRecord:
    return job(number, name, decision, **({"action": Action.REVIEW} | fields))


def then(number: int, after: int, flavour: Continuation = Continuation.NORMAL, **fields: Any) -> JobRecord:
    """Return a continuation after another job of the root's."""
    parent = f"{ROOT}.{after}" if after else ROOT
    more: dict[str, Any] = {"decision": "approved", "continuation": flavour, "parent_job_id": parent}
    return job(number, None, **(more | {"action": Action.ASK} | fields))


LEAD = job(0, None, "approved", action=Action.ASK)
A, V, END = job(1, "a"), reader(2, "v"), then(3, 0)
DONE = GateInputs(
    task=rows.task(state=TaskState.DONE, reason="the lead approves the result"),
    jobs=(LEAD, A, V, END),
    head=Head("service/task-1", HEAD),
    facts={A.job_id: MERGED, V.job_id: HERE},
)
"""One leg wrote, one reviewed, the coordinator approved; all of it is in the head."""


def of(*jobs: JobRecord, plans: Any = None, **facts: Any) -> GateInputs:
    """Return this task with other jobs after the root's; facts by the leg's name."""
    by_name = {each.delegation_id: each.job_id for each in jobs if each.delegation_id}
    given = {by_name[name]: each for name, each in facts.items()}
    planned = {f"{ROOT}.{number}": plan for number, plan in (plans or {}).items()}
    return replace(DONE, jobs=(LEAD, *jobs), facts=given, plans=planned)


def task(state: TaskState, **fields: Any) -> GateInputs:
    return replace(DONE, task=rows.task(state=state, **fields))


def continued(job_id: str, attempt: int = 1) -> Any:
    """Return a round in which a person decided to continue although this leg had failed."""
    failed = FailingRecord(leg="x", job_id=job_id, attempt=attempt, state=JobState.FAILED)
    return rows.round_(kind=RoundKind.FAILURE, questions=(), failing=(failed,), end=RoundEnd.CONTINUED, closed_at=2.0)


def nested(decision: str, **plan: Any) -> GateInputs:
    """Return a tree in which leg `a` delegates to `x`, and sums up."""
    x = job(4, "x", decision, parent_job_id=f"{ROOT}.1")
    return of(A, x, then(5, 1), END, a=MERGED, plans={1: Plan(**plan)})


def rerun(queued_at: float) -> GateInputs:
    """Return a tree in which leg `a` delegated before or after its last attempt began."""
    again = A.model_copy(update={"attempt": 2, "started_at": 50.0})
    return of(again, job(4, "x", "failed", parent_job_id=f"{ROOT}.1", queued_at=queued_at), END, a=MERGED)


REPLAN = Continuation.REPLAN
REJECTED = (job(1, "a"), reader(2, "v", "changes_requested"))
FIXED = (job(4, "fix", parent_job_id=f"{ROOT}.3"), reader(5, "again", parent_job_id=f"{ROOT}.3"))
LOOKED = {"again": HERE, "fix": MERGED, "v": ELSEWHERE}
PANEL = (reader(1, "r1"), reader(2, "r2"), reader(3, "r3", "changes_requested"), then(4, 0))
OF_PANEL = {"r1": HERE, "r2": HERE, "r3": HERE}
ALL_QUORUM = dict.fromkeys((1, 2, 3), QUORUM)


@dataclass(frozen=True)
class Case:
    """A case and its verdict: the state, and words of each reason, in order."""

    what: str
    seen: GateInputs
    state: GateState
    says: tuple[str, ...] = ()


CASES = (
    Case("all is well", DONE, PASSING),
    # the task
    Case("still open", task(TaskState.OPEN), PENDING, (f"is not done; next: service job tree {ROOT} --watch",)),
    Case(
        "ending early",
        task(TaskState.OPEN, reason="is being ended: killed", waits_for=WaitsFor.RUNS),
        PENDING,
        ("is not done: is being ended: killed",),
    ),
    Case(
        "a round is open",
        replace(task(TaskState.AWAITING_HUMAN), rounds=(rows.round_(),)),
        PENDING,
        (f"round 1 of {ROOT} needs an answer; next: service resume {ROOT} answer",),
    ),
    Case(
        "waits for a person, and the round is not written yet", task(TaskState.AWAITING_HUMAN), PENDING, ("not done",)
    ),
    Case(
        "blocked",
        task(TaskState.BLOCKED, reason="leg a failed", next=f"service job retry {ROOT}.1"),
        FAILING,
        (f"is blocked: leg a failed; next: service job retry {ROOT}.1",),
    ),
    Case("killed", task(TaskState.CANCELLED, reason="killed by ann"), FAILING, ("is cancelled: killed by ann",)),
    Case("a job still runs", of(A, V, then(3, 0, state=JobState.RUNNING), a=MERGED, v=HERE), PENDING, ("running",)),
    # how it ended
    Case(
        "finalized by a bound",
        replace(
            DONE,
            jobs=(LEAD, A, V, then(3, 0, Continuation.FINALIZE)),
            finalized="64 jobs (delegation_budget_exceeded)",
        ),
        FAILING,
        (f"ended early: 64 jobs (delegation_budget_exceeded); next: service job show {ROOT}.3",),
    ),
    Case(
        "finalized, and nothing tells why",
        replace(DONE, jobs=(LEAD, A, V, then(3, 0, Continuation.FINALIZE))),
        FAILING,
        ("its plan was not carried out",),
    ),
    Case(
        "the coordinator is not content",
        of(A, V, then(3, 0, decision="changes_requested"), a=MERGED, v=HERE),
        FAILING,
        (f"the lead ({ROOT}.3) asks for changes",),
    ),
    # reviews
    Case(
        "a reviewer asks for changes",
        of(A, reader(2, "v", "changes_requested"), END, a=MERGED, v=HERE),
        FAILING,
        (f"part v ({ROOT}.2) asks for changes; next: service job show {ROOT}.2",),
    ),
    Case(
        "a reviewer failed, though its policy is continue",
        of(A, reader(2, "v", "failed", reason="timed out"), END, a=MERGED, plans={2: CONTINUE}),
        FAILING,
        ("failed: timed out",),
    ),
    Case(
        "a reviewer never ran",
        of(A, reader(2, "v", None, state=JobState.SKIPPED, reason="its dependency failed"), END, a=MERGED),
        FAILING,
        ("never ran: its dependency failed",),
    ),
    Case("one abstains", of(A, V, reader(4, "w", "skipped"), END, a=MERGED, v=HERE), PASSING),
    Case("all abstain", of(A, reader(2, "v", "skipped"), END, a=MERGED), FAILING, ("so did all who were to look",)),
    Case(
        "the head moved since",
        of(A, V, END, a=MERGED, v=ELSEWHERE),
        PENDING,
        (f"part v ({ROOT}.2) looked at abc1234, the head is def5678; next: look again",),
    ),
    Case(
        "nobody knows what it looked at",
        of(A, V, END, a=MERGED, v=JobFacts(problem="the commits are gone")),
        PENDING,
        ("is not known: the commits are gone",),
    ),
    Case(
        "a verify leg that implements is a reader too",
        of(A, job(2, "v", "changes_requested"), END, a=MERGED, plans={2: VERIFY}),
        FAILING,
        ("part v",),
    ),
    Case("a root that reviews alone", replace(of(), jobs=(reader(0, ""),), facts={ROOT: HERE}), PASSING),
    Case(
        "a root that reviews alone, and is against it",
        replace(of(), jobs=(rows.job(action=Action.REVIEW, state=JobState.SUCCEEDED, decision="changes_requested"),)),
        FAILING,
        ("asks for changes",),
    ),
    Case(
        "a root that reviewed another head",
        replace(
            of(),
            jobs=(rows.job(action=Action.REVIEW, state=JobState.SUCCEEDED, decision="approved"),),
            facts={ROOT: ELSEWHERE},
        ),
        PENDING,
        ("looked at abc1234",),
    ),
    # several reviewers
    Case("a panel of which one is against it", of(*PANEL, **OF_PANEL), FAILING, ("part r3",)),
    Case("a quorum was asked for, and is met", of(*PANEL, plans=ALL_QUORUM, **OF_PANEL), PASSING),
    Case(
        "a quorum that is not met on this head",
        of(*PANEL, plans=ALL_QUORUM, **(OF_PANEL | {"r2": ELSEWHERE})),
        FAILING,
        ("r3", "part r2"),
    ),
    Case(
        "a quorum does not outvote a verify leg",
        of(*PANEL, plans=ALL_QUORUM | {3: replace(QUORUM, rules=QUORUM.rules | VERIFY.rules)}, **OF_PANEL),
        FAILING,
        ("r3",),
    ),
    Case(
        "somebody else's commit is in the head",
        replace(DONE, head=Head("service/task-1", HEAD, foreign="abc1234 is not of this tree", next="look at it")),
        FAILING,
        ("abc1234 is not of this tree; next: look at it",),
    ),
    # legs that failed
    Case("a leg failed", of(job(1, "a", "failed", reason="no"), V, END, v=HERE), FAILING, ("failed: no",)),
    Case("a leg is blocked", of(job(1, "a", "blocked"), V, END, v=HERE), FAILING, ("was blocked",)),
    Case(
        "a leg was stopped",
        of(A, job(4, "b", None, state=JobState.CANCELLED), V, END, a=MERGED, v=HERE),
        FAILING,
        ("was cancelled",),
    ),
    Case(
        "its failure was left to the coordinator",
        of(A, V, job(4, "b", "failed"), END, a=MERGED, v=HERE, plans={4: CONTINUE}),
        PASSING,
    ),
    Case(
        "its failure was escalated to the coordinator",
        of(A, V, job(4, "b", "failed"), END, a=MERGED, v=HERE, plans={4: ESCALATE}),
        PASSING,
    ),
    Case(
        "a person let its failure pass",
        replace(of(A, V, job(4, "b", "failed"), END, a=MERGED, v=HERE), rounds=(continued(f"{ROOT}.4"),)),
        PASSING,
    ),
    Case(
        "a person let an earlier failure of it pass",
        replace(of(A, V, job(4, "b", "failed", attempt=2), END, a=MERGED, v=HERE), rounds=(continued(f"{ROOT}.4"),)),
        FAILING,
        ("part b",),
    ),
    Case(
        "a leg that wrote is not content with it",
        of(job(1, "a", "changes_requested"), V, END, a=MERGED, v=HERE, plans={1: CONTINUE}),
        FAILING,
        ("part a",),
    ),
    Case("it failed, and its second attempt succeeded", of(job(1, "a", attempt=2), END, a=MERGED), PASSING),
    # generations
    Case(
        "a replan made it good",
        of(*REJECTED, then(3, 0, REPLAN), *FIXED, then(6, 3), a=UNMERGED, **LOOKED),
        PASSING,
    ),
    Case(
        "a replan that nobody looked at",
        of(*REJECTED, then(3, 0, REPLAN), FIXED[0], then(6, 3), a=UNMERGED, fix=MERGED, v=ELSEWHERE),
        FAILING,
        ("part v",),
    ),
    Case(
        "a replan that gave up",
        of(*REJECTED, then(3, 0, REPLAN), a=MERGED, v=HERE),
        FAILING,
        ("part v",),
    ),
    Case(
        "the coordinator went on after a failure",
        of(job(1, "a", "failed"), then(3, 0), *FIXED, then(6, 3), again=HERE, fix=MERGED),
        PASSING,
    ),
    Case(
        "what an earlier generation made is wanted",
        of(A, then(3, 0), *FIXED, then(6, 3), a=UNMERGED, again=HERE, fix=MERGED),
        PENDING,
        ("part a",),
    ),
    Case("a delegated leg failed below", nested("failed"), FAILING, ("part x",)),
    Case("it failed below a leg whose failure may pass", nested("failed", failure_policy="continue"), PASSING),
    Case("what an earlier attempt delegated counts no more", rerun(20.0), PASSING),
    Case("what the last attempt delegated counts", rerun(60.0), FAILING, ("part x",)),
    # work
    Case(
        "a leg is not merged",
        of(A, V, END, a=JobFacts(WorkState.UNMERGED, merge="service job merge it"), v=HERE),
        PENDING,
        (f"part a ({ROOT}.1) is not in service/task-1; next: service job merge it",),
    ),
    Case("an operator dropped it", of(A, V, END, a=DROPPED, v=HERE), PASSING),
    Case("its branch is gone", of(A, V, END, a=JobFacts(WorkState.GONE), v=HERE), FAILING, ("its branch is gone",)),
    Case("it wrote nothing", of(A, V, END, v=HERE), PASSING),
    Case("the lead's own work", of(V, END, v=HERE), PASSING),
    Case(
        "the lead's own work is not merged",
        replace(of(V, END, v=HERE), facts={V.job_id: HERE, ROOT: UNMERGED}),
        PENDING,
        (f"the lead ({ROOT})",),
    ),
    Case("a tree that has nothing to do with this head", of(A, END), PENDING, ("nothing of the task",)),
    # the head
    Case(
        "there is no head",
        replace(DONE, head=Head("service/task-1", None, "nothing is merged yet", "service job merge it")),
        PENDING,
        ("nothing is merged yet; next: service job merge it",),
    ),
    Case(
        "the head cannot be seen",
        replace(DONE, head=Head("service/task-1", None, "it is on web-2", "ask web-2", hidden=True)),
        GateState.UNKNOWN,
        ("it is on web-2; next: ask web-2",),
    ),
    Case(
        "the head cannot be seen, and a leg is against it",
        replace(of(A, reader(2, "v", "changes_requested"), END), head=Head("", None, "hidden", "look", hidden=True)),
        FAILING,
        ("part v", "hidden; next: look"),
    ),
    Case(
        "there is no head, and a reviewer is against it",
        replace(
            of(A, reader(2, "v", "changes_requested"), END), head=Head("service/task-1", None, "no repository", "look")
        ),
        FAILING,
        ("part v", "no repository; next: look"),
    ),
    Case(
        "what fails is told before what is still to come",
        of(A, V, job(4, "b", "failed"), END, a=UNMERGED, v=ELSEWHERE),
        FAILING,
        ("part b", "part v", "part a"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_the_verdict(case: Case) -> None:
    verdict = judge(case.seen)
    assert (verdict.state, len(verdict.reasons)) == (case.state, len(case.says)), verdict.reasons
    for reason, words in zip(verdict.reasons, case.says, strict=True):
        assert words in reason
        assert "; next: " in reason
    assert verdict.head == case.seen.head.sha


@pytest.mark.parametrize("look", [Look.ELSEWHERE, Look.UNKNOWN])
def test_a_review_of_a_head_that_was_pushed_over_is_not_waited_for(look: Look) -> None:
    """Commits beside the reviewed ones can be looked at still; a replaced head needs another review."""
    over = replace(ELSEWHERE, look=look, replaced=True)
    verdict = judge(of(A, V, END, a=MERGED, v=over))
    assert verdict.state is FAILING
    assert "reviewed an older head, before def5678 was pushed over it: order a review" in verdict.reasons[0]
    assert verdict.reasons[0].endswith("; next: look again")
    assert verdict.unseen == (V.job_id,)


UNSEEN = replace(ELSEWHERE, unseen="1 commit in later.txt")


def later(decision: str | None, head: str = HEAD, look: Look = Look.HERE, *, over: bool = True) -> GateInputs:
    """Return the task whose review has not seen all of the head, with a review of the rest that a person asked for."""
    job = rows.job("job-later", decision=decision, state=JobState.SUCCEEDED if over else JobState.RUNNING)
    review = LaterReview(job, over, head, JobFacts(look=look))
    return replace(of(A, V, END, a=MERGED, v=UNSEEN), later=review)


@pytest.mark.parametrize(
    ("seen", "state", "unseen"),
    [
        (later("approved"), PASSING, ()),
        (later("changes_requested"), FAILING, ()),
        (later(None, look=Look.UNKNOWN, over=False), PENDING, ()),
        (later("skipped"), PENDING, (V.job_id,)),
        (later("approved", "b" * 40, Look.ELSEWHERE), PENDING, (V.job_id,)),
        (later(None, "b" * 40, Look.UNKNOWN, over=False), PENDING, (V.job_id,)),
        (replace(later("approved"), jobs=(LEAD, A, reader(2, "v", "changes_requested"), END)), FAILING, ()),
        (replace(later("approved"), facts={A.job_id: MERGED, V.job_id: replace(UNSEEN, replaced=True)}), PASSING, ()),
    ],
    ids=[
        *("approves", "rejects", "runs", "abstains", "of another head", "runs on another head", "against a rejection"),
        "after a force push",
    ],
)
def test_a_later_review_decides_about_its_head_alone(
    seen: GateInputs, state: GateState, unseen: tuple[str, ...]
) -> None:
    verdict = judge(seen)
    assert (verdict.state, verdict.unseen) == (state, unseen), verdict.reasons


@pytest.mark.parametrize("decision", [each for each in Decision if each not in {"approved", "implemented"}])
@pytest.mark.parametrize("make", [lambda seen: seen, lambda seen: replace(seen, plans={V.job_id: VERIFY})])
def test_only_an_approval_passes(decision: Decision, make: Callable[[GateInputs], GateInputs]) -> None:
    """The decision is that of the only reader."""
    seen = make(of(A, reader(2, "v", decision.value), END, a=MERGED, v=HERE))
    assert judge(seen).state is FAILING


def test_a_reason_is_one_line_and_told_once() -> None:
    seen = task(TaskState.BLOCKED, reason="first\nsecond")
    verdict: GateVerdict = judge(seen)
    assert len(verdict.reasons) == 1
    assert "\n" not in verdict.reasons[0]
