"""The timeline of a tree: who ran when, and what was waited for (ruling M3)."""

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.http.dashboard.parts.timeline import Course, JobRow, PartKind, Timeline, draw
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from workflows.model.rounds import RoundEnd
from workflows.model.rows import EventRecord, JobRecord
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("M3")

START = 1_000_000.0
NOW = START + 1000


def job(number: int, queued: float, begun: float | None = None, ended: float | None = None, **fields: Any) -> JobRecord:
    """Return a job with its moments in seconds from the start."""
    moments = {name: START + at for name, at in (("started_at", begun), ("ended_at", ended)) if at is not None}
    state = JobState.SUCCEEDED if ended is not None else JobState.RUNNING if begun is not None else JobState.QUEUED
    row = {"delegation_id": f"leg-{number}", "state": state, "queued_at": START + queued} | moments
    return seeds.job(f"{ROOT}.{number}" if number else ROOT, **(row | fields))


def told(job_id: str, kind: str, at: float, **data: Any) -> EventRecord:
    return seeds.event(1, job_id, kind=kind, at=START + at, data=data)


def drawn(*jobs: JobRecord, cut: bool = True, **course: Any) -> Timeline:
    given: dict[str, Any] = {"jobs": jobs, "events": (), "waits": (), "rounds": (), "follows": (), "now": NOW}
    given["names"] = {job.job_id: job.name for job in jobs}
    return draw(Course(**(given | course)), cut=cut)


def kinds(lane: JobRow) -> list[tuple[str, float, float]]:
    """Return the lane's parts, with their moments in seconds from the start."""
    return [(bar.part.kind.value, bar.part.start - START, bar.part.end - START) for bar in lane.bars]


def test_a_job_waits_for_its_place_then_runs() -> None:
    [lane] = drawn(job(0, 0, 10, 100)).lanes
    assert kinds(lane) == [("place", 0, 10), ("ran", 10, 100)]
    assert [bar.x for bar in lane.bars] == pytest.approx([0, 10])
    assert [bar.width for bar in lane.bars] == pytest.approx([10, 90])
    assert lane.took == 90
    assert "waits 10 s to start" in lane.bars[0].part.words
    assert "ran 1 min 30 s" in lane.bars[1].part.words


def test_it_waits_for_the_last_of_the_jobs_it_depends_on_then_for_its_place() -> None:
    jobs = (job(1, 0, 0, 50), job(2, 0, 0, 80), job(3, 0, 90, 100))
    lane = drawn(*jobs, follows=[(f"{ROOT}.1", f"{ROOT}.3"), (f"{ROOT}.2", f"{ROOT}.3")]).lanes[2]
    assert kinds(lane) == [("dependency", 0, 80), ("place", 80, 90), ("ran", 90, 100)]
    assert "for leg-2" in lane.bars[0].part.words


def test_each_attempt_has_a_bar_and_who_had_to_order_it_is_waited_for() -> None:
    again = job(1, 0, 500, 600, attempt=2)
    name = again.job_id
    events = [
        told(name, "job_queued", 0, attempt=1),
        told(name, "job_begun", 10, attempt=1),
        told(name, "job_ended", 100, attempt=1, state="failed"),
        told(name, "job_queued", 490, attempt=2),
    ]
    [lane] = drawn(again, events=events).lanes
    assert kinds(lane) == [
        ("place", 0, 10),
        ("ran", 10, 100),
        ("person", 100, 490),
        ("place", 490, 500),
        ("ran", 500, 600),
    ]
    ran = [bar.part for bar in lane.bars if bar.part.kind is PartKind.RAN]
    assert [part.state for part in ran] == ["failed", "succeeded"]
    assert ran[0].words.startswith("attempt 1 failed: ran 1 min 30 s")
    assert lane.took == 190


def test_a_limit_of_its_program_splits_an_attempt() -> None:
    wait = told(ROOT, "runtime_waits", 20, attempt=1, until=START + 60)
    [lane] = drawn(job(0, 0, 0, 100), waits=[wait]).lanes
    assert kinds(lane) == [("ran", 0, 20), ("limit", 20, 60), ("ran", 60, 100)]
    assert lane.took == 60


def test_a_round_is_a_wait_for_a_person_of_the_job_that_asked() -> None:
    over: dict[str, Any] = {"opened_at": START + 20, "end": RoundEnd.ANSWERED, "closed_at": START + 50}
    lane, _ = drawn(job(0, 0, 0, 20), job(1, 50, 50, 60), rounds=[seeds.round_(**over)]).lanes
    assert kinds(lane) == [("ran", 0, 20), ("person", 20, 50)]
    assert "which?" in lane.bars[1].part.words


def test_what_runs_or_waits_lasts_until_now() -> None:
    runs, waits = drawn(job(0, 0, 10), job(1, 0)).lanes
    assert kinds(runs)[-1] == ("ran", 10, 1000)
    assert runs.bars[-1].part.words.startswith("runs since")
    assert kinds(waits) == [("place", 0, 1000)]
    assert waits.took is None


def test_a_retry_that_is_queued_has_not_begun_with_the_first_attempt() -> None:
    again = job(0, 0, 10, attempt=2, state=JobState.QUEUED)
    events = [told(ROOT, "job_begun", 10, attempt=1), told(ROOT, "job_ended", 20, attempt=1, state="failed")]
    [lane] = drawn(again, events=[*events, told(ROOT, "job_queued", 20, attempt=2)]).lanes
    assert kinds(lane) == [("place", 0, 10), ("ran", 10, 20), ("place", 20, 1000)]


def test_the_critical_path_leads_back_from_the_last_end_by_what_was_awaited_longest() -> None:
    jobs = (job(0, 0, 0, 10), job(1, 10, 10, 40), job(2, 10, 10, 90), job(3, 90, 90, 100))
    follows = [(ROOT, f"{ROOT}.1"), (ROOT, f"{ROOT}.2"), (f"{ROOT}.1", f"{ROOT}.3"), (f"{ROOT}.2", f"{ROOT}.3")]
    assert [lane.critical for lane in drawn(*jobs, follows=follows).lanes] == [True, False, True, True]
    assert [lane.critical for lane in drawn(job(0, 0, 0, 10)).lanes] == [False], "one job is no path"


def test_idle_days_are_cut_short_and_say_what_was_waited_for() -> None:
    day = 86_400
    over: dict[str, Any] = {"opened_at": START + 100, "end": RoundEnd.ANSWERED, "closed_at": START + 4 * day}
    jobs = (job(0, 0, 0, 100), job(1, 4 * day, 4 * day, 4 * day + 100))
    course = drawn(*jobs, rounds=[seeds.round_(**over)])
    [gap] = course.gaps
    assert "3 d 23 h" in gap.words
    assert gap.words.endswith(" of waiting for you, shortened in the chart")
    first, last = (next(bar for bar in lane.bars if bar.part.kind is PartKind.RAN) for lane in course.lanes)
    assert first.width == pytest.approx(last.width)
    assert first.width > 45
    plain = drawn(*jobs, rounds=[seeds.round_(**over)], cut=False)
    assert plain.gaps == ()
    assert plain.idle, "so the page offers to cut it"
    assert plain.lanes[0].bars[0].width < 1


def test_labels_are_whole_minutes_evenly_apart_with_the_date_where_it_is_not_today_s() -> None:
    first, second, *_ = drawn(job(0, 0, 3, 340)).ticks
    assert first.label == f"{datetime.fromtimestamp(START + 20).astimezone():%H:%M}"
    assert (first.x, second.x - first.x) == pytest.approx((100 * 20 / 340, 100 * 60 / 340))
    later = drawn(job(0, 0, 3, 340), now=NOW + 3 * 86_400).ticks
    assert [" " in tick.label for tick in later] == [True] + [False] * (len(later) - 1)
    [only] = drawn(job(0, 0, 0.1, 0.3)).ticks
    assert (only.x, only.label.count(":")) == (0, 2), "the start, to the second"


def test_a_tree_that_was_never_idle_has_nothing_to_cut() -> None:
    assert not drawn(job(0, 0, 1, 100), job(1, 50, 50, 200)).idle


@st.composite
def courses(draw_: st.DrawFn) -> tuple[JobRecord, ...]:
    moments = st.floats(0, draw_(st.sampled_from([3.0, 600.0, 5 * 86_400.0])), allow_nan=False)
    return tuple(
        job(number, *sorted(draw_(st.tuples(moments, moments, moments)))) for number in range(draw_(st.integers(1, 40)))
    )


@given(courses(), st.booleans())
def test_bars_stay_on_the_axis_in_order_and_labels_apart(jobs: tuple[JobRecord, ...], cut: bool) -> None:
    course = drawn(*jobs, cut=cut)
    for lane in course.lanes:
        assert all(bar.x >= 0 and bar.x + bar.width <= 100.01 for bar in lane.bars)
        assert [bar.x for bar in lane.bars] == sorted(bar.x for bar in lane.bars)
    places = [tick.x for tick in course.ticks]
    assert places
    assert all(right - left >= 12 for left, right in pairwise(places))
    apart = [right - left for left, right in pairwise(places)]
    assert cut or apart == pytest.approx(apart[:1] * len(apart)), "evenly"
    assert len(places) <= 9
    ends = sorted(
        (job.ended_at or 0, lane.bars[-1].x + lane.bars[-1].width)
        for job, lane in zip(jobs, course.lanes, strict=True)
        if lane.bars
    )
    assert all(one[1] <= other[1] + 0.41 for one, other in pairwise(ends)), "later is further right"
