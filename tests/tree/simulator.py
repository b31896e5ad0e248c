"""A tree played without Temporal: commands are carried out against scripted or generated outcomes, and watched.

`World` is the shell's stand-in. After every step it checks what must hold in any tree, by its own book-keeping.
"""

from collections.abc import Callable

from workflows.contract.models import Action, AutonomyPolicy, Decision, Delegation, Ephemeral, Runtime
from workflows.policy.order import acting_deps
from workflows.policy.outcome import state_of
from workflows.policy.settings import Bounds, TreeSettings
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
from workflows.tree.events import Event, JobEnded, KillRequested, RetryRequested, TimerFired, TreeStarted
from workflows.tree.jobs import Continuation, JobOutcome, JobRun, JobState, TaskState, Text, Usage, Worker
from workflows.tree.records import EventRecord, JobRecord, TaskRecord
from workflows.tree.reducer import new_tree, reduce
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

    @property
    def now(self) -> float:
        return self.state.now

    def begin(self) -> "World":
        self.feed(TreeStarted(now=self.start.created_at))
        return self

    def feed(self, event: Event) -> list[Command]:
        """One step of the tree, carried out and checked."""
        commands = reduce(self.state, event)
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
        self.runs.append(run)
        self.flying[run.job_id] = run
        if run.continuation is not Continuation.FINALIZE:
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
        assert state.spent_jobs <= bounds.max_delegation_total_jobs + len(finals)
        alive = bool(self.flying or self.timers)
        if state.started:
            assert state.closed is not alive, "an open tree has something to wait for, a closed one has not"
        assert all(self.jobs[job_id] == job for job_id, job in state.jobs.items() if job_id in self.jobs)
        assert self.task in (None, state.task)


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
