"""A tree played without Temporal: commands are carried out against scripted or generated outcomes, and watched.

`World` is the shell's stand-in. After every step it checks what must hold in any tree, by its own book-keeping.
"""

from collections.abc import Callable

from workflows.contract.models import Action, AutonomyPolicy, Decision, Delegation, Ephemeral, Runtime
from workflows.policy.order import acting_deps
from workflows.policy.outcome import state_of
from workflows.policy.settings import Bounds, TreeSettings
from workflows.policy.verbs import No
from workflows.tree.commands import (
    CancelJob,
    CancelTimer,
    CloseTree,
    Command,
    Record,
    RunChild,
    RunCoordinator,
    StartTimer,
)
from workflows.tree.events import (
    Event,
    JobEnded,
    KillRequested,
    ResumeRequested,
    RetryRequested,
    TimerFired,
    TreeStarted,
)
from workflows.tree.jobs import Continuation, JobOutcome, JobRun, JobState, TaskState, Text, Usage, Worker
from workflows.tree.records import DISMISS, RETRY, EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.tree.reducer import new_tree, reduce
from workflows.tree.reopening import refuse_retry
from workflows.tree.resume_verdict import refuse_resume
from workflows.tree.round_view import open_rounds
from workflows.tree.state import Leg, TreeInput, TreeState

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
    """A leg with everything a test does not care about filled in."""
    if fields.pop("ephemeral", False):
        worker = Ephemeral(runtime=Runtime.RUNTIME_C, autonomy_policy=AutonomyPolicy.DANGER_FULL_ACCESS)
        base: dict[str, object] = {"id": leg_id, "ephemeral": worker, "action": action, "prompt": f"do {leg_id}"}
    else:
        base = {"id": leg_id, "agent": agent, "action": action, "prompt": f"do {leg_id}"}
    return Delegation.model_validate(base | fields)


def outcome(run: JobRun, decision: str | None = "approved", *legs: Delegation, **fields: object) -> JobOutcome:
    """How an attempt ended; without a decision it crashed."""
    said = Decision(decision) if decision else None
    base: dict[str, object] = {
        "job_id": run.job_id,
        "attempt": run.attempt,
        "state": state_of(said) if said else JobState.FAILED,
        "decision": said,
        "summary": f"{run.job_id} says {decision}",
        "delegations": legs,
        "agents": AGENTS if legs else (),
    }
    return JobOutcome.model_validate(base | fields)


def tree_input(bounds: Bounds | None = None, **fields: object) -> TreeInput:
    """A tree whose lead is asked to reach a goal."""
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
    return TreeInput.model_validate(base | fields)


class World:
    """One tree, everything in flight, and everything it ever said."""

    def __init__(self, start: TreeInput) -> None:
        self.start = start
        self.state: TreeState = new_tree(start)
        self.flying: dict[str, JobRun] = {}
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
        self.seen = start.created_at
        self.paused_seconds = 0.0
        self.closed_seconds = 0.0
        self.was_open: set[str] = set()
        self.dispatched = False

    @property
    def now(self) -> float:
        return self.state.now

    def begin(self) -> "World":
        self.feed(TreeStarted(now=self.start.created_at))
        return self

    def feed(self, event: Event) -> list[Command]:
        """One step of the tree, carried out and checked."""
        before, closed = self.seen, self.state.closed
        self.was_open = {each.round_id for each in self.open()}
        self.dispatched = False
        commands = reduce(self.state, event)
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
        return commands

    def end(self, job_id: str, decision: str | None = "approved", *legs: Delegation, **fields: object) -> list[Command]:
        """A job in flight ends."""
        run = self.flying[job_id]
        at = self.now + float(str(fields.pop("after", 1.0)))
        return self.feed(JobEnded(now=at, outcome=outcome(run, decision, *legs, **fields)))

    def leg(self, leg_id: str, decision: str | None = "approved", *legs: Delegation, **fields: object) -> list[Command]:
        """The running leg with this delegation id ends."""
        job_id = next(run.job_id for run in self.flying.values() if run.delegation_id == leg_id)
        return self.end(job_id, decision, *legs, **fields)

    def coordinator(self, decision: str | None = "approved", *legs: Delegation, **fields: object) -> list[Command]:
        """The root's chain, whichever of its jobs runs, ends."""
        return self.end(self.state.root.job_id, decision, *legs, **fields)

    def fire(self) -> list[Command]:
        """The next timer goes off."""
        key = min(self.timers, key=lambda each: self.timers[each])
        return self.feed(TimerFired(now=max(self.now, self.timers.pop(key)), key=key))

    def kill(self, *, immediate: bool = False) -> list[Command]:
        return self.feed(KillRequested(now=self.now + 1, actor="ann", immediate=immediate))

    def retry(self, job_id: str) -> list[Command]:
        return self.feed(RetryRequested(now=self.now + 1, actor="ann", job_id=job_id))

    def resume(self, verb: str, text: str = "", job_id: str = ROOT, **fields: object) -> list[Command]:
        """Ann says something to a pause."""
        base: dict[str, object] = {"now": self.now + 1, "actor": "ann", "channel": "cli"}
        return self.feed(ResumeRequested.model_validate(base | {"job_id": job_id, "verb": verb, "text": text} | fields))

    def open(self) -> list[RoundRecord]:
        """Rounds nobody has ended, as the rows have it."""
        return [each for each in self.rounds.values() if each.end is None]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def task_state(self) -> TaskState:
        return self.state.task.state

    def named(self, leg_id: str) -> Leg:
        """A leg of the root's latest batch."""
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
            case CancelJob():
                assert command.job_id in self.flying, "only what runs is cancelled"
                self.cancelled.append(command.job_id)
            case StartTimer():
                assert command.key not in self.timers
                self.timers[command.key] = self.now + command.seconds
            case CancelTimer():
                del self.timers[command.key]
            case CloseTree():
                assert not self.flying
                assert not self.timers
                self.close = command

    def _write(self, command: Record) -> None:
        for job in command.records.jobs:
            assert job.job_id not in self.jobs or self.jobs[job.job_id].revision < job.revision
            self.jobs[job.job_id] = job
            if job.state is not JobState.RUNNING:
                self.flying.pop(job.job_id, None)
        self.task = command.records.task or self.task
        self.events += command.records.events
        for each in command.records.rounds:
            known = self.rounds.get(each.round_id)
            assert bool(each.commands) == bool(each.verbs) == (each.closed_at is None) == (each.end is None)
            assert known is None or (known.end is None and known.revision < each.revision), "a round ends once"
            self.rounds[each.round_id] = each

    def _run(self, run: JobRun) -> None:
        assert (run.job_id, run.attempt) not in {(r.job_id, r.attempt) for r in self.runs}, "an attempt goes out once"
        assert run.job_id not in self.flying
        assert self.jobs[run.job_id].state is JobState.RUNNING, "the row was there first"
        assert not any(each.continuation is Continuation.FINALIZE for each in self.runs), "the finalize is the last job"
        if run.continuation is not Continuation.NONE and run.attempt == 1:
            parent = self.jobs[run.parent_job_id or ""]
            assert (parent.job_id, parent.attempt) not in self.continued, (
                "one continuation per batch, and per refused set"
            )
            self.continued.append((parent.job_id, parent.attempt))
        assert run.attempt > 1 or not self.state.frozen, "a blocked task starts only what an operator runs again"
        self.runs.append(run)
        self.dispatched = True
        self.flying[run.job_id] = run
        if run.continuation not in {Continuation.FINALIZE, Continuation.ANSWERED}:
            assert run.delegation_depth <= self.start.settings.bounds.max_delegation_depth
        if run.delegation_id is not None:
            self._check_leg(run)

    def _check_leg(self, run: JobRun) -> None:
        found = self.state.find_leg(run.job_id)
        assert found is not None
        assert found[0].batch is not None
        assert all(dep.state is JobState.SUCCEEDED for dep in acting_deps(found[0].batch.legs, found[1]))
        bounds = self.start.settings.bounds
        assert len(found[0].batch.legs) <= bounds.max_delegation_width
        assert not bounds.max_delegation_token_budget or self.state.usage.total < bounds.max_delegation_token_budget
        shared = [each.shared_worktree for each in self.flying.values() if each.shared_worktree]
        assert len(shared) == len(set(shared)), "legs that share a worktree run one after another"

    def _check(self) -> None:
        state, bounds = self.state, self.start.settings.bounds
        assert state.running == [job for job in state.jobs if job in self.flying], "the books agree on what runs"
        assert sorted(state.timers) == sorted(self.timers)
        counted = [r for r in self.runs if r.job_id != ROOT or r.attempt > 1]
        finals = [r for r in counted if r.continuation is Continuation.FINALIZE]
        assert len(finals) <= 1
        assert len(counted) - len(finals) <= bounds.max_delegation_total_jobs
        assert state.spent_jobs <= bounds.max_delegation_total_jobs, "the finalize is outside the count"
        self._check_pauses()
        self._check_offers()
        alive = bool(self.flying or self.timers)
        if state.started:
            assert state.closed is not alive, "an open tree has something to wait for, a closed one has not"
        assert all(self.jobs[job_id] == job for job_id, job in state.jobs.items() if job_id in self.jobs)
        assert self.task in (None, state.task)

    def _check_offers(self) -> None:
        """No printed command would be refused; below a blocked task nothing is asked and nothing starts (B3, D4)."""
        state = self.state
        for text in dict.fromkeys([state.task.next, *(job.next for job in state.jobs.values())]):
            if text.startswith(RETRY):
                assert refuse_retry(state, text.removeprefix(RETRY).strip()) is None, text
        assert not state.frozen or state.task.next.startswith((RETRY, DISMISS))
        assert not state.blocked or not self.open()
        for each in self.open():
            self._check_round(each)

    def _check_round(self, each: RoundRecord) -> None:
        for command in each.commands:
            job_id, verb, *rest = command.removeprefix("service resume ").split(" ", 2)
            text = {"extend": "1h", "answer": " ".join(rest).replace("<text>", "yes")}.get(verb, "with care")
            said = ResumeRequested(
                now=self.now, actor="ann", channel="cli", job_id=job_id, verb=verb, text=text, round=each.number
            )
            refusal = refuse_resume(self.state, said)
            assert refusal is None or refusal.kind == No.NO_ROOM, (command, refusal)

    def _check_pauses(self) -> None:
        """At most one round per coordinator, numbered; nothing starts in a pause; its time is nobody's (F1, F8)."""
        state, still = self.state, self.open()
        assert [each.round_id for each in open_rounds(state)] == [
            each.round_id for each in sorted(still, key=lambda each: each.opened_at)
        ]
        assert len({each.coordinator_id for each in still}) == len(still)
        assert state.paused == bool(still)
        assert not (self.dispatched and self.was_open & {each.round_id for each in still}), (
            "a paused tree starts nothing"
        )
        assert (state.task.state is TaskState.AWAITING_HUMAN) == bool(still)
        assert not still or state.finalize is None, "a tree that ends waits for nobody"
        counted = self.now - self.start.created_at - self.paused_seconds - self.closed_seconds
        assert state.closed or abs(state.elapsed(self.now) - counted) < 1e-6
        assert self.task is None or self.task.ended_at or self.task.elapsed(self.now) == state.elapsed(self.now)
        assert len([key for key in self.timers if key.startswith("round:")]) == len(still)
        for each in still:
            assert each.commands
            assert each.questions or each.failing
            assert self.jobs[each.job_id].next.startswith("service resume ")


def play(world: World, script: Script, limit: int = 500) -> World:
    """Everything ends in the order it was started, as the script says, until the tree closes."""
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
