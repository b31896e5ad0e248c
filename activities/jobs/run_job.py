"""The activity that runs one attempt of a job to its recorded outcome, exactly once however often it is called."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.agents.adapter import Adapter
from activities.agents.faults import Blocker
from activities.heartbeat import Heartbeat, beating
from activities.jobs import deferring, notices, report, workspace
from activities.jobs.context import Context
from activities.jobs.execution import Executed, Execution
from activities.jobs.places import Need, Places
from activities.jobs.prompting import prompt_of
from activities.jobs.resumption import resumption
from activities.jobs.verdict import Failure, Settled, Verdict, as_failure, judge
from activities.runs.run import Claim
from activities.store import claims, deferrals
from activities.store import runs as stored_runs
from activities.store.claims import Offered
from activities.store.deferrals import Deferral
from activities.store.runs import Run
from workflows.contract.parse import Rejected
from workflows.contract.repair import repair_prompt, same_output
from workflows.contract.strings import storable_value
from workflows.errors import ServiceError
from workflows.tree.jobs import JobOutcome, JobRun, JobState, Usage

DESCRIBE_TIMEOUT = timedelta(seconds=5)
T = TypeVar("T")


class Playable(Protocol[T]):
    """An attempt as its activity sees it."""

    finishing: bool
    """Its program is gone; what is left is recording its end."""

    async def play(self) -> T:
        """To its recorded end."""
        ...

    async def stop(self) -> None:
        """End the program; `play` still records."""
        ...

    def called_off(self, ended: T) -> T:
        """What it ends as when it was ordered to stop while its end was being recorded."""
        ...


@dataclass
class Over(Generic[T]):
    """An attempt that ended as it began: taken back before, or refused."""

    outcome: T
    finishing: bool = True

    async def play(self) -> T:
        return self.outcome

    async def stop(self) -> None:
        """There is nothing to stop."""

    def called_off(self, ended: T) -> T:
        return ended


@dataclass
class Attempt:
    """One attempt in flight."""

    context: Context
    run: JobRun
    row: Run
    place: workspace.Workspace
    execution: Execution
    before: tuple[Deferral, ...] = ()
    """Tries of this attempt that were put off."""
    stopping: bool = False
    finishing: bool = False

    async def play(self) -> JobOutcome | Deferral:
        """Program, verdict, one repair if it helps, evidence, record; or the run is put off."""
        first = await self.execution.first(await asyncio.to_thread(self._prompt))
        verdict = judge(first, self.run.timeout_seconds)
        runs = [first]
        if isinstance(verdict, Rejected) and not self.stopping:
            again, verdict = await self._repair(first, verdict)
            runs.append(again)
        self.finishing = True
        if isinstance(verdict, Blocker):
            return await asyncio.to_thread(self._defer, verdict, runs)
        return await asyncio.to_thread(self._finish, verdict, runs)

    async def stop(self) -> None:
        """End the program; `play` goes on to record what it left."""
        self.stopping = True
        await self.execution.stop()

    def called_off(self, ended: JobOutcome | Deferral) -> JobOutcome | Deferral:
        """A run that was put off ends."""
        if isinstance(ended, JobOutcome):
            return ended
        self.before += (ended,)
        return self._finish(Failure("stopped on order", JobState.CANCELLED), [])

    def _prompt(self) -> str:
        prompt = prompt_of(self.context, self.run)
        return deferring.note(self.before) + prompt if self.place.worktree.branch else prompt

    async def _repair(self, first: Executed, refused: Rejected) -> tuple[Executed, Verdict]:
        said = first.report.text
        prompt = repair_prompt(refused.faults, said)
        again = await self.execution.repair(prompt, first.report.session)
        verdict = judge(again, self.run.timeout_seconds, after_repair=True)
        if isinstance(verdict, Rejected) and (reason := same_output(said, again.report.text)):
            return again, Failure(reason)
        return again, verdict

    def _defer(self, blocker: Blocker, runs: list[Executed]) -> JobOutcome | Deferral:
        used = sum((executed.report.usage for executed in runs), Usage())
        deferred = blocker if self.stopping else deferring.defer(self.context, self.run, blocker, used)
        if isinstance(deferred, Blocker):
            return self._finish(as_failure(deferred), runs)
        workspace.rest(self.place)
        return deferred

    def _finish(self, verdict: Settled, runs: list[Executed]) -> JobOutcome:
        result = verdict.result if not isinstance(verdict, Failure | Rejected) else None
        evidence = workspace.collect(self.place, self.run, result)
        usages = [each.usage for each in self.before] + [executed.report.usage for executed in runs]
        usage = sum(usages, Usage())
        outcome = report.outcome(self.context, self.run, verdict, evidence, usage, self.place.worktree.branch)
        told = (*outcome.notices, *notices.of_evidence(self.run, evidence))
        told += notices.of_attempt(self.run, self.row, self.before, self.execution.resumption)
        outcome = outcome.model_copy(update={"begun_at": self.row.started_at, "notices": told})
        if runs:
            said = [executed.report.model for executed in runs if executed.report.model]
            session = runs[-1].report.session
            outcome = outcome.model_copy(update={"session": session, "model": said[-1] if said else None})
        outcome = report.travelling(outcome)
        payload = report.payload(verdict, evidence)
        diagnostics = report.diagnostics(verdict, runs, evidence) | {"start_sha": self.place.worktree.base}
        stored_runs.close(self.context.store, self.row, outcome, payload, diagnostics)
        workspace.dispose(self.place, self.run, evidence)
        return outcome


class Jobs:
    """The activity, bound to its host."""

    def __init__(self, context: Context, adapters: Mapping[str, Adapter]) -> None:
        self._context = context
        self._adapters = adapters
        self.places = Places(context.settings)
        self._locks: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()
        """One call at a time for an attempt: a call that lost its server must be gone before the next one goes on."""

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> JobOutcome:
        """Start, or re-attach to, one attempt of a job; a recorded outcome is returned as it is."""
        beat = Heartbeat()
        async with self._locks.setdefault((run.job_id, run.attempt), asyncio.Lock()), beating(beat):
            known = await asyncio.to_thread(stored_runs.get, self._context.store, run.job_id, run.attempt)
            if known and known.recorded:
                await asyncio.to_thread(workspace.settle, self._context, run, known)
                return known.recorded
            # A run that goes on already is found again, however many there are.
            runs_already = known is not None and await asyncio.to_thread(self._runs, known)
            need = Need(run.root_job_id, run.repo, run.worker.runtime)
            async with self.places.taken(need, runs_already=runs_already):
                beat.begun()
                ended = await from_begin_to_end(lambda: self._begin(run, beat))
        if isinstance(ended, Deferral):
            raise deferring.error(ended)
        self._context.reports.ended(run)
        return ended

    def _begin(self, run: JobRun, beat: Heartbeat) -> Playable[JobOutcome | Deferral]:
        """Its claim first: what was taken back leaves no trace (ruling B5)."""
        offered = Offered(run.job_id, run.attempt, run.offer)
        run_dir = self._context.home.runs / f"{run.job_id}.{run.attempt}"
        row = claims.begin(self._context.store, offered, host=self._context.host, run_dir=str(run_dir))
        if row is None:
            reason = "taken back before it began"
            return Over(JobOutcome(job_id=run.job_id, attempt=run.attempt, state=JobState.CANCELLED, reason=reason))
        self._context.reports.begun(run, row.started_at)
        try:
            return self._prepare(run, row, beat)
        except ServiceError as fault:
            return Over(self._refuse(run, row, fault))

    def _runs(self, row: Run) -> bool:
        """Whether a program of this attempt has been started already."""
        before = deferrals.of_run(self._context.store, row.job_id, row.attempt)
        return Claim.read(deferring.try_dir(row, before)) is not None

    def _prepare(self, run: JobRun, row: Run, beat: Heartbeat) -> Attempt:
        adapter = self._adapters.get(run.worker.runtime)
        if adapter is None:
            raise ServiceError(
                f"the runtime {run.worker.runtime} is not configured on {self._context.host}",
                f"service config show; [runtimes.{run.worker.runtime}] needs an adapter",
            )
        before = deferrals.of_run(self._context.store, run.job_id, run.attempt)
        deferring.begin(self._context, run, before)
        run_dir = deferring.try_dir(row, before)
        goes_on = resumption(self._context, run, row)
        place = workspace.prepare(self._context, run, row, run_dir, goes_on.folder)
        execution = Execution(self._context, adapter, run, place.worktree.path, run_dir, beat.see, goes_on)
        return Attempt(self._context, run, row, place, execution, before)

    def _refuse(self, run: JobRun, row: Run, fault: ServiceError) -> JobOutcome:
        """The job cannot be started where it belongs: that is its outcome, with the way out."""
        reason = f"{fault.message} (try: {fault.hint})" if fault.hint else fault.message
        workspace.abandon(self._context, run, row)
        conflict = workspace.conflict(fault)
        state = JobState.BLOCKED if conflict else JobState.FAILED
        outcome = report.travelling(
            JobOutcome(
                job_id=run.job_id,
                attempt=run.attempt,
                state=state,
                begun_at=row.started_at,
                reason=reason,
                conflict=conflict,
                first="" if conflict else fault.hint,
            )
        )
        facts = storable_value({"error": fault.message} | workspace.conflict_facts(fault))
        stored_runs.close(self._context.store, row, outcome, {}, dict(facts) if isinstance(facts, dict) else {})
        return outcome


async def from_begin_to_end(begin: Callable[[], Playable[T]]) -> T:
    """Begin the attempt and play it. An order to stop that comes in between finds something that can be stopped."""
    beginning = asyncio.create_task(asyncio.to_thread(begin))
    try:
        attempt = await asyncio.shield(beginning)
    except asyncio.CancelledError:
        attempt = await beginning
        if await still_wanted():
            raise
        await attempt.stop()
    return await to_its_end(attempt)


async def to_its_end(attempt: Playable[T]) -> T:
    """Play the attempt. An order to stop ends the agent; a call that merely ends before the agent does leaves it."""
    playing = asyncio.create_task(attempt.play())
    try:
        return await asyncio.shield(playing)
    except asyncio.CancelledError:
        if attempt.finishing:
            ended = await playing
            return ended if await still_wanted() else await asyncio.to_thread(attempt.called_off, ended)
        if await still_wanted():
            playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await playing
            raise
        await attempt.stop()
        return await playing


async def still_wanted() -> bool:
    """Whether this call was cancelled only because the worker stops, or because a later call took the run over."""
    why = activity.cancellation_details()
    if why is None or why.cancel_requested:
        return False
    if why.worker_shutdown:
        return True
    info = activity.info()
    handle = activity.client().get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
    try:
        return (await handle.describe(rpc_timeout=DESCRIBE_TIMEOUT)).status is WorkflowExecutionStatus.RUNNING
    except RPCError as error:
        return error.status is not RPCStatusCode.NOT_FOUND
