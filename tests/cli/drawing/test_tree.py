"""A tree on a terminal: the final summary on top, then times, and a line per job in order of dispatch."""

import time

import pytest

from bridge.operations.jobs.jobs import Tree
from cli.drawing.tree import lines
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from workflows.contract.models import Decision
from workflows.model.rows import JobRecord
from workflows.model.settings import Bounds
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState

NOW = 10_000.0
LEGS = [f"{ROOT}.{number}" for number in range(12)]


@pytest.fixture(autouse=True)
def _at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)


def ran(job_id: str, queued: float, began: float | None, ended: float | None, **fields: object) -> JobRecord:
    times = {"queued_at": NOW + queued, "started_at": began and NOW + began, "ended_at": ended and NOW + ended}
    return seeds.job(job_id, **{"state": JobState.SUCCEEDED} | times | fields)


def test_a_tree_that_asked_and_is_done_reads_so_from_top_to_bottom() -> None:
    root = ran(ROOT, -100, -98, -90, state=JobState.BLOCKED, decision=Decision.BLOCKED, summary="Which store?")
    leg = ran(LEGS[1], -60, -50, -40, delegation_id="build", decision=Decision.IMPLEMENTED, attempt=2)
    spent = {"usage": Usage(input_tokens=1000, output_tokens=1), "cost_usd": 0.25}
    after = ran(
        LEGS[2], -30, -30, -10, delegation_id=None, continuation=Continuation.ANSWERED, **spent, summary="All in."
    )
    task = seeds.task(title="Choose", state=TaskState.DONE, opened_at=NOW - 100, ended_at=NOW - 10, paused_seconds=30.0)
    view = [*lines(Tree(task, (root, leg, after), Bounds(), rounds=(seeds.round_(end="answered"),)))]
    assert view[0] == "task-0123456789ab  done  Choose"
    assert view[1] == "  final summary: All in."
    assert "  started 1970-01-01 " in view[2]
    assert view[2].endswith(", took 1m, and waited 30s for people")
    assert view[3].startswith("  jobs 3 of 64, time 1m of ")
    assert view[4:] == [
        "",
        f"✔ {ROOT} scout ask: answered, waited 2s, took 8s  Which store?",
        "├─ ✔ .1 build scout ask: succeeded changes made, attempt 2, waited 10s, took 10s",
        "└─ ✔ .2 scout goes on after the answer: succeeded, took 20s [1,001 tokens, $0.25]  All in.",
    ]


def test_a_tree_that_waits_says_what_is_asked_and_since_when_each_job_runs_or_waits() -> None:
    root = ran(ROOT, -100, -98, -90, state=JobState.BLOCKED)
    runs = ran(LEGS[1], -60, -50, None, delegation_id="build", state=JobState.RUNNING)
    queued = ran(LEGS[2], -60, None, None, delegation_id="check", state=JobState.QUEUED, reason="waits for a free slot")
    task = seeds.task(state=TaskState.AWAITING_HUMAN, opened_at=NOW - 100, paused_since=NOW - 20)
    view = [*lines(Tree(task, (root, runs, queued), Bounds(), rounds=(seeds.round_(),)))]
    assert view[0].split("  ")[1] == "needs you"
    assert view[1].endswith(", for 1m20s, and waited 20s for people")
    assert view[3] == "  asks you: which?"
    assert view[-3:] == [
        f"⏸ {ROOT} scout ask: asks you, waited 2s, took 8s",
        "├─ ▶ .1 build scout ask: running, waited 10s, for 50s",
        "└─ · .2 check scout ask: queued, waits 1m  waits for a free slot",
    ]


def test_where_hosts_share_the_work_each_job_names_its_own() -> None:
    legs = [ran(leg, -9, -9, -1, delegation_id=f"leg-{number}") for number, leg in enumerate(LEGS[:3]) if number]
    places = {ROOT: "web-1", LEGS[1]: "web 2"}
    shown = [*lines(Tree(seeds.task(), (ran(ROOT, -9, -9, -9), *legs), Bounds(), hosts=places))][-3:]
    assert [line.partition("succeeded")[2] for line in shown] == [
        ", on web-1, took 0s",
        ', on "web 2", took 8s',
        ", took 8s",
    ]


def test_siblings_are_in_order_of_dispatch() -> None:
    legs = [ran(leg, -9, -9, -1, delegation_id=f"leg-{number}") for number, leg in enumerate(LEGS) if number]
    shown = lines(Tree(seeds.task(), (ran(ROOT, -9, -9, -9), *legs), Bounds()))
    assert [line.split()[3] for line in shown if " leg-" in line] == [f"leg-{number}" for number in range(1, 12)]
