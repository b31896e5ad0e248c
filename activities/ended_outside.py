"""Workflows that Temporal ended from outside (terminated, timed out, deleted, namespace lost): find and report them
(ruling G2).
"""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import Engine
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from activities.host.context import Context
from activities.jobs.why_closed import why_closed
from activities.notify import deliver
from activities.runs import orphans
from activities.stalls import StallWatch
from activities.store import attempt_rows, job_rows, run_rows, tree_rows
from activities.store.leader import Leader
from activities.temporal import RPC_TIMEOUT
from workflows.model import ids
from workflows.model.event_kinds import TELLS_PEOPLE
from workflows.model.jobs import JobOutcome
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.pipeline.plan import OPEN_RUNS
from workflows.pipeline.rows import RunRecord
from workflows.temporal import search
from workflows.temporal.delegation_tree import DelegationTree
from workflows.tree.state import TreeMemory

log = logging.getLogger(__name__)

QUERY_TIMEOUT = timedelta(seconds=10)
"""Timeout of a query for a tree's state, which a worker has to rebuild from its history."""

STOPPING = 60.0
"""Seconds that an agent gets to stop by itself after the store shows its job as ended."""

RUNNING = "WorkflowType = 'DelegationTree' AND ExecutionStatus = 'Running'"
UNKNOWN = 'service agent ask NAME "MESSAGE" --repo OWNER/NAME'
"""The command to start the tree again if its start isn't stored."""

NOBODY = "Temporal has no workflow of it any more: it was deleted, or its namespace was lost"


@dataclass(frozen=True)
class EndedWorkflow:
    """A workflow that has ended, and Temporal's reason."""

    why: str
    gone: bool = False
    """True if the workflow's history is gone too."""


@dataclass
class OutsideWatch:
    """A periodic check for ended workflows, as long as the worker runs. Only the leader among the hosts checks (ruling
    Q7).
    """

    client: Client
    context: Context
    leader: Leader
    signalled: set[tuple[str, str]] = field(default_factory=set)
    stalls: StallWatch = field(init=False)

    def __post_init__(self) -> None:
        self.stalls = StallWatch(self.client, self.context)

    async def check(self) -> None:
        """Find stalls, and end this host's agents of ended jobs. If this host is the leader, check all trees and
        pipeline runs.
        """
        leads = await asyncio.to_thread(self.leader.leads)
        await self.stalls.check(leads=leads)
        await end_abandoned(self.context)
        if leads:
            await self._settle_all()

    async def _settle_all(self) -> None:
        store = self.context.store
        alive = {each.id: each.run_id async for each in self.client.list_workflows(RUNNING)}
        for root, writer in sorted((await asyncio.to_thread(job_rows.open_trees, store)).items()):
            if root not in alive:
                await settle(self.client, store, self.context.settings.temporal.task_queue, root)
            elif writer and writer != alive[root]:
                await self._has_it_write(root, alive[root])
        open_runs = await asyncio.to_thread(run_rows.find, store, states=sorted(OPEN_RUNS), limit=1000)
        for run in open_runs:
            await settle_run(self.client, store, run)

    async def _has_it_write(self, root: str, run_id: str) -> None:
        """Signal a tree whose workflow was reset to write all its rows, because the stored ones date from before the
        reset.
        """
        if (root, run_id) in self.signalled:
            return
        self.signalled.add((root, run_id))
        handle = self.client.get_workflow_handle(root, run_id=run_id)
        await handle.signal(DelegationTree.look_again, rpc_timeout=RPC_TIMEOUT)


async def settle(client: Client, store: Engine, task_queue: str, root: str) -> Records | None:
    """End the rows of a tree whose workflow has ended; return None if the workflow runs, or the rows were ended
    before.
    """
    writer = await asyncio.to_thread(job_rows.writer_of, store, root)
    ending = await ending_of(client, root)
    if ending is None:
        return None
    tree = await asyncio.to_thread(tree_rows.get, store, root)
    state = None if ending.gone else await state_of(client, root)
    again = tree.start.anew if tree else UNKNOWN
    rows = await asyncio.to_thread(job_rows.close_lost, store, root, ending.why, "" if state else again, writer)
    if rows is None:
        return None
    log.warning("the tree %s has no workflow any more: %s", root, ending.why)
    if tree is not None:
        await asyncio.to_thread(tree_rows.keep_interrupted, store, state, root)
    for event in rows.events:
        if event.kind in TELLS_PEOPLE:  # as the tree itself would have
            await deliver.begin(client, task_queue, event.event_id, event.message)
    return rows


async def ending_of(client: Client, workflow_id: str, root: str = "") -> EndedWorkflow | None:
    """Return how a workflow ended; None while it runs. With a root, another workflow of this id does not count."""
    handle = client.get_workflow_handle(workflow_id)
    try:
        described = await handle.describe(rpc_timeout=RPC_TIMEOUT)
        if root and described.typed_search_attributes.get(search.ROOT) != root:
            return EndedWorkflow(NOBODY, gone=True)
        if described.status is WorkflowExecutionStatus.RUNNING:
            return None
        return EndedWorkflow(await why_closed(client, workflow_id, described.run_id, described.status))
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return EndedWorkflow(NOBODY, gone=True)


async def state_of(client: Client, root: str) -> TreeMemory | None:
    """Return a tree's last state, which a worker rebuilds from the workflow's history; None if that fails."""
    handle = client.get_workflow_handle(root)
    try:
        return await handle.query(DelegationTree.state, rpc_timeout=QUERY_TIMEOUT)
    except (RPCError, RuntimeError, TemporalError) as error:  # also if its history lacks this home's seals
        log.warning("the state of %s cannot be read from its history: %s", root, error)
        return None


async def settle_run(client: Client, store: Engine, run: RunRecord) -> bool:
    """End the rows of a pipeline run without a running workflow."""
    ending = await ending_of(client, ids.workflow_id(run.pipeline), run.run_id)
    if ending is None:
        return False
    return await asyncio.to_thread(run_rows.close_lost, store, run.run_id, ending.why)


async def end_abandoned(context: Context) -> int:
    """End agents that still run although their jobs have ended. No activity will return to end them."""
    left = await asyncio.to_thread(attempt_rows.abandoned_on, context.store, context.host, STOPPING)
    if not left:
        return 0
    home, grace = context.home, context.settings.worker.stop_grace
    ended = await orphans.end_runs(home.runs, {run.key for run in left}, home.orphans, grace)
    for run in left:
        outcome = JobOutcome(
            job_id=run.job_id, attempt=run.attempt, state=JobState.CANCELLED, reason="its job ended without it"
        )
        await asyncio.to_thread(attempt_rows.close, context.store, run, outcome, {}, {})
    return ended
