"""A model of what each job of a tree begins from (ruling O2), based on runs, results, rows and events, no state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workflows.contract.models import Delegation
from workflows.model.event_kinds import EventKind
from workflows.model.jobs import JobOutcome, JobRun, Work
from workflows.model.rows import JobRecord, Records
from workflows.model.states import JobState
from workflows.tree.state import TreeInput

Deps = Mapping[str, Sequence[str]]


class Set:
    """The acting legs of one result, in dispatch order, each with its dependencies."""

    def __init__(self, delegations: Sequence[Delegation]) -> None:
        every = {each.id: each.deps for each in delegations}
        runs = dict[str, str]()
        prints = {each.id: each.fingerprint or each.id for each in delegations}
        for leg in _in_order(every):
            runs.setdefault(prints[leg], leg)
        self.deps = {leg: [runs[prints[dep]] for dep in every[leg]] for leg in every if runs[prints[leg]] == leg}
        self.legs = _in_order(self.deps)
        self.ends: dict[str, str] = {}
        """End state of each leg, by the events."""

    def before(self, leg: str) -> set[str]:
        """Return all direct and indirect dependencies of a leg."""
        return {each for dep in self.deps[leg] for each in (dep, *self.before(dep))}


def _in_order(deps: Deps) -> list[str]:
    """Sort legs by dependency level, within a level in the given order."""

    def level(leg: str) -> int:
        return max((1 + level(dep) for dep in deps[leg]), default=0)

    return sorted(deps, key=level)


@dataclass
class Chain:
    """A job that may delegate, and its continuations."""

    begins: tuple[Work, ...]
    jobs: list[str]
    sets: dict[str, Set] = field(default_factory=dict)
    """Sets by the job that returned them."""


class Lines:
    """All work, by its author."""

    def __init__(self, start: TreeInput) -> None:
        self.given = tuple(Work(branch=branch) for branch in start.branch_deps)
        self.rows: dict[str, JobRecord] = {}
        self.legs: dict[tuple[str, str], str] = {}
        """Job of a leg, by the delegating job and the leg's id."""
        root = Chain(self.given, [start.root_job_id])
        if start.legs:
            root.sets[start.root_job_id] = Set(start.legs)
        self.chains = {start.root_job_id: root}
        """Chain of each job, be it its first job or a continuation."""

    def hear(self, outcome: JobOutcome) -> None:
        if outcome.delegations and outcome.job_id in self.chains:
            self.chains[outcome.job_id].sets[outcome.job_id] = Set(outcome.delegations)

    def see(self, records: Records) -> None:
        for job in records.jobs:
            self.rows[job.job_id] = job
            if job.delegation_id is not None and job.parent_job_id is not None:
                self.legs[job.parent_job_id, job.delegation_id] = max(
                    job.job_id, self.legs.get((job.parent_job_id, job.delegation_id), ""), key=_number
                )
        for event in records.events:
            if event.kind == EventKind.BATCH_SETTLED and isinstance(event.data["legs"], list):
                ends = self.chains[event.job_id].sets[event.job_id].ends
                ends.update(dict(each.split(": ") for each in event.data["legs"]))

    def check(self, run: JobRun) -> None:
        """Check a dispatched job against the model. A leg's attempt knows nothing of the previous one's work."""
        parent, leg = run.parent_job_id, run.delegation_id
        line = deps = tuple[Work, ...]()  # the root has its input in `branch_deps`
        if parent is not None and leg is None:
            chain = self.chains[run.job_id] = self.chains[parent]
            line = self._line(chain, but=run.job_id)
            chain.jobs = list(dict.fromkeys([*chain.jobs, run.job_id]))
        elif parent is not None and leg is not None:
            chain = self.chains[parent]
            line = () if run.at_base else self._line(chain, but=parent)
            deps = _once(self._of_legs(parent, chain.sets[parent].before(leg)))
            self.chains[run.job_id] = Chain(_once([*(line or self.given), *deps]), [run.job_id])
        assert (run.line, run.deps) == (line, deps), (run.job_id, run.attempt, run.at_base)

    def _line(self, chain: Chain, but: str) -> tuple[Work, ...]:
        """Return the chain's start and its work since, without the set of this job, which is running."""
        return _once([*chain.begins, *self._made(chain, but)])

    def _made(self, chain: Chain, but: str = "") -> Iterator[Work]:
        for job_id in chain.jobs:
            job = self.rows[job_id]
            if job.state is JobState.SUCCEEDED and job.action == "implement" and job.branch:
                yield Work(job_id=job_id, branch=job.branch, head=job.head_sha or "")
            if job_id in chain.sets and job_id != but:
                ends = chain.sets[job_id].ends
                yield from self._of_legs(job_id, {leg for leg in ends if ends[leg] == JobState.SUCCEEDED})

    def _of_legs(self, parent: str, wanted: set[str]) -> Iterator[Work]:
        """Yield the work of these legs, each with its whole chain."""
        for leg in self.chains[parent].sets[parent].legs:
            if leg in wanted:
                job_id = self.legs[parent, leg]
                for work in self._made(self.chains[job_id]):
                    yield work.model_copy(update={"leg": leg, "job_id": job_id})


def _number(job_id: str) -> int:
    return int(job_id.rpartition(".")[2] or 0)


def _once(work: Iterator[Work] | list[Work]) -> tuple[Work, ...]:
    return tuple(dict.fromkeys(work))
