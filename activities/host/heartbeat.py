"""Heartbeats of activities to Temporal: a dead host is missed within seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio import activity

from activities.redaction.redact import redacted
from activities.runs.supervised_run import Progress

BEAT_SECONDS = 2.0
WAITING_SECONDS = 5.0
"""Longer interval for a run that waits for its slot: it has nothing to stop."""


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
        line = redacted(self.progress.last_line)
        return {"stage": self.stage, "output_bytes": self.progress.stdout_bytes, "last_line": line}


@asynccontextmanager
async def beating(beat: Heartbeat) -> AsyncIterator[None]:
    """Send heartbeats while the context lasts. The first one waits: taking the activity has just been reported."""

    async def beats() -> None:
        await asyncio.sleep(BEAT_SECONDS)
        while True:
            activity.heartbeat(beat.details())
            await asyncio.sleep(WAITING_SECONDS if beat.stage == "waiting" else BEAT_SECONDS)

    beating = asyncio.create_task(beats())
    try:
        yield
    finally:
        beating.cancel()
