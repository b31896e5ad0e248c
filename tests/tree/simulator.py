"""A tree played without Temporal: commands are carried out with scripted or generated outcomes, and checked.

`World` replaces the shell. After every step it checks the invariants of any tree, by its own records.
"""

from collections.abc import Callable, Mapping

from tests.assigned import nested
from tests.tree.lines import Lines
from workflows.contract.models import Action, AutonomyPolicy, Decision, Delegation, Ephemeral, Runtime
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.long_texts import Text
from workflows.model.orders import ResumeOrder
from workflows.model.rows import DISMISS, KILL, RETRY, EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.model.settings import Bounds, TreeSettings
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState, WaitsFor
from workflows.model.workers import Worker
from workflows.policy.decisions import state_of
from workflows.tree.chains import Leg
from workflows.tree.commands import (
    CancelJob,
    CancelTimer,
    CloseTree,
    Command,
    Record,
    RunChild,
    RunCoordinator,
    StartTimer,
    TakeBack,
)
from workflows.tree.events import (
    Event,
    JobBegun,
    JobEnded,
    KillRequested,
    ResumeRequested,
    RetryRequested,
    TimerFired,
    TreeStarted,
    TreeTakenUp,
)
from workflows.tree.pause_rounds import open_rounds, timers
from workflows.tree.reducer import new_tree, reduce
from workflows.tree.reopen import refuse_retry
from workflows.tree.resume import refuse_resume
from workflows.tree.state import TreeInput, TreeMemory

ROOT = "job-root"
CAPABILITIES = ("ask", "review", "implement")
CODER = Worker(
    name="coder", runtime="runtime_a", capabilities=CAPABILITIES, autonomy_policy=AutonomyPolicy.DANGER_FULL_ACCESS
)
LEAD = CODER.model_copy(update={"name": "lead", "runtime": "runtime_b"})
READER = Worker(name="reader", runtime="runtime_b", capabilities=("ask", "review"))
AGENTS = (CODER, LEAD, READER)

Script = Callable[[JobRun], JobOutcome]


def delegation(leg_id: str, agent: str | None = "coder", action: str = "implement", **fields: object) -> Delegation:
    """Return a leg with defaults for everything a test does not specify."""
    if fields.pop("ephemeral", False):
        worker = Ephemeral(runtime=Runtime.RUNTIME_C, autonomy_policy=AutonomyPolicy.DANGER_FULL_ACCESS)
        base: dict[str, object] = {"id": leg_id, "ephemeral": worker, "action": action, "prompt": f"do {leg_id}"}
    else:
        base = {"id": leg_id, "agent": agent, "action": action, "prompt": f"do {leg_id}"}
    return Delegation.model_validate(base | fields)


def resume_requested(fields: Mapping[str, object]) -> ResumeRequested:
    """Return a person's request to a pause."""
    order = ResumeOrder.model_validate(
        {name: each for name, each in fields.items() if name in ResumeOrder.model_fields}
    )
    rest = {name: each for name, each in fields.items() if name not in ResumeOrder.model_fields}
    return ResumeRequested.model_validate(rest | {"order": order})


def outcome(run: JobRun, decision: str | None = "approved", *legs: Delegation, **fields: object) -> JobOutcome:
    """Return an attempt's outcome; without a decision it crashed."""
    concluded = Decision(decision) if decision else None
    base: dict[str, object] = {
        "job_id": run.job_id,
        "attempt": run.attempt,
        "state": state_of(concluded) if concluded else JobState.FAILED,
        "decision": concluded,
        "summary": f"{run.job_id} says {decision}",
        "delegations": legs,
        "agents": AGENTS if legs else (),
    }
    return JobOutcome.model_validate(base | fields)


def tree_input(bounds: Bounds | None = None, **fields: object) -> TreeInput:
    """Return the input of a tree whose lead is to reach a goal."""
    base: dict[str, object] = {
        "root_job_id": ROOT,
        "task_id": "task-1",
        "title": "a goal",
        "repo": "repo",
        "worker": LEAD,
        "action": Action.IMPLEMENT,
        "prompt": Text(inline="reach the goal"),
        "created_at": 1000.0,
        "settings": TreeSettings(bounds=bounds or Bounds()),
    }
    return TreeInput.model_validate(nested(base | fields))


STORY = frozenset(
    {
        EventKind.TREE_STARTED,
        EventKind.TREE_ENDED,
        EventKind.TREE_CUT_SHORT,
        EventKind.JOB_QUEUED,
        EventKind.JOB_BEGUN,
        EventKind.JOB_ENDED,
        EventKind.JOB_TAKEN_BACK,
        EventKind.JOB_MOVED,
        EventKind.BATCH_SETTLED,
        EventKind.CONTINUATION_ENQUEUED,
    }
)
"""Events of every tree, which tests of one rule skip."""

COMMANDS = {
    WaitsFor.RUNS: f"{KILL} {ROOT} --now",
    WaitsFor.RESUME: "service resume ",
    WaitsFor.RETRY: RETRY,
    WaitsFor.DISMISS: DISMISS,
}
"""Command in `next` for each value of `waits_for`."""


class World:
    """One tree, everything in flight, and all its output.

    A patient world leaves offers waiting until a test lets its host begin or return them. Otherwise everything begins
    at once, as on a host with room.
    """

    def __init__(self, start: TreeInput, *, patient: bool = False) -> None:
        self.start = start
        self.patient = patient
        self.state: TreeMemory = new_tree(start)
        self.flying: dict[str, JobRun] = {}
        self.offered: dict[str, JobRun] = {}
        """Jobs offered to the host, and not begun."""
        self.asked_back: set[str] = set()
        self.given_back: set[tuple[str, int, int]] = set()
        """Job, attempt and offer of all runs that must never begin."""
        self.answers: list[JobBegun] = []
        """Reports of begins that came before the tree's request to return the job."""
        self.timers: dict[str, float] = {}
        self.log: list[Command] = []
        self.history: list[tuple[Event, list[Command]]] = []
        self.runs: list[JobRun] = []
        self.jobs: dict[str, JobRecord] = {}
        self.task: TaskRecord | None = None
        self.events: list[EventRecord] = []
        self.close: CloseTree | None = None
        self.cancelled: list[str] = []
        self.continued: list[tuple[str, int]] = []
        self.rounds: dict[str, RoundRecord] = {}
        self.lines = Lines(start)
        self.seen = start.created_at
        self.paused_seconds = 0.0
        self.closed_seconds = 0.0
        self.was_open: set[str] = set()
        self.interrupted: set[tuple[str, int]] = set()
        self.moved: set[tuple[str, int]] = set()
        """Job and attempt of all runs that ended with their host."""
        self.dispatched = False

    @property
    def now(self) -> float:
        return self.state.now

    def begin(self) -> "World":
        self.feed(TreeStarted(now=self.start.created_at))
        return self

    def feed(self, event: Event) -> list[Command]:
        """Apply an event, carry out the commands, and check the result."""
        before, closed = self.seen, self.state.closed
        self.was_open = {each.round_id for each in self.open()}
        self.dispatched = False
        if isinstance(event, JobEnded):
            self.lines.hear(event.outcome)
        commands = reduce(self.state, event)
        at_once = isinstance(event, KillRequested) and event.immediate
        assert at_once or not any(isinstance(command, CancelJob) for command in commands), "what runs, runs on"
        if closed:
            self.closed_seconds += self.state.now - before
        elif self.was_open:
            self.paused_seconds += self.state.now - before
        self.seen = self.state.now
        self.history.append((event, commands))
        for index, command in enumerate(commands):
            assert not isinstance(command, Record) or index == 0, "rows come before everything that depends on them"
            self._carry_out(command)
        self._check()
        while self.answers:
            self.feed(self.answers.pop())
        while not self.patient and (self.asked_back or self.offered):
            self.host()
        return commands

    def host(self, job_id: str | None = None) -> None:
        """Make the host's next move, or its move for this job: return it if that was requested, else begin it."""
        chosen = job_id or next(iter([*self.asked_back, *self.offered]))
        self.give_back(chosen) if chosen in self.asked_back else self.begins(chosen)

    def begins(self, job_id: str, *, reported: bool = True) -> None:
        """Begin a job: its claim comes first, so later requests to return it fail. The tree may learn of it late."""
        run = self.offered.pop(job_id)
        wanted = job_id in self.asked_back
        self.asked_back.discard(job_id)
        assert (job_id, run.attempt, run.offer) not in self.given_back, "what was taken back never begins"
        self.flying[job_id] = run
        self._check_begin(run)
        if reported or wanted:
            self.feed(JobBegun(now=self.now, job_id=job_id, offer=run.offer, at=self.now))

    def give_back(self, job_id: str) -> None:
        run = self.offered.pop(job_id)
        self.asked_back.remove(job_id)
        self.given_back.add((job_id, run.attempt, run.offer))
        cancelled = JobOutcome(job_id=job_id, attempt=run.attempt, state=JobState.CANCELLED)
        self.feed(JobEnded(now=self.now, outcome=cancelled))

    def move(self, job_id: str, **fields: object) -> list[Command]:
        """Lose the host of a job, begun or not (ruling Q5)."""
        base: dict[str, object] = {"state": JobState.CANCELLED, "reason": "its host is lost", "moved": True}
        if job_id in self.offered:
            run = self.offered.pop(job_id)
            self.asked_back.discard(job_id)
            self.given_back.add((job_id, run.attempt, run.offer))
        else:
            run = self.flying[job_id]
            self.moved.add((job_id, run.attempt))
            self.interrupted.add((job_id, run.attempt))
            base |= {"begun_at": self.now}
        base |= {"job_id": job_id, "attempt": run.attempt} | fields
        return self.feed(JobEnded(now=self.now + 1, outcome=JobOutcome.model_validate(base)))

    def end(self, job_id: str, decision: str | None = "approved", *legs: Delegation, **fields: object) -> list[Command]:
        """End a job in flight."""
        run = self.flying[job_id]
        fields = {"begun_at": self.now} | fields
        at = self.now + float(str(fields.pop("after", 1.0)))
        return self.feed(JobEnded(now=at, outcome=outcome(run, decision, *legs, **fields)))

    def leg(self, leg_id: str, decision: str | None = "approved", *legs: Delegation, **fields: object) -> list[Command]:
        """End the running part with this delegation id."""
        job_id = next(run.job_id for run in self.flying.values() if run.delegation_id == leg_id)
        return self.end(job_id, decision, *legs, **fields)

    def coordinator(self, decision: str | None = "approved", *legs: Delegation, **fields: object) -> list[Command]:
        """End the running job of the root's chain."""
        return self.end(self.state.root.job_id, decision, *legs, **fields)

    def fire(self) -> list[Command]:
        """Fire the next timer."""
        key = min(self.timers, key=lambda timer: self.timers[timer])
        return self.feed(TimerFired(now=max(self.now, self.timers.pop(key)), key=key))

    def kill(self, *, immediate: bool = False) -> list[Command]:
        return self.feed(KillRequested(now=self.now + 1, actor="ann", immediate=immediate))

    def retry(self, job_id: str) -> list[Command]:
        return self.feed(RetryRequested(now=self.now + 1, actor="ann", job_id=job_id))

    def taken_up(self, gap: float = 100.0) -> list[Command]:
        """Lose the workflow with all running jobs, and continue the tree from its state."""
        since = self.now
        self.interrupted |= {(run.job_id, run.attempt) for run in self.flying.values()}
        self.flying, self.offered, self.asked_back = {}, {}, set()
        self.state = TreeMemory.model_validate_json(self.state.model_dump_json())
        self.timers = {each.key: since + gap + each.seconds for each in timers(self.state, since)}
        if not self.open():
            self.closed_seconds += gap
        return self.feed(TreeTakenUp(now=since + gap, actor="ann", why="terminated by hand", since=since))

    def resume(self, verb: str, text: str = "", job_id: str = ROOT, **fields: object) -> list[Command]:
        """Ann says something to a pause."""
        base: dict[str, object] = {
            "now": self.now + 1,
            "actor": "ann",
            "channel": "cli",
            "answers": True,
        }
        return self.feed(resume_requested(base | {"job_id": job_id, "verb": verb, "text": text} | fields))

    def open(self) -> list[RoundRecord]:
        """Return the open rounds, by their rows."""
        return [each for each in self.rounds.values() if each.end is None]

    def kinds(self) -> list[str]:
        """Return the kinds of events that not every tree has."""
        return [event.kind for event in self.said]

    @property
    def said(self) -> list[EventRecord]:
        return [event for event in self.events if event.kind not in STORY]

    def task_state(self) -> TaskState:
        return self.state.task.state

    def named(self, leg_id: str) -> Leg:
        """Return a leg of the root's latest batch."""
        assert self.state.root.batch is not None
        return self.state.root.batch.legs[leg_id]

    @property
    def last(self) -> JobRun:
        return self.runs[-1]

    def _carry_out(self, command: Command) -> None:
        self.log.append(command)
        match command:
            case Record():
                self._write(command)
            case RunChild() | RunCoordinator():
                self._run(command.run)
            case TakeBack():
                assert self.offered.get(command.job_id, self.flying.get(command.job_id)), "only what is out is wanted"
                if command.job_id in self.offered:
                    self.asked_back.add(command.job_id)
                else:
                    late = JobBegun(now=self.now, job_id=command.job_id, offer=command.offer, at=self.now)
                    self.answers.append(late)
            case CancelJob():
                assert command.job_id in self.flying or command.job_id in self.offered, "only what is out is cancelled"
                self.cancelled.append(command.job_id)
                if command.job_id in self.offered:
                    self.asked_back.add(command.job_id)
            case StartTimer():
                assert command.key not in self.timers
                self.timers[command.key] = self.now + command.seconds
            case CancelTimer():
                del self.timers[command.key]
            case CloseTree():
                assert not self.flying
                assert not self.offered
                assert not self.timers
                self.close = command
            case _:
                pass

    def _write(self, command: Record) -> None:
        self.lines.see(command.records)
        for job in command.records.jobs:
            assert job.job_id not in self.jobs or self.jobs[job.job_id].revision < job.revision
            self.jobs[job.job_id] = job
            if job.state not in {JobState.QUEUED, JobState.RUNNING}:
                self.flying.pop(job.job_id, None)
            if job.state is JobState.QUEUED and job.attempt > self._attempt(job.job_id):
                self.flying.pop(job.job_id, None)
        self.task = command.records.task or self.task
        self.events += command.records.events
        for row in command.records.rounds:
            known = self.rounds.get(row.round_id)
            assert bool(row.commands) == bool(row.verbs) == (row.closed_at is None) == (row.end is None)
            assert known is None or (known.end is None and known.revision < row.revision), "a round ends once"
            self.rounds[row.round_id] = row

    def _attempt(self, job_id: str) -> int:
        return self.flying[job_id].attempt if job_id in self.flying else 0

    def _run(self, run: JobRun) -> None:
        """Check an offer: a job is offered again only after it was returned, and unchanged."""
        assert run.job_id not in self.flying
        assert run.job_id not in self.offered
        again = any((job_id, attempt) == (run.job_id, run.attempt) for job_id, attempt, _ in self.given_back)
        assert (run.job_id, run.attempt) not in {(r.job_id, r.attempt) for r in self.runs}, "an attempt goes out once"
        assert self.jobs.get(run.job_id, self.state.jobs[run.job_id]).state is JobState.QUEUED, "the row was there"
        finals = [each for each in self.runs if each.continuation is Continuation.FINALIZE]
        assert all((each.job_id, each.attempt) in self.interrupted for each in finals), "the finalize is the last job"
        if run.continuation is not Continuation.NONE and run.attempt == 1 and not again:
            parent = self.jobs[run.parent_job_id or ""]
            assert (parent.job_id, parent.attempt) not in self.continued, (
                "one continuation per batch, and per refused set"
            )
            self.continued.append((parent.job_id, parent.attempt))
        assert run.attempt > 1 or not self.state.is_frozen, "a blocked task starts only what an operator runs again"
        self.lines.check(run)
        self.dispatched = True
        self.offered[run.job_id] = run
        if run.continuation not in {Continuation.FINALIZE, Continuation.ANSWERED}:
            assert run.delegation_depth <= self.start.settings.bounds.max_delegation_depth
        if run.delegation_id is not None:
            self._check_leg(run)

    def _check_begin(self, run: JobRun) -> None:
        """Check that an attempt runs once."""
        assert (run.job_id, run.attempt) not in {(r.job_id, r.attempt) for r in self.runs}
        self.runs.append(run)

    def _check_leg(self, run: JobRun) -> None:
        pair = self.state.find_leg(run.job_id)
        assert pair is not None
        assert pair[0].batch is not None
        assert all(dep.state is JobState.SUCCEEDED for dep in pair[0].batch.acting_deps(pair[1]))
        bounds = self.start.settings.bounds
        assert len(pair[0].batch.legs) <= bounds.max_delegation_width
        assert not bounds.max_delegation_token_budget or self.state.usage.total < bounds.max_delegation_token_budget
        out = [*self.flying.values(), *self.offered.values()]
        shared = [each.shared_worktree for each in out if each.shared_worktree]
        assert len(shared) == len(set(shared)), "legs that share a worktree run one after another"

    def _check(self) -> None:
        state, bounds = self.state, self.start.settings.bounds
        assert sorted(state.offers) == sorted(self.offered) or self._host_knows_first(), "the books agree on offers"
        assert state.running == [job for job in state.jobs if job in self.flying and job not in state.offers]
        assert sorted(state.timers) == sorted(self.timers)
        counted = [r for r in self.runs if (r.job_id, r.attempt) not in self.moved][1:]
        finals = [job for job in state.jobs.values() if job.continuation is Continuation.FINALIZE]
        assert len(finals) <= 1
        counted = [r for r in counted if r.continuation is not Continuation.FINALIZE]
        assert len(counted) <= bounds.max_delegation_total_jobs
        assert state.spent_jobs <= bounds.max_delegation_total_jobs, "the finalize is outside the count"
        self._check_pauses()
        self._check_offers()
        alive = bool(self.flying or self.offered or self.timers)
        if state.started:
            assert state.closed is not alive, "an open tree has something to wait for, a closed one has not"
        assert all(self.jobs[job_id] == job for job_id, job in state.jobs.items() if job_id in self.jobs)
        assert self.task in (None, state.task)

    def _check_offers(self) -> None:
        """Check that no printed command would be refused, and that a blocked task asks and starts nothing (B3, D4)."""
        state = self.state
        rows: list[TaskRecord | JobRecord] = [state.task, *state.jobs.values()]
        for row in rows:
            _, offered, job_id = row.next.partition(RETRY)
            assert not offered or refuse_retry(state, job_id.strip()) is None, row.next
            for word, command in COMMANDS.items():
                assert (row.waits_for is word) == (command in row.next), row
        assert not state.is_frozen or state.task.waits_for in {WaitsFor.RETRY, WaitsFor.DISMISS}
        assert bool(state.task.to_retry) is (state.task.waits_for is WaitsFor.RETRY)
        assert not state.task.to_retry or f"{RETRY} {state.task.to_retry}" in state.task.next
        assert not state.is_blocked or not self.open()
        for open_round in self.open():
            self._check_round(open_round)

    def _check_round(self, row: RoundRecord) -> None:
        for command in row.commands:
            job_id, verb, *rest = command.removeprefix("service resume ").split(" ", 2)
            text = {"extend": "1h", "answer": " ".join(rest).replace("<text>", "yes")}.get(verb, "with care")
            order = ResumeOrder(actor="ann", channel="cli", job_id=job_id, verb=verb, text=text, round=row.number)
            request = ResumeRequested(now=self.now, order=order, answers=True)
            refusal = refuse_resume(self.state, request)
            assert refusal is None, (command, refusal)
            if len(self.open()) == 1:
                tried = TreeMemory.model_validate_json(self.state.model_dump_json())
                reduce(tried, request)
                ends = tried.finalize is not None
                assert verb == "answer" or ends == (verb == "abort"), f"{command} has no effect of its own"

    def _host_knows_first(self) -> bool:
        """Return whether the books differ only by begins that the tree has not heard of yet."""
        return sorted(self.state.offers) == sorted({*self.offered, *(set(self.flying) & set(self.state.offers))})

    def _check_pauses(self) -> None:
        """Check rounds: at most one per coordinator, numbered; nothing starts in a pause; its time is free (F1, F8)."""
        state, still = self.state, self.open()
        assert [row.round_id for row in open_rounds(state)] == [
            row.round_id for row in sorted(still, key=lambda row: row.opened_at)
        ]
        assert len({row.coordinator_id for row in still}) == len(still)
        assert state.is_paused == bool(still)
        assert not (self.dispatched and self.was_open & {row.round_id for row in still}), "a paused tree starts nothing"
        assert (state.task.state is TaskState.AWAITING_HUMAN) == bool(still)
        assert not still or state.finalize is None, "a tree that ends waits for nobody"
        counted = self.now - self.start.created_at - self.paused_seconds - self.closed_seconds
        assert state.closed or abs(state.elapsed_seconds(self.now) - counted) < 1e-6
        assert (
            self.task is None
            or self.task.ended_at
            or self.task.elapsed_seconds(self.now) == state.elapsed_seconds(self.now)
        )
        assert len([key for key in self.timers if key.startswith("round:")]) == len(still)
        for row in still:
            assert row.commands
            assert row.questions or row.failing
            assert self.jobs[row.job_id].next.startswith("service resume ")


def play(world: World, script: Script, limit: int = 500) -> World:
    """End everything in the order it was started, as the script says, until the tree closes."""
    while not world.state.closed and limit:
        limit -= 1
        if world.flying:
            run = next(iter(world.flying.values()))
            world.feed(JobEnded(now=world.now + 1, outcome=script(run)))
        else:
            world.fire()
    assert world.state.closed
    return world


def tokens(amount: int) -> Usage:
    return Usage(input_tokens=amount)


def done(world: World) -> bool:
    return world.state.task.state is TaskState.DONE
