"""The outline of a tree: chains of jobs, the batches they delegated, and the rounds in which people were asked.

A `Batch` and a `Chain` are those of `workflows/tree/chains.py` and `workflows/github/effective_jobs.py`, made of rows
for a page.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from bridge.http.dashboard.parts.grid import seconds_of
from workflows.model.rows import JobRecord, RoundRecord
from workflows.model.states import FAILING, Continuation, JobState
from workflows.policy.decisions import decision_label, state_label

LARGE = 20
"""Trees with more jobs than this fold their finished batches."""
HUGE = 100
"""In an overview of trees with more jobs than this, the jobs of a folded batch are only shown on demand."""
STEPS = 20
"""The number of last steps of the lead in such an overview: jobs, batches and rounds. Earlier ones are one line."""
EARLIER = "earlier"
"""The key of that line in addresses."""

_WORDS = {JobState.SUCCEEDED: "done"}


def _in_states(states: Iterable[JobState]) -> str:
    return ", ".join(f"{number} {_WORDS.get(state, state)}" for state, number in Counter(states).items())


@dataclass(frozen=True)
class JobLine:
    """A job in the outline."""

    kind: ClassVar[str] = "job"
    job: JobRecord
    level: int
    label: str
    """Its state for people."""
    name: str
    """The part's name; of a coordinator's further jobs also what they do."""

    @property
    def seconds(self) -> float | None:
        return seconds_of(self.job)

    @property
    def decision(self) -> str:
        return decision_label(self.job.state, self.job.decision)

    @property
    def says(self) -> str:
        """Return why a job failed, else its summary, else why it waits."""
        failed = self.job.reason if self.job.state in FAILING else ""
        return failed or self.job.summary or self.job.reason


@dataclass(frozen=True)
class RoundLine:
    """A round of questions or failures, at the place in the outline where it was opened."""

    kind: ClassVar[str] = "round"
    asked: RoundRecord
    level: int


@dataclass(frozen=True)
class Batch:
    """The legs that a job delegated together."""

    kind: ClassVar[str] = "batch"
    key: str
    """Its name in addresses and ids: unique in its tree, and never changed."""
    number: int
    """Its place among the batches of its coordinator, from 1."""
    of: str
    """The part that delegated it; empty for the lead."""
    legs: "tuple[Chain, ...]"
    level: int
    finished: bool
    """True if nothing of it runs any more, and its coordinator has gone on."""
    folded: bool = False
    on_demand: bool = False
    """True if its jobs are not shown before a person asks for them."""

    @property
    def title(self) -> str:
        """Return whose parts these are."""
        parts = f"{len(self.legs)} part{'s' if len(self.legs) > 1 else ''} of {self.of}"
        return f"{parts}{f', batch {self.number}' if self.number > 1 else ''}" if self.of else f"Batch {self.number}"

    @property
    def says(self) -> str:
        """Return how many legs ended in which state, such as "4 done, 1 failed"."""
        return _in_states(leg.state for leg in self.legs)

    @property
    def jobs(self) -> Iterator[JobRecord]:
        """Yield all jobs of the batch, also those that its legs led to."""
        return (job for leg in self.legs for job in leg.jobs)

    @property
    def seconds(self) -> float | None:
        """Return the seconds from the dispatch to the last end; None until all jobs have ended."""
        ends = [job.ended_at for job in self.jobs if job.ended_at is not None]
        whole = len(ends) == len([*self.jobs])
        return max(ends) - min(job.queued_at for job in self.jobs) if whole else None

    @property
    def cost_usd(self) -> float:
        return sum(job.cost_usd for job in self.jobs)

    @property
    def price_assumed(self) -> bool:
        return any(job.price_assumed for job in self.jobs)

    @property
    def state(self) -> JobState:
        """Return the state of its legs: that of the worst, or running while any of them is."""
        states = {leg.state for leg in self.legs}
        return next((state for state in _WORST_FIRST if state in states), JobState.SUCCEEDED)


@dataclass(frozen=True)
class Earlier:
    """The first steps of a very long chain, on one line."""

    kind: ClassVar[str] = "earlier"
    key: ClassVar[str] = EARLIER
    jobs: tuple[JobRecord, ...]
    batches: int

    @property
    def says(self) -> str:
        """Return how many jobs ended in which state, such as "814 done, 2 failed"."""
        return _in_states(job.state for job in self.jobs)

    @property
    def cost_usd(self) -> float:
        return sum(job.cost_usd for job in self.jobs)


_WORST_FIRST = (
    JobState.RUNNING,
    JobState.QUEUED,
    JobState.FAILED,
    JobState.BLOCKED,
    JobState.CANCELLED,
    JobState.SKIPPED,
)


@dataclass(frozen=True)
class Chain:
    """A coordinator's job and its continuations, with everything in between; for most legs one job."""

    parts: tuple[JobLine | RoundLine | Batch | Earlier, ...]

    @property
    def first(self) -> JobRecord:
        return next(self.own)

    @property
    def outcome(self) -> JobRecord:
        """Return the job with which it ended, or will end."""
        return [*self.own][-1]

    @property
    def state(self) -> JobState:
        """Return the state of its last job; running while its coordinator waits for a batch."""
        waits = isinstance(last := self.parts[-1], Batch) and not last.finished
        waits = waits or (isinstance(last, RoundLine) and last.asked.end is None)
        return JobState.RUNNING if waits else self.outcome.state

    @property
    def decision(self) -> str:
        return decision_label(self.outcome.state, self.outcome.decision)

    @property
    def own(self) -> Iterator[JobRecord]:
        """Yield the chain's jobs, without those of its batches."""
        return (part.job for part in self.parts if isinstance(part, JobLine))

    @property
    def jobs(self) -> Iterator[JobRecord]:
        """Yield all jobs of the chain, also those of its batches."""
        for part in self.parts:
            if isinstance(part, JobLine):
                yield part.job
            elif isinstance(part, Batch | Earlier):
                yield from part.jobs


def lines(chains: Iterable[Chain]) -> Iterator[JobLine]:
    """Yield the line of each job, in the order of the tree."""
    for chain in chains:
        for part in chain.parts:
            if isinstance(part, JobLine):
                yield part
            elif isinstance(part, Batch):
                yield from lines(part.legs)


def names(chains: Iterable[Chain]) -> dict[str, str]:
    """Return the name of each job for people, by job id, in the order of the tree."""
    return {line.job.job_id: line.name for line in lines(chains)}


def of_tree(
    jobs: Sequence[JobRecord],
    rounds: Sequence[RoundRecord] = (),
    *,
    over: bool = True,
    unfolded: Collection[str] = (),
    deep: bool = True,
) -> tuple[Chain, ...]:
    """Return the chains that no other job of the tree led to: one, unless rows are missing.

    In a large tree, finished batches are folded, except those whose keys are in `unfolded`; unless `deep`, so are all
    batches of the lead's parts.
    """
    known = {job.job_id for job in jobs}
    below: dict[str | None, list[JobRecord]] = {}
    for job in jobs:
        below.setdefault(job.parent_job_id if job.parent_job_id in known else None, []).append(job)
    asked: dict[str, list[RoundRecord]] = {}
    for record in rounds:
        asked.setdefault(record.job_id if record.job_id in known else jobs[0].job_id, []).append(record)
    folds = len(jobs) > LARGE and "all" not in unfolded
    huge = folds and not deep and len(jobs) > HUGE
    making = _Making(below, asked, rounds, over=over, folds=folds, unfolded=frozenset(unfolded), deep=deep, huge=huge)
    return tuple(making.chain(job, 1) for job in below.get(None, ()))


def overview(
    jobs: Sequence[JobRecord], rounds: Sequence[RoundRecord], *, over: bool, unfolded: Collection[str]
) -> tuple[Chain, ...]:
    """Return the chains of an overview. That of a huge tree begins with its last steps, the others on demand."""
    chains = of_tree(jobs, rounds, over=over, unfolded=unfolded, deep=False)
    if len(jobs) <= HUGE or {EARLIER, "all"} & set(unfolded):
        return chains
    return tuple(map(_last_steps, chains))


def _last_steps(chain: Chain) -> Chain:
    first, *others = chain.parts
    if len(others) <= STEPS + 2:
        return chain
    gone = Chain(tuple(others[:-STEPS]))
    earlier = Earlier(tuple(gone.jobs), sum(isinstance(part, Batch) for part in gone.parts))
    return Chain((first, earlier, *others[-STEPS:]))


@dataclass(frozen=True)
class _Making:
    below: Mapping[str | None, Sequence[JobRecord]]
    asked: Mapping[str, Sequence[RoundRecord]]
    """The rounds by the job after which they stand."""
    rounds: Sequence[RoundRecord]
    over: bool
    folds: bool
    unfolded: frozenset[str]
    deep: bool
    huge: bool
    """True if the jobs of all batches are only shown on demand."""

    def chain(self, first: JobRecord, level: int) -> Chain:
        parts: list[JobLine | RoundLine | Batch] = []
        waiting = [first]
        while waiting:
            job = waiting.pop(0)
            batches, after = self._children(job)
            parts.append(JobLine(job, level, state_label(job, self.rounds), self._name(job, first)))
            for at, legs in enumerate(batches, 1):
                number = 1 + sum(isinstance(part, Batch) for part in parts)
                gone_on = bool(after) or at < len(batches)
                parts.append(self._batch(job, at, number, legs, level, of=first.delegation_id or "", gone_on=gone_on))
            parts += [RoundLine(record, level) for record in self.asked.get(job.job_id, ())]
            waiting = [*after, *waiting]
        return Chain(tuple(parts))

    def _name(self, job: JobRecord, first: JobRecord) -> str:
        if job.continuation is not Continuation.NONE:
            return f"{first.delegation_id or 'lead'}: {job.name}"
        return job.delegation_id or ("lead (plans)" if job.job_id in self.below else job.agent)

    def _children(self, job: JobRecord) -> tuple[list[list[JobRecord]], list[JobRecord]]:
        """Return the batches of a job, one per attempt that delegated, and the continuations after them."""
        batches, after, again = list[list[JobRecord]](), list[JobRecord](), True
        for child in self.below.get(job.job_id, ()):
            if child.delegation_id is None:
                after.append(child)
                again = True
            elif again or any(child.delegation_id == leg.delegation_id for leg in batches[-1]):
                batches.append([child])
                again = False
            else:
                batches[-1].append(child)
        return batches, after

    def _batch(
        self, by: JobRecord, at: int, number: int, legs: Sequence[JobRecord], level: int, *, of: str, gone_on: bool
    ) -> Batch:
        key = (by.job_id.removeprefix(by.root_job_id).lstrip(".") or "0") + (f"-{at}" if at > 1 else "")
        chains = tuple(self.chain(leg, level + 1) for leg in legs)
        ended = all(chain.state.has_ended and all(job.state.has_ended for job in chain.jobs) for chain in chains)
        finished = ended and (gone_on or self.over)
        on_demand = self.huge and key not in self.unfolded
        folded = self.folds and (finished or (level > 1 and not self.deep)) and key not in self.unfolded
        return Batch(key, number, of, chains, level + 1, finished, folded or on_demand, on_demand)
