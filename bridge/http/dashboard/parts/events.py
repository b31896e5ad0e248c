"""Events as lines for people, the newest first (ruling M3)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workflows.model.event_kinds import EventKind
from workflows.model.rows import EventRecord
from workflows.model.states import FAILING

_JOB_EVENTS: Mapping[str, str] = {
    EventKind.JOB_QUEUED: "queued",
    EventKind.JOB_BEGUN: "started",
    EventKind.JOB_ENDED: "finished",
}
_NAME_AND_STATE = re.compile(r".*?\) (?:is queued|has begun|started|(?:ended )?[a-z]+)")
"""The beginning of these events' messages: the job with its agent and action in parentheses, and its state. Service
0.2 wrote *has begun* and *ended*.
"""


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
    named, state = _NAME_AND_STATE.match(event.message), str(event.data.get("state", ""))
    says = event.message[named.end() :] if named else ""
    what = state if state in FAILING else _JOB_EVENTS[event.kind]
    return EventLine(event.at, event.job_id, what, says.lstrip(",;: "))
