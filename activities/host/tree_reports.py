"""What this host tells trees of their jobs while they run: that one has begun, and what one waits for (ruling B5).

Several reports to one tree travel together. A report that is lost does no harm: the outcome says when a job began.
"""

import asyncio
import logging
from dataclasses import dataclass, field

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from workflows.model.jobs import JobRun
from workflows.temporal.messages import Begun, HeldUp, HostReport

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.2
"""So long a report waits for others; nobody waits for it."""

CROWD, CROWD_SECONDS = 4, 1.0
"""When more reports than that wait, of one tree or of several, they wait so long: most of their jobs have ended then.
A tree that was told something hears nothing more for so long either."""

RETRY_SECONDS = 2.0


@dataclass
class TreeReports:
    """The reports that wait, by tree. Without a client and its loop nothing is sent."""

    client: Client | None = None
    loop: asyncio.AbstractEventLoop | None = None
    waiting: dict[str, list[Begun | HeldUp]] = field(default_factory=dict)
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    def begun(self, run: JobRun, at: float) -> None:
        """The run's agent is about to start."""
        self._add(run, Begun(job_id=run.job_id, offer=run.offer, at=at))

    def held_up(self, run: JobRun, reason: str, what_next: str) -> None:
        """A begun run stands still, or goes on (ruling B3). May be called from any thread."""
        self._add(run, HeldUp(job_id=run.job_id, attempt=run.attempt, reason=reason, next=what_next))

    def ended(self, run: JobRun) -> None:
        """Drop what is not sent yet of a job that has ended: its outcome says it all."""
        kept = [each for each in self.waiting.get(run.root_job_id, ()) if each.job_id != run.job_id]
        if run.root_job_id in self.waiting:
            self.waiting[run.root_job_id] = kept

    def _add(self, run: JobRun, report: Begun | HeldUp) -> None:
        if self.loop is None:
            self.waiting.setdefault(run.root_job_id, []).append(report)
        else:
            self.loop.call_soon_threadsafe(self._queue, run.root_job_id, report)

    def _queue(self, root: str, report: Begun | HeldUp) -> None:
        first = root not in self.waiting
        self.waiting.setdefault(root, []).append(report)
        if first:
            task = asyncio.get_running_loop().create_task(self._send(root))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, root: str) -> None:
        """Until Temporal has taken them, or the tree is over."""
        await asyncio.sleep(GATHER_SECONDS)
        if sum(map(len, self.waiting.values())) > CROWD:
            await asyncio.sleep(CROWD_SECONDS - GATHER_SECONDS)
        while reports := self.waiting.get(root):
            sent = tuple(reports)
            if await self._signal(root, sent):
                self.waiting[root] = [each for each in self.waiting[root] if each not in sent]
                await asyncio.sleep(CROWD_SECONDS)
            else:
                await asyncio.sleep(RETRY_SECONDS)
        self.waiting.pop(root, None)

    async def _signal(self, root: str, reports: tuple[Begun | HeldUp, ...]) -> bool:
        assert self.client is not None
        report = HostReport(
            begun=tuple(each for each in reports if isinstance(each, Begun)),
            held_up=tuple(each for each in reports if isinstance(each, HeldUp)),
        )
        try:
            await self.client.get_workflow_handle(root).signal("report", report)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return True
            log.warning("tree %s cannot be told that its jobs have begun: %s", root, error)
            return False
        return True
