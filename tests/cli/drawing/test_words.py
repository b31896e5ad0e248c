"""Programs' words as sentences for people."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from activities.runs.status import RunStage, RunStatus
from bridge.http.dashboard.frame import render
from bridge.operations.branches.branches import BranchState, LegBranch
from bridge.operations.jobs.jobs import JobDetail
from cli.branches import _row
from cli.drawing.words import UNKNOWN, ago, clock, in_words, readable
from tests import rows
from tests.bridge import seeds
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.text.sizes import format_size


@pytest.mark.parametrize(
    ("stage", "shown"),
    [
        (RunStage.WAITING, "queued"),
        (RunStage.RUNNING, "running; it has printed nothing yet"),
        (RunStage.PUT_OFF, "put off, not running; it has printed nothing yet"),
        (RunStage.ENDED, "finished, saving the result; it has printed nothing yet"),
    ],
)
def test_what_an_agent_is_doing_reads_as_a_sentence(stage: RunStage, shown: str) -> None:
    detail = JobDetail(seeds.job(), None, None, None, None, RunStatus(stage))
    lines = in_words(detail, "codex")
    assert [line.removeprefix("agent is").strip() for line in lines if line.startswith("agent is")] == [shown]


@pytest.mark.parametrize("state", BranchState)
def test_what_a_branch_is_reads_as_a_sentence(state: BranchState) -> None:
    leg = LegBranch("one", "job-1.1", JobState.RUNNING, "service/one", None, None, state)
    words = {"waiting": "not made yet", "running": "being worked on", "empty": "no commits"}
    assert _row(leg, "")[4] == words.get(state, state)
    assert str(state).isalpha(), "a word, for programs"


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2026-07-01 12:00:00 UTC"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-01 14:00:00 CEST"),
        ("<+03>-3", "2026-07-01 15:00:00 +03"),
    ],
    indirect=["zone"],
)
def test_a_time_says_in_which_zone_it_is(zone: None, shown: str) -> None:
    assert clock(1782907200.0) == shown


@pytest.mark.parametrize("zone", ["UTC"], indirect=True)
def test_fields_of_programs_are_read_by_people(zone: None) -> None:
    fields = readable([("repos", ["a/b", "c/d"]), ("added_at", 1782907200.0), ("enabled", True)])
    assert list(fields) == [("repos", "a/b, c/d"), ("added_at", "2026-07-01 12:00:00 UTC"), ("enabled", True)]


@pytest.mark.ruling("B3", "engine:outside")
@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.CANCELLED])
def test_a_job_of_a_deleted_tree_says_why_it_is_over_and_what_starts_it_anew(state: JobState) -> None:
    anew = 'service agent implement dev "MESSAGE" --repo acme/shop'
    left: dict[str, Any] = {"reason": "nobody knows", "next": anew, "waits_for": WaitsFor.START}
    task = rows.task(state=TaskState.CANCELLED, **left)
    text = "\n".join(map(str, in_words(JobDetail(seeds.job(state=state), task, None, None, None), "codex")))
    assert "nobody knows" in text
    assert anew in text


@pytest.mark.ruling("engine:gc")
@pytest.mark.parametrize(
    ("count", "size"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9_960, "10.0 kB"),
        (83_000, "83 kB"),
        (52_500_000_000, "52 GB"),
    ],
)
def test_bytes_are_told_in_the_largest_unit_that_fits(count: int, size: str) -> None:
    assert format_size(count) == size


@pytest.mark.parametrize("at", [float("nan"), float("inf"), float("-inf"), 1e18])
def test_a_time_that_no_clock_has_shown_is_unknown(at: float) -> None:
    assert clock(at) == UNKNOWN
    assert ago(at) == ("0s ago" if at == 1e18 else UNKNOWN)
    assert "unknown time" in render.ago(at)
