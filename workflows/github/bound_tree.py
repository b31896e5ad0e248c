"""A tree bound to a pull request or issue: its rows, and the other data that its comments show."""

from dataclasses import dataclass, field

from workflows.contract.models import ServiceResult
from workflows.model.event_kinds import EventKind
from workflows.model.rows import EventRecord, JobRecord, RoundRecord, TaskRecord
from workflows.model.settings import Bounds
from workflows.model.states import Continuation


@dataclass(frozen=True, slots=True)
class BoundTree:
    """All stored rows of a bound tree; events and jobs are in order."""

    task: TaskRecord
    jobs: tuple[JobRecord, ...] = ()
    rounds: tuple[RoundRecord, ...] = ()
    events: tuple[EventRecord, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    handle: str = ""
    """`[orchestrate].escalation_handle`, as frozen in the tree's settings."""
    owner: str = ""
    """The login of the repository's owner, who is mentioned if the handle is not a GitHub login."""
    dashboard: str = ""
    """The address of the dashboard; empty if people cannot open it."""
    result: ServiceResult | None = None
    """The result of `last_job`, once the tree is over."""
    merged: frozenset[str] = frozenset()
    """The branches that are merged into the task's branch."""
    answered: frozenset[str] = frozenset()
    """The texts of refusals that were already posted, so that the tree's own event does not repeat them."""

    published: tuple[str, ...] = ()
    """The addresses of the tree's pull requests."""

    @property
    def root(self) -> str:
        """The root's job id."""
        return self.task.root_job_id

    @property
    def page(self) -> str:
        """The address of the tree's page on the dashboard; empty without a dashboard address."""
        return f"{self.dashboard}/ui/trees/{self.root}" if self.dashboard else ""

    @property
    def changed_at(self) -> float:
        """When anything that the tree's comments show last changed."""
        jobs = (at for each in self.jobs for at in (each.queued_at, each.started_at, each.ended_at))
        rounds = (at for each in self.rounds for at in (each.opened_at, each.closed_at))
        return max(at for at in (self.task.opened_at, self.task.ended_at, *jobs, *rounds) if at is not None)

    @property
    def caveat(self) -> str:
        """The caveat of the tree's result; empty without one."""
        return next((each.message for each in self.events if each.kind == EventKind.TREE_CAVEAT), "")


def last_job(tree: BoundTree) -> JobRecord | None:
    """Return the job whose result is the tree's: the finalize if it ran, else the coordinator's latest job (ruling
    G1).
    """
    own = [job for job in tree.jobs if job.delegation_id is None]
    ended = [job for job in own if job.continuation is Continuation.FINALIZE and job.ended_at is not None]
    return (ended or own)[-1] if own else None
