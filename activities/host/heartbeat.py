"""Heartbeats of activities, by which Temporal notices a dead host. Stop orders come faster by other ways: the server's
commands or the store (`stop_orders`). So heartbeats are rare; in a large fleet they would cost more than the jobs.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity

from activities.redaction.redact import redact_text
from activities.runs.supervised_run import Progress

BEAT = timedelta(seconds=10)
"""Interval of heartbeats; shorter if the activity's heartbeat timeout is less than three intervals."""


@dataclass
class Heartbeat:
    """The details of an activity's heartbeat, which are never kept in the history."""

    stage: str = "waiting"
    progress: Progress | None = None

    def begun(self) -> None:
        self.stage = "starting"

    def see(self, progress: Progress) -> None:
        self.stage, self.progress = "running", progress

    def details(self) -> dict[str, str | int]:
        if self.progress is None:
            return {"stage": self.stage}
        line = redact_text(self.progress.last_line)
        return {"stage": self.stage, "output_bytes": self.progress.stdout_bytes, "last_line": line}


@asynccontextmanager
async def beating(beat: Heartbeat) -> AsyncIterator[None]:
    """Send heartbeats while the context lasts. The first one is sent after an interval, since Temporal has just seen
    the activity start.
    """
    missed_after = activity.info().heartbeat_timeout
    interval = min(BEAT, missed_after / 3) if missed_after else BEAT

    async def beats() -> None:
        while True:
            await asyncio.sleep(interval.total_seconds())
            activity.heartbeat(beat.details())

    beating = asyncio.create_task(beats())
    try:
        yield
    finally:
        beating.cancel()
