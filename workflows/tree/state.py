"""The input of a tree, and its whole state: one value that is stored, restored and continued."""

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
"""Maximum length of a message that a command repeats."""


class TreeInput(Wire):
    """The input of a tree."""

    root_job_id: str
    task_id: str
    title: str = ""
    repo: str
    assignment: Assignment
    """The root job's assignment; every job of the tree inherits its pull request and base."""
    created_at: float
    settings: TreeSettings = TreeSettings()
    branch_deps: tuple[str, ...] = ()
    """Branches whose work every job of the tree must see."""
    legs: tuple[Delegation, ...] = ()
    """A recipe's legs: dispatched at once in place of a first run of the root job."""
    line: tuple[Work, ...] = ()
    """The work of another tree, whose conflicts it resolves: its jobs begin from what of that goes together (O6)."""
    merges: tuple[str, ...] = ()
    """The parts of that line which conflict: their merge is begun for the root job (ruling O6)."""
    caveat: str = ""
    """Caveat of the result: recorded at the start, passed to the job that sums up, and part of the end's reason."""
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Labels that every job of the tree requires and prefers of its host (ruling Q4)."""
    read_only: bool = False
    """True if no job of the tree may implement: the caller who started the tree may only ask (ruling N5)."""

    options: str = ""
    """Options of the command that started it, as typed, without those of its repository, pull request or issue."""
    pipeline: str = ""
    """The pipeline whose stage the tree is."""

    @property
    def anew(self) -> str:
        """Return the command that starts the tree from its beginning; a message that fits into no line is piped in."""
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
    """The one finalize of a tree (ruling G1)."""

    kind: str
    reason: str
    job_id: str | None = None
    done: bool = False
    refused: list[RefusedSet] = []
    """Sets that were not dispatched because of the finalize, which gets them in its prompt (ruling E6)."""
    bound: str = ""
    """The bound that tripped, in words; empty if a person or a deadline ended the tree."""
    raised: str = ""
    """The setting under which the tree would have continued."""
    unrun: bool = False
    """True if something that was planned did not run: the tree was cut short."""


class Offer(Memory):
    """A job offered to its host and not begun (ruling B5)."""

    number: int
    attempt: int
    run: JobRun | None = None
    """A coordinator's complete run, to be offered again unchanged; a leg's run is rebuilt from its leg."""
    taken_back: bool = False
    """True if the host was asked to return the job and has not answered yet."""


class TreeMemory(Memory):
    """The state of the reducer."""

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
    """Number of events recorded for each job."""
    spent_jobs: int = 0
    """Jobs counted against the job budget: children, retries, continuations, re-runs (ruling C3)."""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    price_assumed: bool = False
    """True if part of the cost is an estimate (ruling K5)."""
    warned: list[str] = []
    verify_attempts: int = 0
    paused_seconds: float = 0.0
    """Seconds excluded from the wall clock: open rounds, and the time a blocked tree was closed."""
    paused_since: float | None = None
    """Opening time of the first of the currently open rounds (ruling F8)."""
    rounds: dict[str, list[Round]] = {}
    """Rounds by coordinator, kept when its leg runs again, so that numbers never restart (ruling F1)."""
    last_refusal: str = ""
    """The last refusal, with actor, time and reason, until a resume is accepted; for senders without an answer (F6)."""
    killed_by: str | None = None
    finalize: Finalize | None = None
    jobs: dict[str, JobRecord] = {}
    first: dict[str, str] = {}
    """Action needed before a failed job is retried, as its run reported (ruling B3)."""
    offers: dict[str, Offer] = {}
    """Offers to hosts of jobs not begun."""
    held_back: dict[str, JobRun] = {}
    """Coordinators' jobs that were taken back and will be offered again."""
    homes: dict[str, str] = {}
    """The coordinator of each job: the one whose chain it is of, or the one that delegated it."""
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
        """Return the jobs whose end will be reported: running and offered ones."""
        return [*self.running, *self.offers]

    @property
    def timers(self) -> list[str]:
        """Return the keys of the timers that are still needed."""
        retries = [leg.timer for leg in self.legs() if leg.timer is not None]
        return retries + [each.timer for rounds in self.rounds.values() for each in rounds if each.timer is not None]

    @property
    def quiescent(self) -> bool:
        """Return whether nothing is in flight and no timer is needed, so that the workflow can continue as new."""
        return not self.in_flight and not self.timers

    @property
    def is_blocked(self) -> bool:
        """Return whether the task is blocked: nothing continues until an operator's order (ruling D4)."""
        return self.task.state is TaskState.BLOCKED

    @property
    def is_frozen(self) -> bool:
        """Return whether the task is blocked and not ending: its coordinators start nothing more (ruling D4)."""
        return self.is_blocked and self.finalize is None

    @property
    def is_paused(self) -> bool:
        """Return whether at least one round is open: nothing starts (ruling F8)."""
        return self.paused_since is not None

    def open_round(self, coordinator_id: str) -> Round | None:
        """Return the coordinator's open round, of which there is at most one (ruling F1)."""
        rounds = self.rounds.get(coordinator_id)
        return rounds[-1] if rounds and rounds[-1].open else None

    def exclude(self, since: float) -> None:
        """Exclude the time since then from the wall clock (ruling C4)."""
        self.paused_seconds += self.now - since

    def elapsed_seconds(self, now: float) -> float:
        """Return the wall-clock time without the union of all pauses (rulings C4, F8)."""
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
        """Return the shared worktrees of jobs in flight. Waiting for jobs, not chains, cannot deadlock (ruling I3)."""
        busy = set(self.in_flight)
        shared = (leg for leg in self.legs() if leg.worktree and not leg.twin)
        return {leg.worktree for leg in shared if leg.worktree and leg.job_id in busy}

    def kept_sets(self) -> Iterator[JobOutcome | RefusedSet]:
        """Yield the sets of delegations that the state holds: held back, refused for the finalize, or in briefs of
        queued jobs.
        """
        yield from (chain.held for chain in self.coordinators.values() if chain.held is not None)
        yield from self.finalize.refused if self.finalize is not None else ()
        runs = [*self.held_back.values(), *(offer.run for offer in self.offers.values() if offer.run is not None)]
        yield from (each for run in runs if run.brief is not None for each in run.brief.refused)

    def legs(self) -> list[Leg]:
        """Return the legs of every coordinator's latest batch."""
        return [leg for chain in self.coordinators.values() if chain.batch for leg in chain.batch.legs.values()]

    def leg_of(self, chain: Coordinator) -> tuple[Coordinator, Leg] | None:
        """Return the leg of its parent's batch that a delegated chain belongs to; None for the root's chain."""
        if chain.coordinator_id == self.root_id:
            return None
        return self.find_leg(chain.coordinator_id)

    def needed_work(self, chain: Coordinator, batch: Batch, leg: Leg) -> tuple[str, ...]:
        """Return the branches the leg must see: those given to its coordinator, and those of its dependencies (I1).

        A leg that begins at the tree's base sees, of the former, only those that every job must see.
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
        """Return the line that the chain's next jobs begin from: its own leg's line, and its work since (ruling O2).

        Work that every job must see is known by its branches alone.
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
        """Return the leg's decision; None if the leg's state is not that of its chain's last job."""
        job = self.jobs.get(leg.outcome_job_id)
        return job.decision if job is not None and job.state is leg.state else None

    def find_leg(self, job_id: str) -> tuple[Coordinator, Leg] | None:
        """Return the leg of a job and the coordinator that delegated it, if its batch is the latest."""
        job = self.jobs.get(job_id)
        parent = self.coordinators.get(self.homes.get(job_id, ""))
        if job is None or job.delegation_id is None or parent is None or parent.batch is None:
            return None
        leg = parent.batch.legs.get(job.delegation_id)
        return (parent, leg) if leg is not None and leg.job_id == job_id else None
