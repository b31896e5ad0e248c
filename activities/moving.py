"""Moving: the jobs of a lost, drained or full host go to other hosts; the commits and files it made meanwhile are kept
(Q5).

One host of the fleet, the leader, checks all hosts, notifies people once of a host without a sign of life, and orders
attempts to move. Each host keeps the work of attempts that moved away from it: it ends their agents, and pushes the
work to separate refs at the hub. Every step may be repeated. Work that can't be pushed stays in its work folder.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.git import git_branches, hub
from activities.git.work_folder import worktrees
from activities.git.work_folder.service_git_dir import side_of
from activities.git.work_folder.worktrees import Worktree
from activities.host import checkouts
from activities.host.context import Context
from activities.jobs import snapshots
from activities.notify import deliver
from activities.runs import orphans
from activities.runs.run_folders import Key
from activities.store import attempt_rows, branch_rows, job_rows, moves, outbox, placements
from activities.store.attempt_rows import AttemptRow
from activities.store.leader import Leader
from activities.store.moves import HostAttempt
from activities.store.registry import host_rows, repo_rows
from activities.store.registry.host_rows import HostRow
from activities.temporal import RPC_TIMEOUT
from workflows.model.errors import ServiceError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.rows import EventRecord
from workflows.policy.host_availability import (
    HOST_UNSEEN,
    UNSEEN_SECONDS,
    HostSeen,
    lacks_worker,
    unseen,
    unseen_says,
)
from workflows.policy.moving import Move, move_off_drained_host, move_off_full_host, move_off_lost_host
from workflows.policy.placement import Need, choose_moves, why_not
from workflows.text.digests import digest

log = logging.getLogger(__name__)

_OF_ONE_WORKFLOW = (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.FAILED_PRECONDITION)
"""Errors that concern only the workflow that was signalled, such as too many signals. Other errors concern all
calls.
"""

GAP_SECONDS = 45.0
"""A longer time between two looks, which are 15 s apart, means that this process did not reach the store."""


@dataclass
class HostWatch:
    """A periodic check of all hosts of a fleet, by one of them: the leader. Every step may be repeated.

    No host counts as away until this process has reached the store for a minute: just after an outage, all hosts seem
    to be away.
    """

    client: Client
    context: Context
    leader: Leader
    notified: set[str] = field(default_factory=set)
    """Ids of the notifications whose delivery this process has started."""
    reached_at: float = field(default_factory=time.monotonic)
    """The end of the last check that reached the store."""
    reached_since: float = field(default_factory=time.monotonic)
    not_kept: dict[Key, str] = field(default_factory=dict)
    """The logged reason why work of an attempt that moved away from this host is not pushed yet, by attempt."""
    idle: frozenset[str] = frozenset()
    """The hosts that had free slots at the last check. A host must be idle twice, since a newly started one doesn't
    report its queue yet.
    """

    async def check(self) -> None:
        """Keep the work of attempts that this host has lost; if it is the leader, check all hosts."""
        leads, now = await asyncio.to_thread(self.leader.leads), time.monotonic()
        if now - self.reached_at > GAP_SECONDS:
            self.reached_since = now
        self.not_kept = await keep_work(self.context, self.not_kept)
        if leads:
            lost_after = self.context.settings.fleet.move_after if self._can_judge else 0
            await asyncio.to_thread(host_rows.sort_out, self.context.store, lost_after=lost_after)
            every = await asyncio.to_thread(host_rows.every, self.context.store)
            for host in every:
                await self._check_host(host)
            await self._use_free_slots(every)
        self.reached_at = time.monotonic()

    async def _check_host(self, host: HostRow) -> None:
        store, away = self.context.store, unseen(host.seen) and self._can_judge
        if not (host.lost_at or away or host.draining_at):
            return
        held = await asyncio.to_thread(moves.begun_on, store, host.name)
        queued = await asyncio.to_thread(moves.queued_on, store, host.name)
        if away and (held or queued or host.stopped_at is None):
            await self._notify(host.seen)
        if host.lost_at:
            await move(self.client, [*held, *queued], move_off_lost_host(host.seen))
        elif host.draining_at:
            await move(self.client, queued, move_off_drained_host(host.name))

    async def _use_free_slots(self, every: Sequence[HostRow]) -> None:
        """Move jobs that wait at full hosts to hosts that had free slots at two checks in a row."""
        store, before = self.context.store, self.idle
        full = [host for host in every if host.taken > host.slots and not lacks_worker(host.seen)]
        fleet = await asyncio.to_thread(placements.every, store) if full else []
        self.idle = frozenset(host.name for host in fleet if host.free > 0 and not why_not(host))
        if not (steady := before & self.idle):
            return
        queued = [(each, host) for host in full for each in await asyncio.to_thread(moves.queued_on, store, host.name)]
        waiting = [((each, host), host.name, Need(each.repo, each.require)) for each, host in queued if each.moves]
        for (attempt, host), other in choose_moves(waiting, fleet, steady):
            await move(self.client, [attempt], move_off_full_host(host.name, other))

    @property
    def _can_judge(self) -> bool:
        return time.monotonic() - self.reached_since >= UNSEEN_SECONDS

    async def _notify(self, host: HostSeen) -> None:
        """Notify people once each time a host disappears: the notification's id has the host's last sign of life."""
        notification = f"host-{digest(host.name)[:12]}-{host.seen_at or 0:.0f}"
        if notification in self.notified:
            return
        await asyncio.to_thread(self._put_out, notification, host)
        await deliver.begin(self.client, self.context.settings.temporal.task_queue, notification, unseen_says(host))
        self.notified.add(notification)

    def _put_out(self, notification: str, host: HostSeen) -> None:
        event = EventRecord(
            event_id=notification,
            job_id=host.name[:80],
            root_job_id="",
            kind=HOST_UNSEEN,
            at=host.now,
            message=unseen_says(host),
            data={},
        )
        outbox.add(self.context.store, (event,))


async def move(client: Client, held: Sequence[HostAttempt], order: Move) -> list[HostAttempt]:
    """Send an order about each of these attempts to the workflow that waits for it. Return those that can move.

    A workflow that takes no more signals doesn't hold up the others.
    """
    going = [each for each in held if each.moves]
    for attempt in going:
        handle = client.get_workflow_handle(attempt.workflow_id)
        own = order.model_copy(update={"job_id": attempt.job_id, "attempt": attempt.attempt})
        try:
            await handle.signal("move", own, rpc_timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status in _OF_ONE_WORKFLOW:
                log.warning("cannot order %s, attempt %d, to move: %s", attempt.job_id, attempt.attempt, error.message)
            elif error.status is not RPCStatusCode.NOT_FOUND:  # it has ended by now
                raise
    return going


async def keep_work(context: Context, logged: Mapping[Key, str] | None = None) -> dict[Key, str]:
    """End the agents of all attempts that moved away from this host, and push their work. What can't be pushed now is
    tried again later.

    Return why work is not kept yet, by attempt; a fault that was `logged` the last time is not logged again.
    """
    moved = await asyncio.to_thread(moves.to_keep, context.store, context.host)
    left = [key for key in moved if not context.stops.runs(key)]  # its call ends it
    if left:
        home, grace = context.home, context.settings.worker.stop_grace
        await orphans.end_runs(home.runs, left, home.orphans, grace)
    logged, faults = logged or {}, dict[Key, str]()
    for key in left:
        try:
            await asyncio.to_thread(_keep_work, context, key)
        except (ServiceError, OSError) as fault:
            faults[key] = str(fault)
            if logged.get(key) != faults[key]:
                log.warning("the work of %s, attempt %d, is not kept yet: %s", *key, fault)
    return faults


def _keep_work(context: Context, key: Key) -> None:
    row, job = attempt_rows.get(context.store, *key), job_rows.get(context.store, key[0])
    ref = ""
    if row is not None and job is not None and row.worktree is not None:
        repo, path = checkouts.path_by_name(context, job.repo), Path(row.worktree)
        ref = _push_kept_work(context, row, job.repo, repo) if row.branch else ""
        if row.branch is None or "-shared-" not in row.branch:  # the folder is not other jobs' too
            worktrees.dispose(repo, path, later=True)
    moves.keep(context.store, key, ref)


def _push_kept_work(context: Context, row: AttemptRow, name: str, repo: Path) -> str:
    """Push the attempt's work, uncommitted files too, and record the event. Return the ref; empty without work."""
    through = checkouts.hub_of(context, repo_rows.must_get(context.store, name))
    commit, source = _work(row, repo, through)
    if through is None or commit is None:
        return ""
    own = f"{hub.KEPT}{row.job_id}-{row.attempt}"
    hub.overwrite(source, through, commit, own)
    ref = through.ref(own)
    event = BranchEvent(actor=context.host, branch=ref, head_sha=commit, task_branch="", merged=False)
    message = f"{context.host} came back: its work on attempt {row.attempt}, which had moved, is kept as {ref}"
    branch_rows.record(context.store, BranchEventKind.KEPT, row.job_id, event, message)
    return ref


def _work(row: AttemptRow, repo: Path, through: hub.Hub | None) -> tuple[str | None, Path]:
    """Return the commit to push: a snapshot of the attempt's work folder, else its branch's tip; and the repository
    that has it.
    """
    path = Path(row.worktree or "")
    if worktree := worktrees.find(path):
        worktree = Worktree(path, row.base_sha or worktree.base, worktree.branch, worktree.names)
        made = snapshots.take(worktree, *row.key, through)
        return made.commit or None, side_of(path)
    tip = git_branches.tip(repo, row.branch or "")
    return (tip if tip != row.base_sha else None), repo
