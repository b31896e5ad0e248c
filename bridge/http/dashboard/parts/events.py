"""Events as lines for people, the newest first (ruling M3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workflows.model.event_kinds import EventKind
from workflows.model.rows import EventRecord
from workflows.model.states import FAILING

_JOB_EVENTS: Mapping[str, tuple[str, str]] = {
    EventKind.JOB_QUEUED: ("queued", " is queued"),
    EventKind.JOB_BEGUN: ("started", " has begun"),
    EventKind.JOB_ENDED: ("finished", " ended "),
}
"""The word for each of these kinds, and the words of its message before which only the job is named."""


@dataclass(frozen=True)
class EventLine:
    """An event: its moment, its job, what happened, and the details."""

    at: float
    job_id: str
    what: str
    says: str


def newest_first(events: Iterable[EventRecord]) -> list[EventLine]:
    """Return the lines of these events. Their times only fall, even if clocks of several hosts differ."""
    return [_line(event) for event in sorted(events, key=lambda event: (event.at, event.seq), reverse=True)]


def _line(event: EventRecord) -> EventLine:
    if event.kind not in _JOB_EVENTS:
        return EventLine(event.at, event.job_id, event.kind.replace("_", " "), event.message)
    what, name_end = _JOB_EVENTS[event.kind]
    state, says = str(event.data.get("state", "")), event.message.partition(name_end)[2]
    if state in FAILING:
        what = state
    return EventLine(event.at, event.job_id, what, says.removeprefix(state).lstrip(",;: "))
