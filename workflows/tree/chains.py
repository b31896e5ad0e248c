"""A coordinator's chain, its batch and the batch's legs: their states and transitions.

The modules `dispatch`, `job_end`, `settle`, `finalize`, `reopen` and `resume` decide which transition is due.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum

from workflows.contract.graph import topological
from workflows.contract.models import Action, FailurePolicy, SynthesisRule
from workflows.model.jobs import JobOutcome, JobRun, Work
from workflows.model.rounds import Asked, Reply
from workflows.model.rows import JobRecord
from workflows.model.states import ENDED_JOBS, FAILING, JobState, check_job
from workflows.model.wire import Memory
from workflows.model.workers import Assignment
from workflows.policy import failure_policies
from workflows.policy.loops import Ladder
from workflows.text.digests import digest

_BALLOTS = frozenset({SynthesisRule.QUORUM, SynthesisRule.VOTE, SynthesisRule.VERIFY})
_LOST = ENDED_JOBS - {JobState.SUCCEEDED}
"""End states of a job after which the legs that depend on it can't run."""


class Leg(Memory):
    """One delegation of a batch, from admission to its end.

    The job's row says how an attempt ended. If the leg delegates, `state` covers its whole chain.
    """

    id: str
    job_id: str
    assignment: Assignment
    deps: tuple[str, ...] = ()
    failure_policy: FailurePolicy | None = None
    rules: tuple[SynthesisRule, ...] = ()
    """The synthesis rules of the leg and of its duplicates, which cast no ballots (ruling C5)."""
    quorum: int | None = None
    """The largest K of the quorums of the leg and its duplicates."""
    retry: int = 0
    worktree: str | None = None
    at_base: bool = False
    """True if the leg begins from the tree's base (ruling O2)."""
    merges: tuple[str, ...] = ()
    """Legs whose merge is begun in this leg's folder (ruling O6)."""
    own_branch: str = ""
    """Branch of the previous attempt, which asked people and on which this attempt continues (ruling O5)."""
    artifacts: tuple[str, ...] = ()
    twin: str | None = None
    """The leg that runs in place of this duplicate (ruling C5)."""
    state: JobState = JobState.QUEUED
    reason: str = ""
    """The reason why the leg failed or never ran."""
    attempt: int = 1
    retries_used: int = 0
    timer: str | None = None
    """Key of the retry timer, while the leg waits for a retry (ruling D3)."""
    failed_as: JobState | None = None
    """End state of the attempt before the wait for a retry."""
    escalated: bool = False
    """True if the leg failed and no person has decided on it yet (ruling F3)."""
    asked: bool = False
    """True if the leg failed and asked people. The answer goes to the coordinator, which decides (ruling F2)."""
    moved_from: int = 0
    """The attempt that ended with its host, if this attempt continues from that one's snapshot (ruling Q5)."""
    guided_by: list[int] = []
    """Numbers of the rounds whose instructions the leg's next attempts get (ruling F3)."""
    before: str = ""
    """How the previous attempt ended, in words."""
    outcome_job_id: str = ""
    """Job whose outcome is this leg's: its own, or the last job of the chain that it coordinates."""
    findings: str = ""
    """Findings of a leg that asks, reviews or verifies. For an implement leg that is blocked or failed: what it
    needs.
    """
    touched_files: tuple[str, ...] = ()
    artifact_digest: str | None = None
    progress: str = ""

    @property
    def finds(self) -> bool:
        """Return whether the leg's findings are kept. Those of an implement leg are not: its work is in its branch."""
        return self.assignment.action is not Action.IMPLEMENT or SynthesisRule.VERIFY in self.rules

    @property
    def failing(self) -> bool:
        """Return whether the leg counts as a failing child (ruling D2)."""
        return self.state in FAILING

    @property
    def policy(self) -> FailurePolicy:
        """The leg's failure policy. The default depends on the rules: a ballot's failure is only an input to its rule
        (ruling D8).
        """
        if self.failure_policy is not None:
            return self.failure_policy
        return FailurePolicy.CONTINUE if _BALLOTS.intersection(self.rules) else FailurePolicy.BLOCK_PARENT

    @property
    def is_unstarted(self) -> bool:
        """Return whether the leg is queued, for whatever reason. A duplicate is never queued itself."""
        return self.state is JobState.QUEUED and not self.twin

    @property
    def part(self) -> str:
        """What the leg contributes to its generation's digest; a changed model or effort changes it (ruling H3)."""
        return digest([self.state, self.progress, self.assignment.model, self.assignment.effort])

    def begin(self) -> None:
        """Mark the leg as running: its host has begun it, or its chain was opened again."""
        self._move(JobState.RUNNING)
        self.failed_as, self.reason = None, ""

    def end(self, state: JobState, reason: str = "") -> None:
        """Mark the leg as ended, even if it never began."""
        self._move(state)
        self.reason = reason

    def unskip(self) -> None:
        """Queue a skipped leg again."""
        self._move(JobState.QUEUED)
        self.reason = ""

    def pause_before_retry(self, ended: JobState, reason: str) -> str:
        """Set the timer of the next attempt, and keep the failure until that attempt begins (ruling D3)."""
        self.retries_used, self.failed_as, self.reason = self.retries_used + 1, ended, reason
        self.timer = f"retry:{self.job_id}:{self.attempt}"
        return self.timer

    def again(self) -> None:
        """Queue the leg again under the next attempt number."""
        self._move(JobState.QUEUED)
        self.attempt, self.escalated, self.moved_from = self.attempt + 1, False, 0

    def _move(self, state: JobState) -> None:
        """Change the state. Unlike a job, a leg may go from an end state to running, when its chain is opened again."""
        if state is not JobState.RUNNING:
            check_job(self.job_id, self.state, state)
        self.state = state


class Batch(Memory):
    """The delegations of one result, and the order in which its legs may run (rulings C7, I1 to I3)."""

    parent_job_id: str
    artifact_digest: str | None = None
    legs: dict[str, Leg]
    stopped: str = ""
    """Why no more legs start and no continuation follows; empty while the batch is active."""
    blocked_by: list[str] = []
    """Ids of the legs whose failure stopped the batch; an operator's retry removes a leg (ruling D4)."""
    approved: bool = False
    """True if a person chose `continue`, so that vote and quorum do not block (ruling F3)."""
    continued: bool = False
    """True if the one continuation that follows the batch is enqueued."""

    @property
    def acting_legs(self) -> list[Leg]:
        """The legs that run, without duplicates."""
        return [leg for leg in self.legs.values() if not leg.twin]

    def acting(self, leg_id: str) -> Leg:
        """Return the leg that runs for this id: the leg itself, or the twin of a duplicate (ruling C5)."""
        leg = self.legs[leg_id]
        return self.legs[leg.twin] if leg.twin else leg

    def acting_deps(self, leg: Leg) -> list[Leg]:
        """Return the legs that this leg depends on, with twins in place of duplicates."""
        return [self.acting(dep) for dep in leg.deps]

    def ready(self, offered: Collection[str]) -> Iterator[Leg]:
        """Yield the legs that may start once their worktree is free: they are not offered, and their dependencies
        succeeded (ruling I3).
        """
        for leg in self.legs.values():
            if not leg.is_unstarted or leg.timer is not None or leg.job_id in offered:
                continue
            if all(dep.state is JobState.SUCCEEDED for dep in self.acting_deps(leg)):
                yield leg

    def unreachable(self) -> Iterator[tuple[Leg, Leg]]:
        """Yield each leg that can never run, with the dependency that did not succeed, until no further leg is skipped
        (C7).
        """
        dependent, changed = [leg for leg in self.legs.values() if leg.deps], True
        while changed:
            changed = False
            for leg in dependent:
                if not leg.is_unstarted:
                    continue
                culprit = next((dep for dep in self.acting_deps(leg) if dep.state in _LOST), None)
                if culprit is not None:
                    changed = True
                    yield leg, culprit

    @property
    def is_settled(self) -> bool:
        """Return whether every leg is in an end state (ruling D1)."""
        return all(leg.state.has_ended for leg in self.legs.values() if not leg.twin)

    @property
    def leaves_decision(self) -> bool:
        """Return whether a failed leg leaves the decision to the coordinator, by its policy or because it asked people
        (D6, F2).
        """
        failed = [leg for leg in self.acting_legs if leg.failing]
        return any(leg.asked or failure_policies.leaves_decision(leg.policy) for leg in failed)

    def contributors(self, leg: Leg) -> list[Leg]:
        """Return the transitive dependencies of a leg, whose work it must see, in merge order (rulings I1, I2)."""
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
        """Return the acting legs, dependencies first and otherwise in the given order."""
        deps = {each.id: [dep.id for dep in self.acting_deps(each)] for each in self.acting_legs}
        return [self.legs[each] for each in topological(deps) or ()]

    def stop(self, reason: str) -> None:
        """Stop the batch, so that no more legs start; the first reason is kept (ruling D4)."""
        self.stopped = self.stopped or reason

    def unblock(self, leg: Leg) -> None:
        """Remove a leg from those that block the batch. If none is left, the batch is active again."""
        self.blocked_by = [each for each in self.blocked_by if each != leg.id]
        if not self.blocked_by:
            self.stopped = ""


class Phase(StrEnum):
    """The phase of a coordinator's chain."""

    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    """The chain's last result waits for answers to its own questions, or for the end of a pause (rulings F2, F8)."""
    BLOCKED = "blocked"
    OVER = "over"


class Coordinator(Memory):
    """A coordinator's chain: the first job that delegated, and its continuations in order."""

    coordinator_id: str
    """Id of the chain's first job: the root, or a leg with a registered agent."""
    run: JobRun
    """Run of the first job, whose assignment the continuations share."""
    job_id: str
    """Id of the chain's latest job."""
    phase: Phase = Phase.RUNNING
    batch: Batch | None = None
    ladder: Ladder = Ladder()
    made: list[Work] = []
    """Work of the chain's jobs and legs, in dispatch order. It is the chain's line, and the input of legs that depend
    on this chain's leg (I1, O2).
    """
    branch: str = ""
    """Branch on which the chain's own jobs write (ruling O5)."""
    discarded: tuple[str, ...] = ()
    """Files that the chain's latest job changed and names in its result, although none of its changes are kept (ruling
    I2).
    """
    held: JobOutcome | None = None
    """The result that waits to be applied."""
    left_out: int = 0
    """Number of delegations of the held result for which the tree's state had no room (ruling B6)."""
    asking: list[Asked] = []
    """Open questions of the coordinator and its legs."""
    reply: Reply | None = None
    """People's answers and guidance that the coordinator has not received yet."""
    told: Reply | None = None
    """The reply that the latest job received."""

    @property
    def work(self) -> tuple[str, ...]:
        """Return the branches of the chain's work."""
        return tuple(dict.fromkeys(each.branch for each in self.made))

    @property
    def escalated_legs(self) -> list[Leg]:
        """Return the legs that wait for a person's decision (ruling F3)."""
        return [leg for leg in self.batch.legs.values() if leg.escalated] if self.batch else []

    def dispatch(self, batch: Batch) -> None:
        """Set the batch, and mark the chain as waiting for it."""
        self.batch, self.phase = batch, Phase.WAITING

    def add_work(self, work: Iterable[Work]) -> None:
        """Append work to the chain's line."""
        self.made = list(dict.fromkeys([*self.made, *work]))

    def wrote(self, job: JobRecord) -> None:
        """Add the work of one of the chain's own jobs."""
        self.branch = job.branch or self.branch
        self.add_work(job.as_work(""))

    def runs(self, job_id: str) -> None:
        """Mark the chain as running this job."""
        self.job_id, self.phase = job_id, Phase.RUNNING

    def hold(self, outcome: JobOutcome) -> None:
        """Keep a result until it can be applied."""
        self.phase, self.held = Phase.HELD, outcome
