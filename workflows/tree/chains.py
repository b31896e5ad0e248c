"""A coordinator's chain, its batch and the batch's legs: what they remember, and how each of them changes.

Which change is due is decided in `dispatch`, `job_end`, `settle`, `finalize`, `retry` and `resume`.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Any

from pydantic import model_validator

from workflows.contract.graph import topological
from workflows.contract.models import Action, FailurePolicy, SynthesisRule
from workflows.model.digests import digest
from workflows.model.jobs import JobOutcome, JobRun, Work
from workflows.model.rounds import Asked, Reply
from workflows.model.rows import JobRecord
from workflows.model.states import ENDED_JOBS, FAILING, JobState, check_job
from workflows.model.wire import Memory
from workflows.model.workers import Assignment
from workflows.policy.loops import Ladder

_BALLOTS = frozenset({SynthesisRule.QUORUM, SynthesisRule.VOTE, SynthesisRule.VERIFY})
_LOST = ENDED_JOBS - {JobState.SUCCEEDED}
"""How a dependency ends that nothing can follow."""


class Leg(Memory):
    """One delegation of a batch, from admission to its end.

    Its job's row says how an attempt ended; `state` says how the leg stands: with its whole chain, when it delegates.
    """

    id: str
    job_id: str
    assignment: Assignment
    deps: tuple[str, ...] = ()
    failure_policy: FailurePolicy | None = None
    rules: tuple[SynthesisRule, ...] = ()
    """Its own synthesis rule and those of its fingerprint's duplicates, which cast no ballots (ruling C5)."""
    quorum: int | None = None
    """The largest K of them."""
    retry: int = 0
    worktree: str | None = None
    at_base: bool = False
    """It begins from the base of the tree (ruling O2)."""
    own_branch: str = ""
    """The branch of its attempt before, which asked people: this one goes on on it (ruling O5)."""
    artifacts: tuple[str, ...] = ()
    twin: str | None = None
    """The leg that runs in this one's place (ruling C5)."""
    state: JobState = JobState.QUEUED
    reason: str = ""
    """Why it failed, or never ran."""
    attempt: int = 1
    retries_used: int = 0
    timer: str | None = None
    """Set while it waits to be run again (ruling D3)."""
    failed_as: JobState | None = None
    """How the attempt before that wait ended."""
    escalated: bool = False
    """It failed, and no person has said yet what becomes of it (ruling F3)."""
    asked: bool = False
    """It ended failing and asked people: their answer goes to the coordinator, who decides (ruling F2)."""
    guided_by: list[int] = []
    """Rounds whose instructions its re-runs are given (ruling F3)."""
    before: str = ""
    """How the attempt before this one ended."""
    outcome_job_id: str = ""
    """The job whose record is this leg's outcome: its own, or the last of its coordinator chain."""
    findings: str = ""
    """What a leg found that looks at things, or is a check."""
    touched_files: tuple[str, ...] = ()
    artifact_digest: str | None = None
    progress: str = ""

    @property
    def finds(self) -> bool:
        """Its findings are kept: what an implement leg has to say stands in its branch."""
        return self.assignment.action is not Action.IMPLEMENT or SynthesisRule.VERIFY in self.rules

    @property
    def failing(self) -> bool:
        """It counts as a failing child (ruling D2)."""
        return self.state in FAILING

    @property
    def policy(self) -> FailurePolicy:
        """The one it was given; without one, a ballot's failure is only an input to its rule (ruling D8)."""
        if self.failure_policy is not None:
            return self.failure_policy
        return FailurePolicy.CONTINUE if _BALLOTS.intersection(self.rules) else FailurePolicy.BLOCK_PARENT

    @property
    def unstarted(self) -> bool:
        """It waits to be started, for whatever reason, by itself and not in its twin."""
        return self.state is JobState.QUEUED and not self.twin

    @property
    def part(self) -> str:
        """What it adds to its generation's digest; on another model or effort it is a new attempt (ruling H3)."""
        return digest([self.state, self.progress, self.assignment.model, self.assignment.effort])

    def begun(self) -> None:
        """Its host has begun it, or what it delegated is open again."""
        self._move(JobState.RUNNING)
        self.failed_as, self.reason = None, ""

    def ended(self, state: JobState, reason: str = "") -> None:
        """It has come to its end, or never will begin."""
        self._move(state)
        self.reason = reason

    def unskipped(self) -> None:
        """What kept it from running is gone."""
        self._move(JobState.QUEUED)
        self.reason = ""

    def pause_before_retry(self, ended: JobState, reason: str) -> str:
        """Its next attempt waits; until it begins, the failure it had is kept (ruling D3)."""
        self.retries_used, self.failed_as, self.reason = self.retries_used + 1, ended, reason
        self.timer = f"retry:{self.job_id}:{self.attempt}"
        return self.timer

    def again(self) -> None:
        """It is to run once more, as a new attempt."""
        self._move(JobState.QUEUED)
        self.attempt, self.escalated = self.attempt + 1, False

    def _move(self, state: JobState) -> None:
        """A chain that is opened again goes on running although its leg has ended: the one move that no job makes."""
        if state is not JobState.RUNNING:
            check_job(self.job_id, self.state, state)
        self.state = state


class Batch(Memory):
    """The delegations of one result, and which leg of it may run when (rulings C7, I1 to I3)."""

    parent_job_id: str
    artifact_digest: str | None = None
    legs: dict[str, Leg]
    stopped: str = ""
    """Why nothing of it starts any more and no continuation follows; empty while it goes on."""
    blocked_by: list[str] = []
    """The legs whose failure stopped it; an operator's retry takes a leg off (ruling D4)."""
    approved: bool = False
    """A person said to continue: vote and quorum do not block (ruling F3)."""
    continued: bool = False
    """Its one continuation is enqueued."""

    @property
    def acting_legs(self) -> list[Leg]:
        """The legs that run themselves."""
        return [leg for leg in self.legs.values() if not leg.twin]

    def acting(self, leg_id: str) -> Leg:
        """The leg that runs for this id: itself, or its twin (ruling C5)."""
        leg = self.legs[leg_id]
        return self.legs[leg.twin] if leg.twin else leg

    def acting_deps(self, leg: Leg) -> list[Leg]:
        """What this leg waits for."""
        return [self.acting(dep) for dep in leg.deps]

    def ready(self, offered: Collection[str], busy_worktrees: Collection[str]) -> Leg | None:
        """The next leg that may start: not out yet, its dependencies succeeded, its worktree free (ruling I3)."""
        for leg in self.legs.values():
            if not leg.unstarted or leg.timer is not None or leg.job_id in offered:
                continue
            if leg.worktree and leg.worktree in busy_worktrees:
                continue
            if all(dep.state is JobState.SUCCEEDED for dep in self.acting_deps(leg)):
                return leg
        return None

    def unreachable(self) -> Iterator[tuple[Leg, Leg]]:
        """Legs that can never run, each with the dependency that ended otherwise; until there are no more (C7)."""
        found = True
        while found:
            found = False
            for leg in self.legs.values():
                if not leg.unstarted:
                    continue
                culprit = next((dep for dep in self.acting_deps(leg) if dep.state in _LOST), None)
                if culprit is not None:
                    found = True
                    yield leg, culprit

    @property
    def settled(self) -> bool:
        """Every leg is terminal (ruling D1)."""
        return all(leg.state.ended for leg in self.legs.values() if not leg.twin)

    @property
    def leaves_decision(self) -> bool:
        """A leg that failed leaves the decision to the coordinator: by its policy, or because it asked (D6, F2)."""
        failed = [leg for leg in self.acting_legs if leg.failing]
        return any(leg.asked or leg.policy is FailurePolicy.ESCALATE for leg in failed)

    def contributors(self, leg: Leg) -> list[Leg]:
        """The legs whose work this one must see, transitively, in merge order (rulings I1, I2)."""
        if not leg.deps:
            return []
        wanted: dict[str, None] = {}
        frontier = self.acting_deps(leg)
        while frontier:
            dep = frontier.pop()
            if dep.id not in wanted:
                wanted[dep.id] = None
                frontier += self.acting_deps(dep)
        return [each for each in self.merge_order() if each.id in wanted]

    def merge_order(self) -> list[Leg]:
        """The legs that run, dependencies first and otherwise as given."""
        deps = {each.id: [dep.id for dep in self.acting_deps(each)] for each in self.acting_legs}
        return [self.legs[each] for each in topological(deps) or ()]

    def stop(self, reason: str) -> None:
        """Nothing of it starts any more; the first reason stands (ruling D4)."""
        self.stopped = self.stopped or reason

    def unblock(self, leg: Leg) -> None:
        """The leg's failure stops it no longer; it goes on when no other one does."""
        self.blocked_by = [each for each in self.blocked_by if each != leg.id]
        if not self.blocked_by:
            self.stopped = ""


class Phase(StrEnum):
    """Where a coordinator's chain stands."""

    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    """Its last result waits: for answers to its own questions, or for the end of a pause (rulings F2, F8)."""
    BLOCKED = "blocked"
    OVER = "over"


class Coordinator(Memory):
    """A chain: the job that delegated first, and its continuations one after another."""

    coordinator_id: str
    """Its first job's id: the root, or a leg with a registered agent."""
    run: JobRun
    """That job's run: what continuations take their assignment from."""
    job_id: str
    """The latest job of the chain."""
    phase: Phase = Phase.RUNNING
    batch: Batch | None = None
    ladder: Ladder = Ladder()
    made: list[Work] = []
    """What its jobs and its legs made, in order of dispatch: its line, and what dependents of its leg get (I1, O2)."""
    branch: str = ""
    """The branch its own jobs write on (ruling O5)."""
    held: JobOutcome | None = None
    """The result that waits."""
    left_out: int = 0
    """So many delegations it had that did not fit (ruling B6)."""
    asking: list[Asked] = []
    """Questions nobody has answered, its own and its legs'."""
    reply: Reply | None = None
    """What people said and it has not been told."""
    told: Reply | None = None
    """What its latest job was told."""

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_releases(cls, told: Any) -> Any:
        """Read the names of branches, which is all that earlier releases kept of the work."""
        if isinstance(told, dict) and "work" in told:
            return {"made": [{"branch": each} for each in told["work"]]} | told
        return told

    @property
    def work(self) -> tuple[str, ...]:
        """The branches of what it made."""
        return tuple(dict.fromkeys(each.branch for each in self.made))

    @property
    def escalated(self) -> list[Leg]:
        """The legs a person has to decide about (ruling F3)."""
        return [leg for leg in self.batch.legs.values() if leg.escalated] if self.batch else []

    def dispatch(self, batch: Batch) -> None:
        """A batch is out: it waits for it."""
        self.batch, self.phase = batch, Phase.WAITING

    def add_work(self, work: Iterable[Work]) -> None:
        """Put more onto its line."""
        self.made = list(dict.fromkeys([*self.made, *work]))

    def wrote(self, job: JobRecord) -> None:
        """Keep what one of its own jobs left."""
        self.branch = job.branch or self.branch
        self.add_work(job.made(""))

    def runs(self, job_id: str) -> None:
        """One of its jobs is out."""
        self.job_id, self.phase = job_id, Phase.RUNNING

    def hold(self, outcome: JobOutcome) -> None:
        """A result takes effect later."""
        self.phase, self.held = Phase.HELD, outcome
