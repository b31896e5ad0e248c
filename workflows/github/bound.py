"""A tree that is bound to a pull request or issue: its rows, and what else its comments are made of."""

from dataclasses import dataclass, field

from workflows.contract.models import ServiceResult
from workflows.model.event_kinds import EventKind
from workflows.model.rows import EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.model.settings import Bounds
from workflows.model.states import Continuation

"""The states in which a tree goes on only by an operator's order, or never."""


@dataclass(frozen=True, slots=True)
class BoundTree:
    """All of it as the store has it, events and jobs in their order."""

    task: TaskRecord
    jobs: tuple[JobRecord, ...] = ()
    rounds: tuple[RoundRecord, ...] = ()
    events: tuple[EventRecord, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    handle: str = ""
    """`[orchestrate].escalation_handle`, as the tree took it along."""
    owner: str = ""
    """The login of the repository's owner, who is tagged where the handle is none of GitHub's."""
    dashboard: str = ""
    """The address of the dashboard; empty where it has none that people could open."""
    result: ServiceResult | None = None
    """What `last_job` returned, once the tree is over."""
    merged: frozenset[str] = frozenset()
    """The branches that are in their task's branch."""
    answered: frozenset[str] = frozenset()
    """The sentences with which comments were refused as they were read: the tree's own event says the same again."""

    published: tuple[str, ...] = ()
    """The addresses of the pull requests its work became."""

    @property
    def root(self) -> str:
        """The root's job id."""
        return self.task.root_job_id

    @property
    def page(self) -> str:
        """The tree on the dashboard; empty where that has no address."""
        return f"{self.dashboard}/ui/trees/{self.root}" if self.dashboard else ""

    @property
    def changed_at(self) -> float:
        """When anything last changed that its comments show."""
        jobs = (at for each in self.jobs for at in (each.queued_at, each.started_at, each.ended_at))
        rounds = (at for each in self.rounds for at in (each.opened_at, each.closed_at))
        return max(at for at in (self.task.opened_at, self.task.ended_at, *jobs, *rounds) if at is not None)

    @property
    def caveat(self) -> str:
        """What its result must be read with."""
        return next((each.message for each in self.events if each.kind == EventKind.TREE_CAVEAT), "")


def last_job(tree: BoundTree) -> JobRecord | None:
    """The job whose result is the tree's: the finalize that ran, else the coordinator's latest (ruling G1)."""
    own = [job for job in tree.jobs if job.delegation_id is None]
    ended = [job for job in own if job.continuation is Continuation.FINALIZE and job.ended_at is not None]
    return (ended or own)[-1] if own else None
