"""What a tree is started with, and its whole memory: one value that is stored, restored, and goes on as before."""

import shlex
from collections.abc import Iterator

from workflows.contract.models import Decision, Delegation
from workflows.model.jobs import JobOutcome, JobRun, Work
from workflows.model.rounds import Round
from workflows.model.rows import JobRecord, TaskRecord
from workflows.model.settings import TreeSettings
from workflows.model.spend import Ledger, Usage
from workflows.model.states import JobState, TaskState
from workflows.model.texts import RefusedSet
from workflows.model.wire import Memory, Wire
from workflows.model.workers import Assignment
from workflows.policy import bindings
from workflows.tree.chains import Batch, Coordinator, Leg

LONGEST_MESSAGE = 200
"""Characters of a message that a command repeats."""


class TreeInput(Wire):
    """What a tree is started with."""

    root_job_id: str
    task_id: str
    title: str = ""
    repo: str
    assignment: Assignment
    """The root job's; every job of the tree has its pull request and its base."""
    created_at: float
    settings: TreeSettings = TreeSettings()
    branch_deps: tuple[str, ...] = ()
    """Branches whose work every job of the tree must see."""
    legs: tuple[Delegation, ...] = ()
    """A recipe's legs: dispatched at once in place of a first run of the root job."""
    line: tuple[Work, ...] = ()
    """The work of another tree, whose conflicts it resolves: its jobs begin from what of that goes together (O6)."""
    caveat: str = ""
    """What its result must be read with: told as it starts, to whoever sums up, and with the end."""

    @property
    def anew(self) -> str:
        """The command that starts it again from its beginning, with its message where that fits into a line."""
        asked, message = self.assignment, self.assignment.prompt.inline or ""
        fits = 0 < len(message) <= LONGEST_MESSAGE and message.isprintable()
        to = f"--repo {self.repo}{bindings.options(asked.pull_request, asked.issue)}"
        if self.legs:
            goal = shlex.quote(message) if fits else '"GOAL"'
            return f"service orchestrate {asked.worker.name} {goal} {to}"
        if asked.worker.ephemeral:  # only a pipeline's stage begins with one
            return "service pipeline run PIPELINE"
        message = shlex.quote(message) if fits else '"MESSAGE"'
        return f"service agent {asked.action} {asked.worker.name} {message} {to}"


class Finalize(Memory):
    """The one finalize of a tree (ruling G1)."""

    kind: str
    reason: str
    job_id: str | None = None
    done: bool = False
    refused: list[RefusedSet] = []
    """Everything that was not dispatched because of it: the finalize is told (ruling E6)."""


class Offer(Memory):
    """A job that its host has been given and has not begun (ruling B5)."""

    number: int
    attempt: int
    run: JobRun | None = None
    """A coordinator's job, whole, to be offered again as it is; a leg's is made anew from its leg."""
    taken_back: bool = False
    """The host has been asked for it back, and has not answered yet."""


class TreeState(Memory):
    """Everything the reducer knows."""

    input: TreeInput
    task: TaskRecord
    now: float
    started: bool = False
    closed: bool = False
    closed_at: float | None = None
    revision: int = 0
    last_number: int = 0
    last_offer: int = 0
    told: dict[str, int] = {}
    """How many events of each job have been told."""
    spent_jobs: int = 0
    """Counted against the job budget: children, retries, continuations, re-runs (ruling C3)."""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    price_assumed: bool = False
    """Some of it is a guess (ruling K5)."""
    warned: list[str] = []
    verify_attempts: int = 0
    paused_seconds: float = 0.0
    """Not counted as wall-clock time: rounds that were open, and the time a blocked tree was closed."""
    paused_since: float | None = None
    """When the first of the rounds that are open now was opened (ruling F8)."""
    rounds: dict[str, list[Round]] = {}
    """By coordinator, which may be forgotten when its leg runs again; numbers never begin anew (ruling F1)."""
    last_refusal: str = ""
    """Who was refused last, when and why, until somebody is heard: who cannot be answered looks here (ruling F6)."""
    killed_by: str | None = None
    finalize: Finalize | None = None
    jobs: dict[str, JobRecord] = {}
    first: dict[str, str] = {}
    """What has to be done before a job that failed is run again, as its run said (ruling B3)."""
    offers: dict[str, Offer] = {}
    """Jobs their host has been given and has not begun."""
    held_back: dict[str, JobRun] = {}
    """Coordinators' jobs that were taken back and wait to be offered again."""
    homes: dict[str, str] = {}
    """The coordinator each job belongs to: the one that runs in it, or the one that delegated it."""
    coordinators: dict[str, Coordinator] = {}

    @property
    def root_id(self) -> str:
        """The root job's id, which is the tree's."""
        return self.input.root_job_id

    @property
    def root(self) -> Coordinator:
        """The chain that owns the tree."""
        return self.coordinators[self.root_id]

    @property
    def running(self) -> list[str]:
        """Jobs that run right now, in order of dispatch."""
        return [job.job_id for job in self.jobs.values() if job.state is JobState.RUNNING]

    @property
    def in_flight(self) -> list[str]:
        """Jobs an end will be told of: those that run, and those offered to their host."""
        return [*self.running, *self.offers]

    @property
    def timers(self) -> list[str]:
        """Timers whose firing still matters."""
        retries = [leg.timer for leg in self.legs() if leg.timer is not None]
        return retries + [each.timer for rounds in self.rounds.values() for each in rounds if each.timer is not None]

    @property
    def quiescent(self) -> bool:
        """Nothing is in flight and no timer matters: a good place to continue as new."""
        return not self.in_flight and not self.timers

    @property
    def blocked(self) -> bool:
        """The task is blocked: nothing goes on until an operator says so (ruling D4)."""
        return self.task.state is TaskState.BLOCKED

    @property
    def frozen(self) -> bool:
        """The task is blocked and nobody ends it: its coordinators start nothing more (ruling D4)."""
        return self.blocked and self.finalize is None

    @property
    def paused(self) -> bool:
        """At least one round is open: nothing starts (ruling F8)."""
        return self.paused_since is not None

    def open_round(self, coordinator_id: str) -> Round | None:
        """The round a coordinator waits in; there is never more than one (ruling F1)."""
        rounds = self.rounds.get(coordinator_id)
        return rounds[-1] if rounds and rounds[-1].open else None

    def exclude(self, since: float) -> None:
        """What passed since then is not the tree's time (ruling C4)."""
        self.paused_seconds += self.now - since

    def elapsed(self, now: float) -> float:
        """Wall-clock time without the union of all pauses (rulings C4, F8)."""
        until = now if self.paused_since is None else self.paused_since
        return max(0.0, until - self.input.created_at - self.paused_seconds)

    def ledger(self) -> Ledger:
        """What is used of each budget now; paused time does not count (ruling C4)."""
        return Ledger(
            jobs=self.spent_jobs,
            elapsed_seconds=self.elapsed(self.now),
            tokens=self.usage.total,
            cost_usd=self.cost_usd,
            price_assumed=self.price_assumed,
        )

    @property
    def busy_worktrees(self) -> set[str]:
        """Shared worktrees a job runs in. Waiting for jobs, never for whole chains, cannot deadlock (ruling I3)."""
        busy = set(self.in_flight)
        shared = (leg for leg in self.legs() if leg.worktree and not leg.twin)
        return {leg.worktree for leg in shared if leg.worktree and leg.job_id in busy}

    def kept_sets(self) -> Iterator[JobOutcome | RefusedSet]:
        """Sets of delegations: held back, refused and to be told, told in a continuation that has not begun (B6)."""
        yield from (chain.held for chain in self.coordinators.values() if chain.held is not None)
        yield from self.finalize.refused if self.finalize is not None else ()
        runs = [*self.held_back.values(), *(offer.run for offer in self.offers.values() if offer.run is not None)]
        yield from (each for run in runs if run.brief is not None for each in run.brief.refused)

    def legs(self) -> list[Leg]:
        """The legs of every coordinator's latest batch."""
        return [leg for chain in self.coordinators.values() if chain.batch for leg in chain.batch.legs.values()]

    def leg_of(self, chain: Coordinator) -> tuple[Coordinator, Leg] | None:
        """The leg a delegated chain plays in its parent's batch; None for the root."""
        if chain.coordinator_id == self.root_id:
            return None
        return self.find_leg(chain.coordinator_id)

    def work_needed(self, chain: Coordinator, batch: Batch, leg: Leg) -> tuple[str, ...]:
        """Branches the leg must see: what its own coordinator was given, and what the legs it depends on made (I1).

        From the base of the tree, of the former only what every job of the tree must see.
        """
        given = self.input.branch_deps if leg.at_base else chain.run.branch_deps
        return tuple(dict.fromkeys([*given, *(each.branch for each in self.work_given(batch, leg))]))

    def work_given(self, batch: Batch, leg: Leg) -> tuple[Work, ...]:
        """What the legs it depends on made."""
        return tuple(work for dep in batch.contributors(leg) for work in self.work_of(dep))

    def work_of(self, leg: Leg) -> tuple[Work, ...]:
        """A leg that delegated hands on what its chain made, every other one its own branch; if it succeeded (I2)."""
        if leg.state is not JobState.SUCCEEDED:
            return ()
        chain = self.coordinators.get(leg.job_id)
        made = tuple(chain.made) if chain is not None else self.jobs[leg.job_id].made(leg.id)
        return tuple(each.model_copy(update={"leg": leg.id, "job_id": leg.job_id}) for each in made)

    def line_of(self, chain: Coordinator) -> tuple[Work, ...]:
        """Where its next jobs begin: what its own leg began from, and what it made since (ruling O2).

        What every job of the tree must see is known by its branches alone, as all is in trees of earlier releases.
        """
        run = chain.run
        given = [Work(branch=branch) for branch in (self.input.branch_deps if run.deps else run.branch_deps)]
        return tuple(dict.fromkeys([*(run.line or given), *run.deps, *chain.made]))

    def decision_of(self, leg: Leg) -> Decision | None:
        """What the leg decided; nothing when its chain ended otherwise than the job that spoke last."""
        job = self.jobs.get(leg.outcome_job_id)
        return job.decision if job is not None and job.state is leg.state else None

    def find_leg(self, job_id: str) -> tuple[Coordinator, Leg] | None:
        """The leg a job runs, with the coordinator that delegated it, as long as its batch is the latest."""
        job = self.jobs.get(job_id)
        parent = self.coordinators.get(self.homes.get(job_id, ""))
        if job is None or job.delegation_id is None or parent is None or parent.batch is None:
            return None
        leg = parent.batch.legs.get(job.delegation_id)
        return (parent, leg) if leg is not None and leg.job_id == job_id else None
