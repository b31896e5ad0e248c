"""The activity that runs one attempt of a job: its program, one repair, its evidence, its record.

`host.attempt` opens, finds and stops attempts; `judgement` judges ended programs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.agents.adapter import Adapter
from activities.agents.faults import Blocker
from activities.git.merges.into_work_folder import MergeConflict
from activities.host.attempt import Attempt, StoppedError, run_attempt, with_way_out
from activities.host.context import Context
from activities.host.heartbeat import Heartbeat
from activities.host.slots import SlotNeed, Slots, in_turn
from activities.host.until_hub import until_hub
from activities.jobs import attempt_outcome, deferral, workspace
from activities.jobs.execution import Executed, Execution, with_secrets
from activities.jobs.judgement import Failure, Settled, as_failure, check_evidence, judge
from activities.jobs.prompt import prompt_of, seed_of, with_whole_prompts
from activities.jobs.session import earlier_session
from activities.jobs.snapshots import Snapshots
from activities.jobs.workspace import Workspace
from activities.redaction.redact import redact_text
from activities.stations.hook import reach
from activities.store import attempt_rows
from activities.store.attempt_rows import AttemptRow, Deferral, Offered
from workflows.contract.parse import Accepted, Rejected
from workflows.contract.repair_prompt import repair_prompt, same_output
from workflows.contract.storable import storable_value
from workflows.model.errors import ServiceError
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.spend import Usage
from workflows.model.states import JobState


@dataclass
class JobAttempt:
    """One attempt of a job: an agent's program in its own worktree."""

    context: Context
    run: JobRun
    adapter: Adapter | None
    """None if this host has no adapter for the runtime."""
    finishing: bool = False
    _stopping: bool = False
    _row: AttemptRow = field(init=False)
    _workspace: Workspace = field(init=False)
    _execution: Execution = field(init=False)
    _before: tuple[Deferral, ...] = ()
    """Deferred tries of this attempt."""
    _fault: BaseException | None = None
    """The error of the program's start."""
    _programs: list[Executed] = field(default_factory=list)
    """The programs that ended: the first, and its repair."""

    @property
    def offered(self) -> Offered:
        return Offered(self.run.job_id, self.run.attempt, self.run.offer)

    @property
    def need(self) -> SlotNeed:
        return SlotNeed(self.run.root_job_id, self.run.repo, self.run.assignment.worker.runtime)

    def known_outcome(self, row: AttemptRow) -> JobOutcome | None:
        """Return the recorded outcome, and remove the worktree of a run that was killed before it could."""
        if row.known_outcome:
            workspace.settle(self.context, self.run, row)
        return row.known_outcome

    def run_dir(self, row: AttemptRow) -> Path:
        return deferral.try_dir(row, attempt_rows.deferrals_of_run(self.context.store, row.job_id, row.attempt))

    def taken_back(self) -> JobOutcome:
        reason = "taken back before it began"
        return JobOutcome(job_id=self.run.job_id, attempt=self.run.attempt, state=JobState.CANCELLED, reason=reason)

    def begin(self, row: AttemptRow, beat: Heartbeat) -> None:
        """Make the work folder and the prompt, and start the program; `play` raises an error of the start."""
        context, run, self._row = self.context, self.run, row
        self._before = self._earlier_tries()
        context.reports.begun(run, row.started_at)
        if self.adapter is None:
            raise ServiceError(
                f"the runtime {run.assignment.worker.runtime} is not configured on {context.host}",
                f"service config show; [runtimes.{run.assignment.worker.runtime}] needs an adapter",
            )
        run_dir, earlier = deferral.try_dir(row, self._before), deferral.earlier_dirs(row, self._before)
        goes_on = earlier_session(context, run, row)
        with until_hub(partial(context.reports.held_up, run)):
            self._workspace = workspace.prepare(context, run, row, run_dir, goes_on.folder)
        prompt = prompt_of(context, run, self._workspace, cut_short=bool(self._before))
        self._execution = Execution(
            context,
            self.adapter,
            with_secrets(context, run),
            self._workspace.worktree.path,
            run_dir,
            beat.see,
            Snapshots.of(run, self._workspace.worktree, self._workspace.through),
            goes_on,
            self._workspace.lent,
            earlier,
        )
        try:
            self._execution.start(prompt)
        except BaseException as fault:
            self._fault = fault

    def _earlier_tries(self) -> tuple[Deferral, ...]:
        """Return the deferred tries; raise while the next one isn't due. Such a call, repeated each minute, reports the
        begin only once.
        """
        try:
            return deferral.begin(self.context, self.run, self._row)
        except ApplicationError:
            if activity.info().attempt == 1:
                self.context.reports.begun(self.run, self._row.started_at)
            raise

    async def play(self) -> JobOutcome | Deferral:
        """Run program, judgement, at most one repair, evidence and record; or defer the run."""
        if self._fault is not None:
            raise self._fault
        while True:
            executed = await self._execution.to_its_end()
            reach("output read", self.run.job_id)
            after = await in_turn(self._after, executed)
            if isinstance(after, JobOutcome):
                return after
            await self._execution.snapshots.save()  # a repair, or a later try, goes on from the work
            if after is not None:
                return after

    def _after(self, executed: Executed) -> JobOutcome | Deferral | None:
        """Return the end of the attempt after a program ended; None if the repair of a faulty result was started
        (ruling A5).
        """
        self._programs.append(executed)
        first, *repair = self._programs
        judgement = judge(executed, self.run.assignment.timeout_seconds, on_order=self._stopping)
        if isinstance(judgement, Rejected) and repair:
            if reason := same_output(first.report.text, executed.report.text):
                judgement = Failure(f"{reason}: {redact_text(judgement.faults[0].message)}")
        elif isinstance(judgement, Rejected) and not self._stopping:
            seed = seed_of(self.context, self.run, "repair")
            tool = self.context.settings.result_tool(self.run.assignment.worker.runtime)
            leaf = not self.run.may_delegate
            prompt = repair_prompt(judgement.faults, first.report.text, leaf=leaf, seed=seed, tool=tool)
            self._execution.repair(redact_text(prompt), first.report.session)
            reach("repair started", self.run.job_id)
            return None
        self.finishing = True
        return self._defer(judgement) if isinstance(judgement, Blocker) else self._finish(judgement)

    async def stop(self) -> None:
        """Stop the program; `play` then records its work."""
        self._stopping = True
        await self._execution.stop()

    def called_off(self, ended: JobOutcome | Deferral) -> JobOutcome | Deferral:
        """Cancel a run that was deferred."""
        if isinstance(ended, JobOutcome):
            return ended
        self._before += (ended,)
        self._programs.clear()
        return self._finish(Failure("stopped on order", JobState.CANCELLED))

    def _defer(self, blocker: Blocker) -> JobOutcome | Deferral:
        used = sum((executed.report.usage for executed in self._programs), Usage())
        deferred = blocker if self._stopping else deferral.defer(self.context, self.run, blocker, used)
        if isinstance(deferred, Blocker):
            return self._finish(as_failure(deferred))
        workspace.rest(self._workspace)
        return deferred

    def _finish(self, judgement: Settled) -> JobOutcome:
        runs, folder, snapshots = self._programs, self._workspace, self._execution.snapshots
        if (moved := self._outcome_elsewhere()) is not None:
            return moved
        if isinstance(judgement, Accepted):
            judgement = replace(judgement, result=with_whole_prompts(self.context, self.run, judgement.result))
        result = judgement.result if isinstance(judgement, Accepted) else None
        models = [executed.report.model for executed in runs if executed.report.model]
        evidence = workspace.collect(folder, self.run, result, models[-1] if models else None)
        reach("work committed", self.run.job_id)
        with until_hub(partial(self.context.reports.held_up, self.run), done=True):
            evidence = workspace.publish(self.context, self.run, folder, evidence)
        remarks = (f"not in its snapshots: {row}" for row in snapshots.left_out if row not in evidence.odd)
        evidence = replace(evidence, odd=(*evidence.odd, *remarks))
        judgement = check_evidence(judgement, self.run, runs, evidence)
        usages = [each.usage for each in self._before] + [executed.report.usage for executed in runs]
        usage = sum(usages, Usage())
        outcome = attempt_outcome.outcome(self.context, self.run, judgement, evidence, usage, folder.worktree.branch)
        notices = (*outcome.notices, *attempt_outcome.of_evidence(self.run, evidence))
        notices += attempt_outcome.of_edits(self.run, judgement, evidence)
        notices += attempt_outcome.of_repair(self.run, runs)
        notices += attempt_outcome.of_output(self.run, runs[-1] if runs else None)
        notices += attempt_outcome.of_attempt(self.run, self._row, self._before, self._execution.resumes)
        outcome = outcome.model_copy(update={"begun_at": self._row.started_at, "notices": notices})
        if runs:
            model = models[-1] if models else None
            estimated = any(executed.report.estimated for executed in runs)
            update = {"session": runs[-1].report.session, "model": model, "estimated": estimated}
            outcome = outcome.model_copy(update=update)
        outcome = attempt_outcome.travelling(outcome)
        payload = attempt_outcome.payload(self.context, judgement, evidence)
        diagnostics = attempt_outcome.diagnostics(judgement, runs, evidence) | {"start_sha": folder.worktree.base}
        attempt_rows.close(self.context.store, self._row, outcome, payload, diagnostics)
        reach("outcome recorded", self.run.job_id)
        snapshots.remove(folder.repo)
        workspace.dispose(folder, self.run, evidence)
        reach("folder removed", self.run.job_id)
        return outcome

    def _outcome_elsewhere(self) -> JobOutcome | None:
        """Return the outcome of an attempt that moved to another host; None if it didn't. `moving` keeps its commits
        (ruling Q5).
        """
        can_move = self._execution.snapshots.through is not None
        row = attempt_rows.get(self.context.store, *self._row.key) if can_move else None
        recorded = row.known_outcome if row is not None else None
        return recorded if recorded is not None and recorded.moved else None

    def refuse(self, row: AttemptRow, fault: ServiceError) -> JobOutcome:
        run, stopped = self.run, isinstance(fault, StoppedError)
        remove = workspace.settle if stopped else workspace.abandon
        remove(self.context, run, row)
        conflict = fault if isinstance(fault, MergeConflict) else None
        before = attempt_rows.deferrals_of_run(self.context.store, run.job_id, run.attempt)
        outcome = attempt_outcome.travelling(
            JobOutcome(
                job_id=run.job_id,
                attempt=run.attempt,
                state=JobState.BLOCKED if conflict else JobState.CANCELLED if stopped else JobState.FAILED,
                begun_at=row.started_at,
                usage=sum((each.usage for each in before), Usage()),
                reason=with_way_out(fault.message, fault.hint),
                conflict=conflict.in_legs if conflict else "",
                first="" if conflict else fault.hint,
            )
        )
        facts = {"error": storable_value(fault.message)}
        if conflict:
            facts["conflict"] = storable_value(conflict.facts)
        attempt_rows.close(self.context.store, row, outcome, {}, facts)
        return outcome


class Jobs:
    """The job activity of a host."""

    def __init__(self, context: Context, adapters: Mapping[str, Adapter], slots: Slots) -> None:
        self._context = context
        self._adapters = adapters
        self._slots = slots

    @activity.defn(name="run_job")
    async def run_job(self, run: JobRun) -> JobOutcome:
        """Run one attempt of a job; a deferred one frees its slot until Temporal calls again."""
        adapter = self._adapters.get(run.assignment.worker.runtime)
        attempt: Attempt[JobOutcome | Deferral] = JobAttempt(self._context, run, adapter)
        ended = await run_attempt(self._context, self._slots, attempt)
        if isinstance(ended, Deferral):
            raise deferral.error(ended)
        self._context.reports.ended(run)
        return ended
