"""The list of trees: the state of each, and who waits for what."""

import time
from collections.abc import Iterator

import pytest

from activities.settings.home import Home
from activities.store import attempt_rows, tree_rows
from activities.store.registry import host_rows
from activities.store.tree_list import TreeFilter
from bridge.operations.jobs import tree_list
from bridge.operations.jobs.tree_list import Awaited, TreeRow
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.tree.simulator import tree_input
from workflows.contract.models import Decision
from workflows.model.errors import UsageError
from workflows.model.rounds import RoundKind
from workflows.model.rows import FailingRecord, JobRecord, QuestionRecord, Records
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.policy.tree_states import TreeState


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    made = Service(home)
    yield made
    made.store.dispose()


def only(service: Service) -> TreeRow:
    [row] = tree_list.find(service, TreeFilter())
    return row


def asking() -> JobRecord:
    """Return a root that asked people, and so was blocked."""
    return seeds.job(state=JobState.BLOCKED, decision=Decision.BLOCKED, summary="Which store?", ended_at=2.0)


def test_a_tree_that_was_answered_and_is_done_is_not_blocked(service: Service) -> None:
    last = {"delegation_id": None, "continuation": Continuation.ANSWERED, "state": JobState.SUCCEEDED}
    over = seeds.round_(end="answered", closed_at=3.0)
    done = seeds.task(state=TaskState.DONE, ended_at=9.0)
    seeds.write(service, done, asking(), seeds.job(f"{ROOT}.1", **last, summary="In memory.", ended_at=9.0), over)
    row = only(service)
    assert (row.tree.state, row.tree.last_words, row.tree.waits_for.who) == (TreeState.DONE, "In memory.", "")
    assert (row.tree.jobs, row.tree.ended_jobs, row.tree.elapsed_seconds) == (2, 2, 8.0)
    assert (row.root.job_id, row.root.state) == (ROOT, JobState.BLOCKED), "the first job's own keys are as they were"


def test_a_person_is_asked_for_the_answer(service: Service) -> None:
    questions = [QuestionRecord(id=name, prompt=f"Which {name}?", job_id=ROOT) for name in ("store", "key")]
    asked = seeds.round_(questions=tuple(questions), expires_at=7.0)
    seeds.write(service, seeds.task(state=TaskState.AWAITING_HUMAN), asking(), asked)
    wait = only(service).tree.waits_for
    assert (wait.who, wait.what, wait.until) == (Awaited.PERSON, "Which store? (and 1 more)", 7.0)
    assert wait.next == f"service resume {ROOT}"


def test_a_person_decides_about_a_failure_and_opens_a_blocked_tree(service: Service) -> None:
    failing = FailingRecord(leg="build", job_id=f"{ROOT}.1", attempt=1, state=JobState.FAILED, reason="tests are red")
    seeds.write(service, seeds.round_(kind=RoundKind.FAILURE, questions=(), failing=(failing,)))
    seeds.write(service, seeds.task(state=TaskState.AWAITING_HUMAN), seeds.job(state=JobState.SUCCEEDED))
    assert only(service).tree.waits_for.what == "part build failed: tests are red"
    other = "job-bbbbbbbbbbbb"
    way = f"service job retry {other}.1"
    blocked = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "next": way, "reason": "tests are red"}
    seeds.write(service, seeds.task(other, opened_at=2.0, **blocked), seeds.job(other, state=JobState.SUCCEEDED))
    row = tree_list.find(service, TreeFilter(state=TreeState.BLOCKED))[0]
    assert row.tree.waits_for == tree_list.TreeWait(who=Awaited.PERSON, what="tests are red", next=way)
    assert row.tree.last_words == "tests are red"


def test_a_tree_waits_for_its_host_then_for_a_runtime_then_for_a_place(service: Service) -> None:
    rows = Records(task=seeds.task(), jobs=(seeds.job(state=JobState.QUEUED, reason="waits for a free slot"),))
    tree_rows.begin(service.store, tree_input(root_job_id=ROOT), "web-1", rows)
    wait = only(service).tree.waits_for
    assert (wait.who, wait.next) == (Awaited.HOST, "on web-1: service daemon start")
    host_rows.see(service.store, "web-1", slots=1, started_at=1.0)
    assert only(service).tree.waits_for == tree_list.TreeWait(who=Awaited.PLACE, what="waits for a free slot")
    assert only(service).tree.state is TreeState.QUEUED
    limit = {"runtime": "claude_code", "kind": "rate_limit", "message": "limit", "at": 1.0, "number": 1}
    soon = time.time() + 60
    attempt_rows.defer(service.store, attempt_rows.Deferral(job_id=ROOT, attempt=1, until=soon, **limit))  # type: ignore[arg-type]
    seeds.write(service, seeds.job(revision=2))
    wait = only(service).tree.waits_for
    assert (wait.who, wait.until, wait.what.startswith("claude_code works again at ")) == (Awaited.RUNTIME, soon, True)


def test_an_unknown_state_is_refused_with_those_there_are() -> None:
    assert tree_list.state_by_name("") is None
    assert tree_list.state_by_name("waiting") is TreeState.WAITING
    assert tree_list.state_by_name("awaiting_human") is TreeState.WAITING
    with pytest.raises(UsageError, match="'succeeded' is not a state of a task; they are queued") as refused:
        tree_list.state_by_name("succeeded")
    assert refused.value.hint == "service job list --jobs --state succeeded"
    with pytest.raises(UsageError) as refused:
        tree_list.state_by_name("x")
    assert not refused.value.hint
