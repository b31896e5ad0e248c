"""Find stalls: unrecorded ends of programs, and workflow steps that never succeed (B3)."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.host.context import Context
from activities.runs import status
from activities.store import attempt_rows, stall_rows
from activities.temporal import RPC_TIMEOUT
from workflows.policy.stalls import STALL_SECONDS, STEP_ATTEMPTS, Stall, StallKind

FAILING = "ExecutionStatus = 'Running' AND TaskQueue = '{}' AND TemporalReportedProblems IS NOT NULL"
"""The server keeps this search attribute for a workflow whose step failed or timed out several times in a row; so the
query returns only failing workflows. A server before 1.30 does not know it.
"""
MOST = 100


@dataclass
class StallWatch:
    """A periodic check for stalls. Each host checks the ends of its own programs; the leader checks the steps of
    workflows.
    """

    client: Client
    context: Context
    since: dict[StallKind, dict[str, float]] = field(default_factory=dict)
    """When each possible stall was seen first."""
    stored: dict[StallKind, list[Stall]] = field(default_factory=dict)

    async def check(self, *, leads: bool) -> None:
        """Record stalls that have lasted a minute. Only the leader checks workflow steps."""
        ends = await asyncio.to_thread(_unrecorded_ends, self.context)
        await self._record(StallKind.END, self.context.host, ends)
        if leads:
            await self._record(StallKind.STEP, "", await self._failing())

    async def _record(self, kind: StallKind, host: str, attempts: Mapping[str, int]) -> None:
        now, before = time.time(), self.since.get(kind, {})
        since = self.since[kind] = {what: before.get(what, now) for what in attempts}
        late = [what for what, at in since.items() if now - at >= STALL_SECONDS]
        lasting = [Stall(kind, what, attempts[what], since[what], host) for what in late]
        if self.stored.get(kind) != lasting:
            await asyncio.to_thread(stall_rows.replace, self.context.store, kind, host, lasting)
            self.stored[kind] = lasting

    async def _failing(self) -> dict[str, int]:
        """Return the attempt number of workflow steps that were retried more often than usual, by workflow."""
        query = FAILING.format(self.context.settings.temporal.task_queue)
        attempts = dict[str, int]()
        try:
            async for execution in self.client.list_workflows(query, limit=MOST, rpc_timeout=RPC_TIMEOUT):
                handle = self.client.get_workflow_handle(execution.id, run_id=execution.run_id)
                described = (await handle.describe(rpc_timeout=RPC_TIMEOUT)).raw_description
                if described.pending_workflow_task.attempt > STEP_ATTEMPTS:
                    attempts[execution.id] = described.pending_workflow_task.attempt
        except RPCError as error:
            if error.status not in (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.NOT_FOUND):
                raise
        return attempts


def _unrecorded_ends(context: Context) -> dict[str, int]:
    """Return this host's attempts whose program has ended, but whose end is not in the job's row."""
    late = attempt_rows.unrecorded_on(context.store, context.host)
    return {run.job_id: run.attempt for run in late if run.ended_at or status.has_ended(Path(run.run_dir))}
