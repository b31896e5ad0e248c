"""The input of a tree, and its whole state, which is one value that is stored and restored."""

import shlex
from collections.abc import Iterator

from workflows.contract.models import Decision, Delegation
from workflows.model.jobs import JobOutcome, JobRun, Work
from workflows.model.long_texts import RefusedSet
from workflows.model.rounds import Round
from workflows.model.rows import JobRecord, TaskRecord
from workflows.model.settings import TreeSettings
from workflows.model.spend import Ledger, Usage
from workflows.model.states import JobState, TaskState
from workflows.model.wire import Memory, Wire
from workflows.model.workers import Assignment
from workflows.policy import binding_words
from workflows.tree.chains import Batch, Coordinator, Leg

LONGEST_MESSAGE = 200
"""Maximum length of a message that is repeated in a command."""


class TreeInput(Wire):
    """What a tree is started with."""

    root_job_id: str
    task_id: str
    title: str = ""
    repo: str
    assignment: Assignment
    """The root job's assignment, whose pull request and base every job of the tree inherits."""
    created_at: float
    settings: TreeSettings = TreeSettings()
    branch_deps: tuple[str, ...] = ()
    """Branches whose work every job of the tree must see."""
    legs: tuple[Delegation, ...] = ()
    """A recipe's legs, dispatched at once instead of running the root job first."""
    line: tuple[Work, ...] = ()
    """The line of another tree, whose conflicts this tree resolves: its jobs start from those parts of the line that
    merge (O6).
    """
    merges: tuple[str, ...] = ()
    """The parts of that line that conflict: their merge is begun in the root job's folder (ruling O6)."""
    caveat: str = ""
    """Caveat of the result. It is recorded at the start, passed to the job that sums up, and part of the final
    reason.
    """
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Labels that every job of the tree requires or prefers of its host (ruling Q4)."""
    read_only: bool = False
    """True if no job of the tree may implement, because the caller who started it may only ask (ruling N5)."""

    options: str = ""
    """Options of the command that started the tree, as typed, except repository, pull request and issue."""
    pipeline: str = ""
    """The name of the pipeline whose stage this tree runs; empty for others."""

    @property
    def anew(self) -> str:
        """Return the command that starts the tree from its beginning; a message too long for a line is piped in."""
        asked, message = self.assignment, self.assignment.prompt.inline or ""
        fits = 0 < len(message) <= LONGEST_MESSAGE and message.isprintable()
        binding = binding_words.options(asked.pull_request, asked.issue)
        to = f"--repo {self.repo}{binding}{f' {self.options}' if self.options else ''}"
        if self.pipeline:
            return f"service pipeline run {self.pipeline}{binding}"
        if (
            asked.worker.ephemeral and not self.legs
        ):  # a pipeline's stage, of a release that did not record the pipeline
            return "service pipeline run PIPELINE"
        order = "orchestrate" if self.legs else f"agent {asked.action}"
        if fits:
            return f"service {order} {asked.worker.name} {shlex.quote(message)} {to}"
        return f"service job prompt {self.root_job_id} --task | service {order} {asked.worker.name} - {to}"


class Finalize(Memory):
    """The only finalize of a tree (ruling G1)."""

    kind: str
    reason: str
    job_id: str | None = None
    done: bool = False
    refused: list[RefusedSet] = []
    """Sets that were not dispatched because the tree was ending; the finalize gets them in its prompt (ruling E6)."""
    bound: str = ""
    """The bound that tripped, in words; empty if a person or a deadline ended the tree."""
    raised: str = ""
    """The setting with which the tree would have continued."""
    unrun: bool = False
    """True if a planned job did not run, so that the tree was cut short."""


class Offer(Memory):
    """An offer of a job to its host, which has not begun it (ruling B5)."""

    number: int
    attempt: int
    run: JobRun | None = None
    """A coordinator's complete run, to offer it again unchanged. A leg's run is rebuilt from the leg."""
    taken_back: bool = False
    """True if the offer is being taken back, and the answer has not arrived."""


class TreeMemory(Memory):
    """The whole state of a tree's reducer."""

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
    """How many events are recorded for each job."""
    spent_jobs: int = 0
    """Jobs counted against the job budget: children, retries, continuations, re-runs (ruling C3)."""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    price_assumed: bool = False
    """True if part of the cost is an estimate (ruling K5)."""
    warned: list[str] = []
    verify_attempts: int = 0
    paused_seconds: float = 0.0
    """Seconds that the wall clock excludes: open rounds, and the time for which a blocked tree was closed."""
    paused_since: float | None = None
    """When the first of the open rounds was opened (ruling F8)."""
    rounds: dict[str, list[Round]] = {}
    """Rounds by coordinator. They are kept when its leg runs again, so that numbers never restart (ruling F1)."""
    last_refusal: str = ""
    """The last refusal of a resume, with actor, time and reason, until one is accepted: senders of signals get no
    answer (F6).
    """
    killed_by: str | None = None
    finalize: Finalize | None = None
    jobs: dict[str, JobRecord] = {}
    first: dict[str, str] = {}
    """What a person must do before a failed job is retried, by job, as its outcome says (ruling B3)."""
    offers: dict[str, Offer] = {}
    """The offers to hosts of jobs that have not begun, by job."""
    held_back: dict[str, JobRun] = {}
    """Coordinators' jobs that were taken back and will be offered again."""
    homes: dict[str, str] = {}
    """The coordinator of each job: the one in whose chain it is, or the one that delegated it."""
    coordinators: dict[str, Coordinator] = {}

    @property
    def root_id(self) -> str:
        """Return the root job's id, which is also the tree's."""
        return self.input.root_job_id

    @property
    def root(self) -> Coordinator:
        """Return the root's chain."""
        return self.coordinators[self.root_id]

    @property
    def running(self) -> list[str]:
        """Return the running jobs, in dispatch order."""
        return [job.job_id for job in self.jobs.values() if job.state is JobState.RUNNING]

    @property
    def in_flight(self) -> list[str]:
        """Return the running and offered jobs, whose end will be reported."""
        return [*self.running, *self.offers]

    @property
    def timers(self) -> list[str]:
        """Return the keys of the timers that are still needed."""
        retries = [leg.timer for leg in self.legs() if leg.timer is not None]
        return retries + [each.timer for rounds in self.rounds.values() for each in rounds if each.timer is not None]

    @property
    def quiescent(self) -> bool:
        """Return whether no job is in flight and no timer is needed, so that the workflow can continue as new."""
        return not self.in_flight and not self.timers

    @property
    def is_blocked(self) -> bool:
        """Return whether the task is blocked, so that it continues only on an operator's order (ruling D4)."""
        return self.task.state is TaskState.BLOCKED

    @property
    def is_frozen(self) -> bool:
        """Return whether the task is blocked and not ending, so that its coordinators start nothing (ruling D4)."""
        return self.is_blocked and self.finalize is None

    @property
    def is_paused(self) -> bool:
        """Return whether a round is open, so that nothing starts (ruling F8)."""
        return self.paused_since is not None

    def open_round(self, coordinator_id: str) -> Round | None:
        """Return the coordinator's open round, if it has one; it never has two (ruling F1)."""
        rounds = self.rounds.get(coordinator_id)
        return rounds[-1] if rounds and rounds[-1].open else None

    def exclude(self, since: float) -> None:
        """Exclude the time from `since` until now from the wall clock (ruling C4)."""
        self.paused_seconds += self.now - since

    def elapsed_seconds(self, now: float) -> float:
        """Return the wall-clock time without the time in which a round was open (rulings C4, F8)."""
        until = now if self.paused_since is None else self.paused_since
        return max(0.0, until - self.input.created_at - self.paused_seconds)

    def ledger(self) -> Ledger:
        """Return the current use of each budget; paused time does not count (ruling C4)."""
        return Ledger(
            jobs=self.spent_jobs,
            elapsed_seconds=self.elapsed_seconds(self.now),
            tokens=self.usage.total,
            cost_usd=self.cost_usd,
            price_assumed=self.price_assumed,
        )

    @property
    def busy_worktrees(self) -> set[str]:
        """Return the shared worktrees of jobs in flight. A leg waits for such jobs, not for whole chains, so no
        deadlock can occur (ruling I3).
        """
        busy = set(self.in_flight)
        shared = (leg for leg in self.legs() if leg.worktree and not leg.twin)
        return {leg.worktree for leg in shared if leg.worktree and leg.job_id in busy}

    def kept_sets(self) -> Iterator[JobOutcome | RefusedSet]:
        """Yield the sets of delegations in the state: of held results, refused for the finalize, or in briefs of queued
        jobs.
        """
        yield from (chain.held for chain in self.coordinators.values() if chain.held is not None)
        yield from self.finalize.refused if self.finalize is not None else ()
        runs = [*self.held_back.values(), *(offer.run for offer in self.offers.values() if offer.run is not None)]
        yield from (each for run in runs if run.brief is not None for each in run.brief.refused)

    def legs(self) -> list[Leg]:
        """Return the legs of every coordinator's latest batch."""
        return [leg for chain in self.coordinators.values() if chain.batch for leg in chain.batch.legs.values()]

    def leg_of(self, chain: Coordinator) -> tuple[Coordinator, Leg] | None:
        """Return the leg that a delegated chain belongs to, with its coordinator; None for the root's chain."""
        if chain.coordinator_id == self.root_id:
            return None
        return self.find_leg(chain.coordinator_id)

    def needed_work(self, chain: Coordinator, batch: Batch, leg: Leg) -> tuple[str, ...]:
        """Return the branches whose work the leg must see: those given to its coordinator, and those of its
        dependencies (I1).

        For a leg that begins at the tree's base, only those branches of its coordinator count that every job must see.
        """
        given = self.input.branch_deps if leg.at_base else chain.run.branch_deps
        return tuple(dict.fromkeys([*given, *(each.branch for each in self.given_work(batch, leg))]))

    def given_work(self, batch: Batch, leg: Leg) -> tuple[Work, ...]:
        """Return the work of the legs that a leg depends on, transitively and in merge order."""
        return tuple(work for dep in batch.contributors(leg) for work in self.work_of(dep))

    def work_of(self, leg: Leg) -> tuple[Work, ...]:
        """Return the work of a successful leg: its chain's if it delegated, otherwise its own branch (I2)."""
        if leg.state is not JobState.SUCCEEDED:
            return ()
        chain = self.coordinators.get(leg.job_id)
        made = tuple(chain.made) if chain is not None else self.jobs[leg.job_id].as_work(leg.id)
        return tuple(each.model_copy(update={"leg": leg.id, "job_id": leg.job_id}) for each in made)

    def line_of(self, chain: Coordinator) -> tuple[Work, ...]:
        """Return the line from which the chain's next jobs begin: the line of its own leg, and the chain's work since
        (ruling O2).

        Of work that every job must see, only the branches are known.
        """
        run = chain.run
        given = [Work(branch=branch) for branch in (self.input.branch_deps if run.deps else run.branch_deps)]
        return tuple(dict.fromkeys([*(run.line or given), *run.deps, *chain.made]))

    def path_of(self, job_id: str) -> str:
        """Return the legs from the root down to a job, `sub / design`; `root` for the root's chain."""
        leg, above = self.jobs[job_id].delegation_id, self.homes[job_id]
        if above == self.root_id:
            return leg or "root"
        return f"{self.path_of(above)} / {leg}" if leg else self.path_of(above)

    def decision_of(self, leg: Leg) -> Decision | None:
        """Return the leg's decision; None if the leg's state differs from that of its chain's last job."""
        job = self.jobs.get(leg.outcome_job_id)
        return job.decision if job is not None and job.state is leg.state else None

    def find_leg(self, job_id: str) -> tuple[Coordinator, Leg] | None:
        """Return the coordinator that delegated a job and the job's leg; None if its batch is not the latest."""
        job = self.jobs.get(job_id)
        parent = self.coordinators.get(self.homes.get(job_id, ""))
        if job is None or job.delegation_id is None or parent is None or parent.batch is None:
            return None
        leg = parent.batch.legs.get(job.delegation_id)
        return (parent, leg) if leg is not None and leg.job_id == job_id else None
