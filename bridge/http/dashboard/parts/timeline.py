"""The timeline of a tree: when each job ran, what it waited for, and which jobs decided how long it all took."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bridge.http.dashboard.frame.render import one_line, precise_span
from workflows.model.event_kinds import EventKind
from workflows.model.rows import EventRecord, JobRecord, RoundRecord
from workflows.model.states import JobState
from workflows.policy.decisions import state_label

THIN = 0.4
"""The least width of a bar in percent, so that a moment can still be seen and pointed at."""
SLIVER = 0.8
"""The least width at which the hatch of a wait can be told from others."""
CUT, CUTS = 4.0, 40.0
"""The width of an idle time that is cut short, and of all of them together at most."""
TICKS, APART = 6, 12.0
"""The number of labels on the axis, about, and the least distance between two of them."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
DAY = 86_400

_WAITED = {
    "dependency": "of waiting for other jobs",
    "place": "in the queue",
    "limit": "of waiting for a program",
    "person": "of waiting for you",
}

Follows = Iterable[tuple[str, str]]
"""Pairs of jobs: the second could only begin after the first."""


class PartKind(StrEnum):
    """The kinds of parts of a bar: running, or waiting for something."""

    RAN = "ran"
    DEPENDENCY = "dependency"
    PLACE = "place"
    LIMIT = "limit"
    PERSON = "person"


@dataclass(frozen=True)
class TimePart:
    """A part of a job's time, in words too; of an attempt also its state."""

    start: float
    end: float
    kind: PartKind
    words: str
    state: str = ""


@dataclass(frozen=True)
class Bar:
    """A part's place on the axis, in percent."""

    x: float
    width: float
    part: TimePart

    @property
    def is_sliver(self) -> bool:
        """Return whether this is a wait too short to be recognised: it is told in words, and not drawn."""
        return self.part.kind is not PartKind.RAN and self.width < SLIVER


@dataclass(frozen=True)
class JobRow:
    """A job's row."""

    job: JobRecord
    label: str
    """Its state for people."""
    name: str
    bars: tuple[Bar, ...]
    took: float | None
    """The seconds that the job ran; None if the job never ran."""
    critical: bool


@dataclass(frozen=True)
class Tick:
    """A label of the axis."""

    x: float
    label: str


@dataclass(frozen=True)
class Gap:
    """An idle time that is cut short."""

    x: float
    width: float
    words: str


@dataclass(frozen=True)
class Timeline:
    """The course of a tree, from its first job's dispatch to its end, or to now."""

    lanes: tuple[JobRow, ...]
    ticks: tuple[Tick, ...]
    gaps: tuple[Gap, ...]
    idle: bool
    """True if some idle times are long enough to be cut short."""
    kinds: frozenset[PartKind]
    """The kinds of parts that occur, for the legend."""


@dataclass(frozen=True)
class Course:
    """The rows that a timeline is made of."""

    jobs: Sequence[JobRecord]
    events: Sequence[EventRecord]
    waits: Sequence[EventRecord]
    """From when until when a runtime could not work."""
    rounds: Sequence[RoundRecord]
    follows: Follows
    now: float
    names: Mapping[str, str]
    """The name of each job for people, by job id."""


def draw(course: Course, *, cut: bool) -> Timeline:
    """Lay out a tree's course. `cut` shortens the times in which nothing ran, if they are most of it."""
    parts = _parts(course)
    every = [part for of_job in parts.values() for part in of_job]
    start = min((job.queued_at for job in course.jobs), default=course.now)
    end = max((part.end for part in every), default=start)
    idle = [*_long(_idle(every, start, end), end - start)]
    scale = _Scale(start, max(end, start + 1), idle if cut else ())
    critical = _critical(course, parts)
    lanes = tuple(_lane(course, job, parts[job.job_id], scale, job.job_id in critical) for job in course.jobs)
    return Timeline(
        lanes=lanes,
        ticks=tuple(_ticks(scale, course.now)),
        gaps=tuple(_gap(begun, ended, every, scale) for begun, ended in scale.cuts),
        idle=bool(idle),
        kinds=frozenset(bar.part.kind for lane in lanes for bar in lane.bars if not bar.is_sliver),
    )


def _lane(course: Course, job: JobRecord, parts: Sequence[TimePart], scale: "_Scale", critical: bool) -> JobRow:
    ran = [part.end - part.start for part in parts if part.kind is PartKind.RAN]
    label = state_label(job, course.rounds)
    bars = tuple(map(scale.bar, parts))
    return JobRow(job, label, course.names[job.job_id], bars, sum(ran) if ran else None, critical)


# What a job did when


@dataclass
class _AttemptTimes:
    queued: float | None = None
    begun: float | None = None
    ended: float | None = None
    state: str = ""


def _parts(course: Course) -> dict[str, list[TimePart]]:
    """Return the parts of each job's time, in order."""
    events = _by_job(course.events)
    attempts = {job.job_id: _attempts(job, course.rounds, events.get(job.job_id, ())) for job in course.jobs}
    ends = {
        job_id: max(attempt.ended or course.now for attempt in times.values()) for job_id, times in attempts.items()
    }
    before = _before(course)
    deferred, asked = _by_job(course.waits), dict[str, list[RoundRecord]]()
    for record in course.rounds:
        asked.setdefault(record.job_id, []).append(record)
    parts_of = dict[str, list[TimePart]]()
    for job in course.jobs:
        last = max(before.get(job.job_id, ()), key=ends.__getitem__, default=None)
        ready = (ends[last], course.names[last]) if last else None
        own = _of_job(attempts[job.job_id], ready, deferred.get(job.job_id, ()), course.now)
        parts = [*own, *_of_rounds(asked.get(job.job_id, ()), course.now)]
        parts_of[job.job_id] = sorted(parts, key=lambda part: part.start)
    return parts_of


def _before(course: Course) -> Mapping[str, Sequence[str]]:
    """Return the jobs that each job had to wait for."""
    known = {job.job_id for job in course.jobs}
    before: dict[str, list[str]] = {}
    for source, target in course.follows:
        if source in known:
            before.setdefault(target, []).append(source)
    return before


def _by_job(events: Iterable[EventRecord]) -> Mapping[str, Sequence[EventRecord]]:
    by_job: dict[str, list[EventRecord]] = {}
    for event in events:
        by_job.setdefault(event.job_id, []).append(event)
    return by_job


def _attempts(job: JobRecord, rounds: Sequence[RoundRecord], events: Iterable[EventRecord]) -> dict[int, _AttemptTimes]:
    """Return when each attempt was queued, started and ended: the last from the job's row, earlier ones from events."""
    attempts = {job.attempt: _AttemptTimes()}
    for event in events:
        number = event.data.get("attempt")
        attempt = attempts.setdefault(number, _AttemptTimes()) if isinstance(number, int) else _AttemptTimes()
        match event.kind:
            case EventKind.JOB_QUEUED:
                attempt.queued = event.at
            case EventKind.JOB_BEGUN:
                attempt.begun = event.at
            case EventKind.JOB_ENDED:
                attempt.ended, attempt.state = event.at, str(event.data.get("state"))
            case _:
                pass
    first, last = attempts[min(attempts)], attempts[job.attempt]
    first.queued = job.queued_at
    last.state, last.ended = state_label(job, rounds), job.ended_at if job.state.has_ended else None
    if job.state is JobState.QUEUED:
        last.begun = None
    elif job.started_at is not None:
        last.begun = job.started_at
    return dict(sorted(attempts.items()))


def _of_job(
    attempts: Mapping[int, _AttemptTimes], ready: tuple[float, str] | None, waits: Sequence[EventRecord], now: float
) -> Iterator[TimePart]:
    """Yield the parts of a job's time. `ready` is when the last job that it depends on ended, and that job's name."""
    before: float | None = None
    for number, attempt in attempts.items():
        queued = attempt.queued if attempt.queued is not None else before or attempt.begun or now
        if before is not None and queued > before:
            yield _wait(before, queued, PartKind.PERSON, "for somebody to run it again")
        until = attempt.begun or attempt.ended or now
        if before is None and ready is not None and min(ready[0], until) > queued:
            yield _wait(queued, min(ready[0], until), PartKind.DEPENDENCY, f"for {one_line(ready[1], 60)}")
            queued = min(ready[0], until)
        if until > queued:
            yield _wait(queued, until, PartKind.PLACE, "to start" if before is None else "to be tried again")
        which = f"attempt {number} " if len(attempts) > 1 else ""
        mine = [wait for wait in waits if wait.data.get("attempt") == number]
        if attempt.begun is not None:
            yield from _of_run(which, attempt.begun, attempt.ended or now, attempt.state, mine)
        before = attempt.ended


def _of_run(which: str, begun: float, ended: float, state: str, waits: Sequence[EventRecord]) -> Iterator[TimePart]:
    """Yield the parts of an attempt: where its program ran, and where that waited for its runtime."""
    at = begun
    for event in sorted(waits, key=lambda wait: wait.at):
        until = event.data.get("until")
        start, end = max(at, event.at), min(ended, float(until) if isinstance(until, int | float) else event.at)
        if end > start:
            yield _ran(which, at, start, "")
            words = f"{_clock(start)}, {precise_span(end - start)}: {one_line(event.message, 100)}"
            yield TimePart(start, end, PartKind.LIMIT, words)
            at = end
    yield _ran(which, at, ended, state)


def _ran(which: str, start: float, end: float, state: str) -> TimePart:
    if state == JobState.RUNNING:
        return TimePart(start, end, PartKind.RAN, f"{which}runs since {_clock(start)}", state)
    words = f"{which}{state + ': ' if state else ''}ran {precise_span(end - start)}, {_clock(start)} to {_clock(end)}"
    return TimePart(start, max(start, end), PartKind.RAN, words, state or JobState.RUNNING)


def _of_rounds(rounds: Iterable[RoundRecord], now: float) -> Iterator[TimePart]:
    for record in rounds:
        about = record.questions[0].prompt if record.questions else "failed parts"
        until = record.closed_at if record.end is not None and record.closed_at else now
        if until > record.opened_at:
            yield _wait(record.opened_at, until, PartKind.PERSON, f"for a person: {one_line(about, 80)}")


def _wait(start: float, end: float, kind: PartKind, for_what: str) -> TimePart:
    return TimePart(start, end, kind, f"{_clock(start)}: waits {precise_span(end - start)} {for_what}")


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%H:%M:%S}"


# Which jobs decided how long it took


def _critical(course: Course, parts: Mapping[str, Sequence[TimePart]]) -> set[str]:
    """Return the critical path: back from the job that ended last, each time to the one that was awaited longest."""
    ends = {job_id: max((part.end for part in mine), default=0.0) for job_id, mine in parts.items()}
    before, path = _before(course), set[str]()
    job = max(ends, key=ends.__getitem__, default=None)
    while job is not None and job not in path:
        path.add(job)
        job = max(before.get(job, ()), key=ends.__getitem__, default=None)
    return path if len(path) > 1 else set()


# The axis


def _idle(parts: Iterable[TimePart], start: float, end: float) -> Iterator[tuple[float, float]]:
    """Yield the times between start and end in which no job ran."""
    at = start
    for part in sorted((part for part in parts if part.kind is PartKind.RAN), key=lambda part: part.start):
        if part.start > at:
            yield at, part.start
        at = max(at, part.end)
    if end > at:
        yield at, end


def _long(idle: Iterable[tuple[float, float]], whole: float) -> Iterator[tuple[float, float]]:
    """Yield the idle times that are longer than a third of the time in which jobs ran."""
    idle = [*idle]
    ran = whole - sum(ended - begun for begun, ended in idle)
    return ((begun, ended) for begun, ended in idle if ran > 0 and ended - begun > max(1.0, ran / 3))


class _Scale:
    """The places of moments on the axis, in percent. Cut times have a fixed width each, all else is proportional."""

    def __init__(self, start: float, end: float, cuts: Sequence[tuple[float, float]]) -> None:
        self.cuts = cuts
        short = min(CUT, CUTS / len(cuts)) if cuts else 0.0
        shown = end - start - sum(ended - begun for begun, ended in cuts)
        per_second = (100 - short * len(cuts)) / max(shown, 1e-6)
        self.pieces: list[tuple[float, float, float, float]] = []
        """Start, end, place and width of each piece that is proportional."""
        x = 0.0
        for begun, ended in (*cuts, (end, end)):
            self.pieces.append((start, begun, x, (begun - start) * per_second))
            x, start = x + (begun - start) * per_second + short, ended
        self.step = next((step for step in STEPS if shown / step <= TICKS), STEPS[-1])

    def at(self, moment: float) -> float:
        before, x = self.pieces[0][0], 0.0
        for start, end, place, width in self.pieces:
            if moment <= start:  # in the cut before this piece
                return x + (place - x) * (moment - before) / (start - before) if start > before else place
            if moment <= end:
                return place + width * (moment - start) / (end - start)
            before, x = end, place + width
        return x

    def bar(self, part: TimePart) -> Bar:
        x = self.at(part.start)
        width = max(THIN, self.at(part.end) - x)
        return Bar(min(x, 100 - width), width, part)


def _gap(begun: float, ended: float, parts: Iterable[TimePart], scale: _Scale) -> Gap:
    waits = [part for part in parts if part.kind is not PartKind.RAN and part.start < ended and part.end > begun]
    longest = max(waits, key=lambda part: min(part.end, ended) - max(part.start, begun), default=None)
    x = scale.at(begun)
    why = _WAITED[longest.kind] if longest else "in which nothing ran"
    return Gap(x, scale.at(ended) - x, f"{precise_span(ended - begun)} {why}, shortened in the chart")


def _ticks(scale: _Scale, now: float) -> Iterator[Tick]:
    """Yield a label at every whole step, as far as there is room; if there is none, one at the start.

    The first has its date unless that is today's, later ones where the date changes.
    """
    last, day = -APART, f"{datetime.fromtimestamp(now).astimezone():%d %b}"
    moments = [*_whole_steps(scale)]
    seconds = scale.step < 60 or not moments
    for moment in moments or [scale.pieces[0][0]]:
        x = scale.at(moment)
        if x - last >= APART and x <= 100 - APART / 2:
            when = datetime.fromtimestamp(moment).astimezone()
            date, time = f"{when:%d %b}", f"{when:%H:%M:%S}" if seconds else f"{when:%H:%M}"
            yield Tick(x, date if scale.step >= DAY else time if date == day else f"{date} {time}")
            last, day = x, date


def _whole_steps(scale: _Scale) -> Iterator[float]:
    """Yield the moments of each piece that are whole steps of local time."""
    for start, end, *_ in scale.pieces:
        shift = datetime.fromtimestamp(start).astimezone().utcoffset()
        east = shift.total_seconds() if shift else 0.0
        first = -((start + east) // -scale.step) * scale.step - east
        yield from (first + scale.step * number for number in range(int((end - first) // scale.step) + 1))
