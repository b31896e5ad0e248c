"""Server-sent events, which a client resumes after a disconnect (ruling J9)."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from bridge.http.wire import projections
from bridge.http.wire.thread_pools import read
from bridge.operations.jobs import jobs
from bridge.operations.jobs.views import Event
from bridge.operations.service import Service
from workflows.model.errors import UsageError
from workflows.model.rows import EventRecord

PAGE = 200
LOOK_SECONDS = 0.3
QUIET_SECONDS = 15.0
END = b"event: end\ndata: {}\n\n"
STILL_HERE = b": still here\n\n"


def resumed_at(last_event_id: str | None, cursor: int) -> int:
    """Return the sequence number of the last event that the client has. The `Last-Event-ID` header takes precedence
    over the cursor.
    """
    if last_event_id is None:
        return cursor
    if not last_event_id.isascii() or not last_event_id.isdigit() or len(last_event_id) > 9:
        raise UsageError("Last-Event-ID must be the id of an event that was sent before")
    return int(last_event_id)


def look(service: Service, job_id: str, after: int, whole_tree: bool | None) -> tuple[list[EventRecord], bool]:
    """Return the events after `after`, and whether they are the last."""
    over = jobs.tree(service, job_id).over  # read first, so that the events include all up to the end
    events = jobs.events(service, job_id, after=after, limit=PAGE, whole_tree=whole_tree)
    return events, over and len(events) < PAGE


async def stream(
    service: Service, job_id: str, after: int, whole_tree: bool | None, opens: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Yield past events, then new ones until the tree has ended or the caller's token no longer `opens` the bridge."""
    sent = time.monotonic()
    yield b"retry: 2000\n\n"
    while await opens():
        records, over = await read(look, service, job_id, after, whole_tree)
        for record in records:
            if not await opens():  # a slow reader takes its time for a page of events
                return
            after, sent = record.seq, time.monotonic()
            event = await read(projections.hide_paths, service, Event.of(record))
            yield f"id: {after}\nevent: {record.kind}\ndata: {event.model_dump_json()}\n\n".encode()
        if over:
            yield END
            return
        if time.monotonic() - sent > QUIET_SECONDS:
            sent = time.monotonic()
            yield STILL_HERE
        if len(records) < PAGE:
            await asyncio.sleep(LOOK_SECONDS)
