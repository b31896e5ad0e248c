"""One step of the tree: its changed rows, written once, and the commands that follow."""

import math
from typing import TypedDict, Unpack

from workflows.contract.models import Decision, Notice
from workflows.contract.size_limits import cut_to_bound
from workflows.model.event_kinds import Data, EventKind
from workflows.model.event_payloads import check_payload
from workflows.model.refusals import Refusal
from workflows.model.rows import EventRecord, JobRecord, Records, RoundRecord
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor, check_job, check_task
from workflows.policy.bounds import near
from workflows.policy.decisions import decision_label
from workflows.policy.prices import dollars
from workflows.tree.chains import Leg
from workflows.tree.commands import AnswerOrder, Command, Record, RunChild, RunCoordinator
from workflows.tree.state import TreeMemory

Offered = RunChild | RunCoordinator


class JobChange(TypedDict, total=False):
    """The columns of a job that a step may change."""

    state: JobState
    attempt: int
    moves: int
    reason: str
    next: str
    waits_for: WaitsFor
    decision: Decision | None
    summary: str
    model: str | None
    branch: str | None
    head_sha: str | None
    pull_request: int | None
    result_digest: str | None
    usage: Usage
    cost_usd: float
    price_assumed: bool
    continuation: Continuation
    started_at: float | None
    ended_at: float | None
    preflight_failed: str | None


class Step:
    """Collects the changes and commands of one step; `finish` returns them in the order in which to carry them out."""

    def __init__(self, state: TreeMemory, now: float) -> None:
        self.state = state
        if math.isfinite(now):
            state.now = max(state.now, now)
        self._jobs: dict[str, None] = {}
        self._events: list[EventRecord] = []
        self._rounds: dict[str, RoundRecord] = {}
        self._task = False
        self._commands: list[Command] = []
        self._answers: list[AnswerOrder] = []

    @property
    def now(self) -> float:
        """Return the tree's time, which never runs backwards, whatever times the events have."""
        return self.state.now

    def command(self, command: Command) -> None:
        """Add a command, which is carried out after this step's rows are written."""
        self._commands.append(command)

    def withdraw(self, job_id: str) -> bool:
        """Take back an offer made in this step; return False if it was made earlier."""
        kept = [each for each in self._commands if not (isinstance(each, Offered) and each.run.job_id == job_id)]
        withdrawn = len(kept) < len(self._commands)
        self._commands = kept
        return withdrawn

    def answer(self, answer: AnswerOrder) -> None:
        """Add an answer to a waiting call, which is sent last. An answer alone makes no new revision."""
        self._answers.append(answer)

    def add(self, job: JobRecord) -> None:
        """Add a job's row, or replace it."""
        known = job.job_id in self.state.jobs
        self.state.jobs[job.job_id] = job
        self._jobs[job.job_id] = None
        if not known and job.continuation is Continuation.NONE:  # a continuation has its own event
            self.story(job)

    def change(self, job_id: str, **changes: Unpack[JobChange]) -> None:
        """Change a job's row, and record an event for a new state or attempt. Raise if the transition is not allowed
        (rulings B2, B7).
        """
        job = self.state.jobs[job_id]
        if "next" in changes:
            changes.setdefault("waits_for", WaitsFor.NOTHING)
        check_job(job_id, job.state, changes.get("state", job.state))
        changed = job.model_copy(update=dict(changes))
        self.state.jobs[job_id] = changed
        self._jobs[job_id] = None
        if (changed.state, changed.attempt) != (job.state, job.attempt):
            self.story(changed)

    def story(self, job: JobRecord) -> None:
        """Record the event of a job's new state (ruling B7); other events are recorded where they are decided."""
        self.event(*_of_job(job))

    def again(self, job_id: str, reason: str, next_step: str = "", *, counted: bool = True) -> None:
        """Queue a new attempt of a job, without a branch (rulings D3, I1). It counts against the job budget (C3),
        unless the job moved (Q5).
        """
        self.state.spent_jobs += counted
        self.state.first.pop(job_id, None)
        job = self.state.jobs[job_id]
        attempt, moves = job.attempt + 1, job.moves + (not counted)
        self.change(job_id, state=JobState.QUEUED, attempt=attempt, moves=moves, reason=reason, next=next_step)
        self.change(job_id, branch=None, head_sha=None, ended_at=None)

    def leg_again(self, leg: Leg, reason: str, next_step: str = "", *, counted: bool = True) -> None:
        """Queue a new attempt of a leg, and forget the chain of its last attempt."""
        self.state.coordinators.pop(leg.job_id, None)
        leg.own_branch = (self.state.jobs[leg.job_id].branch or "") if leg.asked and not leg.worktree else ""
        leg.again()
        leg.before = cut_to_bound("reason", reason)
        self.again(leg.job_id, reason, next_step, counted=counted)

    def task(self, state: TaskState, reason: str, next_step: str = "", waits_for: WaitsFor = WaitsFor.NOTHING) -> None:
        """Change the task's state; raise if the transition is not allowed (ruling B2)."""
        task = self.state.task
        check_task(task.state, state)
        ended = self.now if state.is_closed else None
        way_on = {"next": next_step, "waits_for": waits_for, "to_retry": ""}
        update = {"state": state, "reason": reason, "ended_at": ended} | way_on
        self.state.task, self._task = task.model_copy(update=update), True

    def next_step(self, text: str, waits_for: WaitsFor, to_retry: str = "") -> None:
        """Change only the command that the task offers."""
        task = self.state.task
        if (task.next, task.waits_for, task.to_retry) != (text, waits_for, to_retry):
            update = {"next": text, "waits_for": waits_for, "to_retry": to_retry}
            self.state.task, self._task = task.model_copy(update=update), True

    def round(self, record: RoundRecord) -> None:
        """Update the row of a round."""
        self._rounds[record.round_id] = record

    def event(self, kind: EventKind, job_id: str, message: str, data: Data) -> None:
        """Record an event; raise if its payload does not fit its kind (ruling B4).

        Events are numbered per job, so their ids do not depend on events of other jobs.
        """
        check_payload(kind, data)
        self._tell(kind, job_id, message, data)

    def notice(self, notice: Notice, job_id: str) -> None:
        """Record a notice of a run as an event. A kind that this release does not know is recorded unchanged."""
        self._tell(notice.kind, job_id, notice.message, dict(notice.data))

    def _tell(self, kind: str, job_id: str, message: str, data: Data) -> None:
        number = self.state.told[job_id] = self.state.told.get(job_id, 0) + 1
        self._events.append(
            EventRecord(
                event_id=f"{job_id}-e{number}",
                job_id=job_id,
                root_job_id=self.state.root_id,
                kind=kind,
                at=self.now,
                message=message,
                data=data,
            )
        )

    def record_refusal(self, refusal: Refusal, job_id: str) -> None:
        """Record the event of a refusal by a bound or gate."""
        self.event(EventKind(refusal.kind), job_id, refusal.message, refusal.data)

    def warn(self) -> None:
        """Record an event for each budget that is newly used to 80 % (ruling C4)."""
        for name, used, budget in near(self.state.input.settings.bounds, self.state.ledger()):
            if name not in self.state.warned:
                self.state.warned.append(name)
                data: Data = {"of": name, "used": used, "budget": budget}
                guess = "~" if name == "cost_usd" and self.state.price_assumed else ""
                message = f"{name}: {guess}{used:,.10g} of {budget:,.10g} used"
                self.event(EventKind.DELEGATION_BUDGET_WARNING, self.state.root_id, message, data)

    def finish(self) -> list[Command]:
        """Return the command to write the changed rows under a new revision, then the other commands; without changes,
        only the answers.
        """
        if not (self._jobs or self._events or self._rounds or self._task or self._commands):
            return [*self._answers]
        state = self.state
        state.revision += 1
        update = {"revision": state.revision}
        paused = {"paused_seconds": state.paused_seconds, "paused_since": state.paused_since}
        if state.task.model_dump(include=set(paused)) != paused:
            state.task, self._task = state.task.model_copy(update=paused), True
        for job_id in self._jobs:
            state.jobs[job_id] = state.jobs[job_id].model_copy(update=update)
        if self._task:
            state.task = state.task.model_copy(update=update)
        records = Records(
            task=state.task if self._task else None,
            jobs=tuple(state.jobs[job_id] for job_id in self._jobs),
            events=tuple(self._events),
            rounds=tuple(record.model_copy(update=update) for record in self._rounds.values()),
            revision=state.revision,
        )
        return [Record(records=records), *self._commands, *self._answers]


def _of_job(job: JobRecord) -> tuple[EventKind, str, str, Data]:
    """Return the event of a job's new state: its kind, its job, a line for people, its payload."""
    data: Data
    why = f": {job.reason}" if job.reason else ""
    match job.state:
        case JobState.QUEUED:
            data = {"leg": job.delegation_id, "agent": job.agent, "action": job.action.value, "attempt": job.attempt}
            return EventKind.JOB_QUEUED, job.job_id, f"{_name(job)} is queued{why}", data
        case JobState.RUNNING:
            data = {"attempt": job.attempt, "runtime": job.runtime, "model": job.model}
            return EventKind.JOB_BEGUN, job.job_id, f"{_name(job)} started", data
        case _:
            word = f", {decision}" if (decision := decision_label(job.state, job.decision)) else ""
            cost = dollars(job.cost_usd, assumed=job.price_assumed)
            spent = f"; {job.usage.total:,} tokens, {cost}" if job.usage.total else ""
            data = {
                "attempt": job.attempt,
                "state": job.state.value,
                "decision": job.decision.value if job.decision else None,
                "tokens": job.usage.total,
                "cost_usd": job.cost_usd,
                "cost_assumed": job.price_assumed,
            }
            return EventKind.JOB_ENDED, job.job_id, f"{_name(job)} {job.state}{word}{spent}{why}", data


def _name(job: JobRecord) -> str:
    """Return the job's name in log lines: its part, or what the lead does in it."""
    attempt = f", attempt {job.attempt}" if job.attempt > 1 else ""
    if job.delegation_id or job.continuation is Continuation.NONE:
        return f"{'part ' if job.delegation_id else ''}{job.name} ({job.agent} {job.action}{attempt})"
    return f"{job.agent}: {job.name} ({job.action}{attempt})"
