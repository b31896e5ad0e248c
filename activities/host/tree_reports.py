"""Reports from this host to trees about their jobs: that a job has begun, or what it waits for (ruling B5).

Several reports to one tree are sent together. A lost report does no harm: the outcome says when a job began.
"""

import asyncio
import logging
import time
from dataclasses import dataclass, field

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.runs.service_process import watch_task
from activities.stations.hook import reach
from workflows.model.jobs import JobRun
from workflows.temporal.messages import Begun, HeldUp, HostReport

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.2
"""Delay before a report is sent, so that it goes out together with others, or is dropped because its job has ended."""

CROWD, CROWD_SECONDS = 4, 1.0
"""With more than `CROWD` waiting reports, each is delayed by `CROWD_SECONDS`: most of their jobs have ended by then.
This is also the shortest interval between reports to one tree.
"""

RETRY_SECONDS = 2.0


@dataclass(frozen=True)
class _QueuedReport:
    report: Begun | HeldUp
    since: float = field(default_factory=time.monotonic)


@dataclass
class TreeReports:
    """The queue of reports. Without a client and its event loop, reports aren't sent."""

    client: Client | None = None
    loop: asyncio.AbstractEventLoop | None = None
    _queues: dict[str, list[_QueuedReport]] = field(default_factory=dict)
    """Queue by tree, oldest reports first."""
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def waiting(self) -> dict[str, list[Begun | HeldUp]]:
        """Return the waiting reports by tree."""
        return {root: [each.report for each in queue] for root, queue in self._queues.items()}

    def begun(self, run: JobRun, at: float) -> None:
        """Report that the run's agent is about to start."""
        self._add(run.root_job_id, Begun(job_id=run.job_id, offer=run.offer, at=at))

    def held_up(self, run: JobRun, reason: str, what_next: str) -> None:
        """Report that a begun run waits for something (`reason`), or with an empty reason that it continues (ruling
        B3). Can be called from any thread.
        """
        self._add(run.root_job_id, HeldUp(job_id=run.job_id, attempt=run.attempt, reason=reason, next=what_next))

    def waits_for_host(self, root: str, offered: HeldUp) -> None:
        """Report why an offered job has no host yet, or that it got one (ruling Q4). Can be called from any thread."""
        self._add(root, offered)

    def ended(self, run: JobRun) -> None:
        """Drop the unsent reports of a job that has ended: its outcome supersedes them."""
        queue = self._queues.get(run.root_job_id, [])
        queue[:] = [each for each in queue if each.report.job_id != run.job_id]

    def _add(self, root: str, report: Begun | HeldUp) -> None:
        if self.loop is None:
            self._queues.setdefault(root, []).append(_QueuedReport(report))
        else:
            self.loop.call_soon_threadsafe(self._queue, root, report)

    def _queue(self, root: str, report: Begun | HeldUp) -> None:
        if root not in self._queues:
            task = watch_task(asyncio.get_running_loop().create_task(self._send(root)))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        self._queues.setdefault(root, []).append(_QueuedReport(report))

    async def _send(self, root: str) -> None:
        """Send reports until Temporal has taken them, or the tree has ended."""
        while queue := self._queues[root]:
            crowd = sum(map(len, self._queues.values())) > CROWD
            latest = time.monotonic() - (CROWD_SECONDS if crowd else GATHER_SECONDS)
            due = [each for each in queue if each.since <= latest]
            if not due:
                await asyncio.sleep(queue[0].since - latest)
            elif await self._signal(root, [each.report for each in due]):
                queue[:] = [each for each in queue if each not in due]
                await asyncio.sleep(CROWD_SECONDS)
            else:
                await asyncio.sleep(RETRY_SECONDS)
        del self._queues[root]

    async def _signal(self, root: str, reports: list[Begun | HeldUp]) -> bool:
        assert self.client is not None
        report = HostReport(
            begun=tuple(each for each in reports if isinstance(each, Begun)),
            held_up=tuple(each for each in reports if isinstance(each, HeldUp)),
        )
        try:
            await self.client.get_workflow_handle(root).signal("report", report)
            reach("report sent", root)
        except (RPCError, RuntimeError) as error:  # the SDK raises a RuntimeError if no server answers
            if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
                return True
            log.warning("cannot notify tree %s that its jobs have begun: %s", root, error)
            return False
        return True
