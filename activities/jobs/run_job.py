"""The activity that runs one attempt of a job: its program, one repair, its evidence, its record.

`host.attempt` opens, finds and stops attempts; `verdict` judges ended programs.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from temporalio import activity

from activities.agents.adapter import Adapter
from activities.agents.faults import Blocker
from activities.git.merges.into_worktree import MergeConflict
from activities.host.attempt import Attempts, Work, with_way_out
from activities.host.context import Context
from activities.host.heartbeat import Heartbeat
from activities.host.slots import Need, Slots, in_turn
from activities.host.until_hub import until_hub
from activities.jobs import attempt_outcome, deferral, workspace
from activities.jobs.execution import Begun, Executed, Execution
from activities.jobs.prompt import is_leaf, prompt_of, seed_of
from activities.jobs.session import earlier_session
from activities.jobs.snapshots import Snapshots
from activities.jobs.verdict import Failure, Settled, as_failure, held_to_evidence, judge
from activities.redaction.redact import redacted
from activities.runs.supervised_run import RunEnd
from activities.store import attempts
from activities.store.attempts import AttemptRow, Deferral, Offered
from workflows.contract.parse import Rejected
from workflows.contract.repair import repair_prompt, same_output
from workflows.contract.size_limits import storable_value
from workflows.model.errors import ServiceError
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.spend import Usage
from workflows.model.states import JobState


@dataclass
class JobAttempt:
    """One attempt in flight."""

    context: Context
    run: JobRun
    row: AttemptRow
    place: workspace.Workspace
    execution: Execution
    prompt: str
    snapshots: Snapshots
    before: tuple[Deferral, ...] = ()
    """Deferred tries of this attempt."""
    stopping: bool = False
    finishing: bool = False
    _started: "Future[Begun]" = field(default_factory=Future)
    _runs: list[Executed] = field(default_factory=list)
    """The programs that ended: the first, and its repair."""

    def start(self) -> None:
        """Start the program; `play` raises an error that prevents it."""
        try:
            self._started.set_result(self.execution.first(self.prompt))
        except BaseException as error:
            self._started.set_exception(error)

    async def play(self) -> JobOutcome | Deferral:
        """Run program, verdict, at most one repair, evidence and record; or defer the run."""
        begun = self._started.result()
        while True:
            async with self.snapshots.every_minute():
                end = await self.execution.end_of(begun)
            after = await in_turn(self._after, begun, end)
            if isinstance(after, JobOutcome):
                return after
            await self.snapshots.save()  # a repair, or a later try, goes on from the work
            if not isinstance(after, Begun):
                return after
            begun = after

    def _after(self, begun: Begun, end: RunEnd) -> Begun | JobOutcome | Deferral:
        """Return the next program, or the end of the attempt."""
        executed = self.execution.read(begun, end)
        if (again := self.execution.again(begun, executed)) is not None:
            return again
        self._runs.append(executed)
        first, *repair = self._runs
        timeout = self.run.assignment.timeout_seconds
        verdict = judge(executed, timeout, on_order=self.stopping)
        if isinstance(verdict, Rejected) and repair:
            if reason := same_output(first.report.text, executed.report.text):
                verdict = Failure(f"{reason}: {redacted(verdict.faults[0].message)}")
        elif isinstance(verdict, Rejected) and not self.stopping:
            seed = seed_of(self.context, self.run, "repair")
            prompt = repair_prompt(verdict.faults, first.report.text, leaf=is_leaf(self.run), seed=seed)
            return self.execution.repair(redacted(prompt), first.report.session)
        self.finishing = True
        return self._defer(verdict) if isinstance(verdict, Blocker) else self._finish(verdict)

    async def stop(self) -> None:
        """Stop the program; `play` continues by recording its work."""
        self.stopping = True
        await self.execution.stop()

    def called_off(self, ended: JobOutcome | Deferral) -> JobOutcome | Deferral:
        """Cancel a run that was deferred."""
        if isinstance(ended, JobOutcome):
            return ended
        self.before += (ended,)
        self._runs.clear()
        return self._finish(Failure("stopped on order", JobState.CANCELLED))

    def _defer(self, blocker: Blocker) -> JobOutcome | Deferral:
        used = sum((executed.report.usage for executed in self._runs), Usage())
        deferred = blocker if self.stopping else deferral.defer(self.context, self.run, blocker, used)
        if isinstance(deferred, Blocker):
            return self._finish(as_failure(deferred))
        workspace.rest(self.place)
        return deferred

    def _finish(self, verdict: Settled) -> JobOutcome:
        runs = self._runs
        if (moved := self._moved()) is not None:
            return moved
        result = verdict.result if not isinstance(verdict, Failure | Rejected) else None
        models = [executed.report.model for executed in runs if executed.report.model]
        evidence = workspace.collect(self.place, self.run, result, models[-1] if models else None)
        with until_hub(partial(self.context.reports.held_up, self.run), done=True):
            evidence = workspace.publish(self.context, self.run, self.place, evidence)
        remarks = (f"not in its snapshots: {row}" for row in self.snapshots.left_out if row not in evidence.odd)
        evidence = replace(evidence, odd=(*evidence.odd, *remarks))
        verdict = held_to_evidence(verdict, self.run, runs, evidence)
        usages = [each.usage for each in self.before] + [executed.report.usage for executed in runs]
        usage = sum(usages, Usage())
        outcome = attempt_outcome.outcome(self.context, self.run, verdict, evidence, usage, self.place.worktree.branch)
        told = (*outcome.notices, *attempt_outcome.of_evidence(self.run, evidence))
        told += attempt_outcome.of_edits(self.run, verdict, evidence)
        told += attempt_outcome.of_repair(self.run, runs)
        told += attempt_outcome.of_output(self.run, runs[-1] if runs else None)
        told += attempt_outcome.of_attempt(self.run, self.row, self.before, self.execution.resumes)
        outcome = outcome.model_copy(update={"begun_at": self.row.started_at, "notices": told})
        if runs:
            model = models[-1] if models else None
            outcome = outcome.model_copy(update={"session": runs[-1].report.session, "model": model})
        outcome = attempt_outcome.travelling(outcome)
        payload = attempt_outcome.payload(self.context, verdict, evidence)
        diagnostics = attempt_outcome.diagnostics(verdict, runs, evidence) | {"start_sha": self.place.worktree.base}
        attempts.close(self.context.store, self.row, outcome, payload, diagnostics)
        self.snapshots.remove(self.place.repo)
        workspace.dispose(self.place, self.run, evidence)
        return outcome

    def _moved(self) -> JobOutcome | None:
        """Return the outcome of an attempt that was taken from this host; its work is kept elsewhere (ruling Q5)."""
        row = attempts.get(self.context.store, *self.row.key) if self.snapshots.through is not None else None
        recorded = row.recorded if row is not None else None
        return recorded if recorded is not None and recorded.moved else None


@dataclass(frozen=True)
class JobWork:
    """A job's work in an attempt: an agent's program in a worktree of its own."""

    context: Context
    run: JobRun
    adapter: Adapter | None
    """None if this host has no adapter for the runtime."""

    @property
    def offered(self) -> Offered:
        return Offered(self.run.job_id, self.run.attempt, self.run.offer)

    @property
    def need(self) -> Need:
        return Need(self.run.root_job_id, self.run.repo, self.run.assignment.worker.runtime)

    def recorded(self, row: AttemptRow) -> JobOutcome | None:
        """Return the recorded outcome, and remove the worktree of a run that was killed before it could."""
        if row.recorded:
            workspace.settle(self.context, self.run, row)
        return row.recorded

    def run_dir(self, row: AttemptRow) -> Path:
        return deferral.try_dir(row, attempts.deferrals_of_run(self.context.store, row.job_id, row.attempt))

    def taken_back(self) -> JobOutcome:
        reason = "taken back before it began"
        return JobOutcome(job_id=self.run.job_id, attempt=self.run.attempt, state=JobState.CANCELLED, reason=reason)

    def prepare(self, row: AttemptRow, beat: Heartbeat) -> JobAttempt:
        context, run = self.context, self.run
        context.reports.begun(run, row.started_at)
        if self.adapter is None:
            raise ServiceError(
                f"the runtime {run.assignment.worker.runtime} is not configured on {context.host}",
                f"service config show; [runtimes.{run.assignment.worker.runtime}] needs an adapter",
            )
        begun = row.worktree is not None  # otherwise it has had no try yet
        before = attempts.deferrals_of_run(context.store, run.job_id, run.attempt) if begun else ()
        deferral.begin(context, run, before)
        run_dir = deferral.try_dir(row, before)
        goes_on = earlier_session(context, run, row)
        with until_hub(partial(context.reports.held_up, run)):
            place = workspace.prepare(context, run, row, run_dir, goes_on.folder)
        execution = Execution(
            context,
            self.adapter,
            run,
            place.worktree.path,
            run_dir,
            beat.see,
            goes_on,
            place.lent,
            earlier=deferral.earlier_dirs(row, before),
        )
        execution.shown()  # refuse now what could not start
        prompt = prompt_of(context, run, place)
        if place.snapshot is not None:
            prompt = deferral.note_of_snapshot(place.snapshot) + prompt
        elif place.worktree.branch:
            prompt = deferral.note(before) + prompt
        return JobAttempt(
            context, run, row, place, execution, prompt, Snapshots.of(run, place.worktree, place.through), before
        )

    def refuse(self, row: AttemptRow, fault: ServiceError) -> JobOutcome:
        run = self.run
        workspace.abandon(self.context, run, row)
        conflict = fault if isinstance(fault, MergeConflict) else None
        outcome = attempt_outcome.travelling(
            JobOutcome(
                job_id=run.job_id,
                attempt=run.attempt,
                state=JobState.BLOCKED if conflict else JobState.FAILED,
                begun_at=row.started_at,
                reason=with_way_out(fault.message, fault.hint),
                conflict=conflict.in_legs if conflict else "",
                first="" if conflict else fault.hint,
            )
        )
        facts = {"error": storable_value(fault.message)}
        if conflict:
            facts["conflict"] = storable_value(conflict.facts)
        attempts.close(self.context.store, row, outcome, {}, facts)
        return outcome


class Jobs:
    """The job activity of a host."""

    def __init__(self, context: Context, adapters: Mapping[str, Adapter], slots: Slots) -> None:
        self._context = context
        self._adapters = adapters
        self._attempts = Attempts(context, slots)

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> JobOutcome:
        """Run one attempt of a job; a deferred one frees its slot until Temporal calls again."""
        work: Work[JobOutcome | Deferral] = JobWork(
            self._context, run, self._adapters.get(run.assignment.worker.runtime)
        )
        ended = await self._attempts.attempt(work)
        if isinstance(ended, Deferral):
            raise deferral.error(ended)
        self._context.reports.ended(run)
        return ended
