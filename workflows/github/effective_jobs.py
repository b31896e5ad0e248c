"""The jobs of a tree that still count: the last attempt of each, and each coordinator's legs since its last replan.

A coordinator's jobs are a chain: its first job, then its continuations. The legs that one of them delegates are a
generation. A replan follows a generation whose work was rejected, and gives that generation up: its work is not awaited
any more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workflows.model.rows import JobRecord
from workflows.model.states import Continuation


@dataclass(frozen=True)
class ChainLeg:
    """A delegated job, and the chain that begins with it; for most legs, the chain is only that job."""

    job: JobRecord
    chain: "Chain"

    @property
    def outcome(self) -> JobRecord:
        """The job whose outcome is the leg's."""
        return self.chain.jobs[-1]


@dataclass(frozen=True)
class Generation:
    """The legs that one result delegated. A generation is given up when a replan follows it."""

    legs: tuple[ChainLeg, ...]
    given_up: bool


@dataclass(frozen=True)
class Chain:
    """A coordinator's jobs in order, and the generations that they delegated."""

    jobs: tuple[JobRecord, ...]
    generations: tuple[Generation, ...]

    def latest(self) -> Iterator[tuple[Generation, ChainLeg]]:
        """Yield the legs of the last generation, each followed by the legs of its own last generation, at any depth."""
        for generation in self.generations[-1:]:
            for leg in generation.legs:
                yield generation, leg
                yield from leg.chain.latest()

    def standing(self) -> Iterator[JobRecord]:
        """Yield every job that still counts: the chain's own jobs and its legs' jobs, without given-up generations."""
        yield from self.jobs
        for generation in self.generations:
            for leg in () if generation.given_up else generation.legs:
                yield from leg.chain.standing()

    def last_with(self, wanted: frozenset[str]) -> list[tuple[Generation, ChainLeg]]:
        """Return the wanted legs of the last generation that contains any, itself or in its legs' chains."""
        for generation in reversed(self.generations):
            own = [(generation, leg) for leg in generation.legs if leg.job.job_id in wanted]
            below = [each for leg in generation.legs for each in leg.chain.last_with(wanted)]
            if own or below:
                return own + below
        return []


def chain_of(jobs: Sequence[JobRecord], first: JobRecord) -> Chain:
    """Return the chain that begins with a job, with all jobs below it that count."""
    children: dict[str, list[JobRecord]] = {}
    for job in jobs:
        if job.parent_job_id:
            children.setdefault(job.parent_job_id, []).append(job)
    return _chain(children, first)


def _chain(children: dict[str, list[JobRecord]], first: JobRecord) -> Chain:
    chain, generations = [first], list[Generation]()
    while True:
        mine = [job for job in children.get(chain[-1].job_id, ()) if _of_its_last_attempt(job, chain[-1])]
        after = next((job for job in reversed(mine) if job.delegation_id is None), None)
        legs = {job.delegation_id: job for job in mine if job.delegation_id}
        if legs:
            given_up = after is not None and after.continuation is Continuation.REPLAN
            made = tuple(ChainLeg(job, _chain(children, job)) for job in legs.values())
            generations.append(Generation(made, given_up))
        if after is None:
            return Chain(tuple(chain), tuple(generations))
        chain.append(after)


def _of_its_last_attempt(job: JobRecord, parent: JobRecord) -> bool:
    """Return whether a job was delegated by its parent's last attempt; jobs of earlier attempts do not count."""
    return parent.started_at is None or job.queued_at >= parent.started_at
