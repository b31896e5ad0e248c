"""Workflows' inputs, and messages from hosts and other workflows. People's orders are in `model/orders`."""

from typing import Any

from workflows.model.jobs import JobRun
from workflows.model.wire import Wire
from workflows.tree.commands import RunChild, RunCoordinator
from workflows.tree.events import RetryRequested, TreeTakenUp
from workflows.tree.state import TreeInput, TreeMemory


class TreeStart(Wire):
    """A tree's workflow input: a fresh tree, or the state of an earlier run of it with the next commands."""

    input: TreeInput
    host: str
    """The host that had the repository when the tree was started."""
    placed: bool = False
    """True if a host is chosen for each attempt (ruling Q4); otherwise all run on the tree's host."""
    state: TreeMemory | None = None
    retry: RetryRequested | None = None
    """The order that re-opens a blocked tree (ruling D4)."""
    taken_up: TreeTakenUp | None = None
    """The order that takes up a tree whose workflow was ended from outside."""
    coordinators: tuple[RunCoordinator, ...] = ()
    children: tuple[RunChild, ...] = ()
    """What the run before wanted done when it continued as new."""
    tells: bool = False
    """Tell the parent of the end by signal: it was reset while this tree ran."""
    history_limit: int | None = None
    """Continue as new from this many events on; None follows the server's advice."""


class Attention(Wire):
    """A tree's signal to its pipeline run: the tree waits for people, or (empty) does so no longer (ruling K1)."""

    job_id: str
    waits_for: str


class Outcome(Wire):
    """The outcome of a cancelled or taken-up child, sent to its parent by signal because Temporal does not
    pass it on.
    """

    workflow_id: str
    value: dict[str, Any]


class Begun(Wire):
    """A host has begun a job (ruling B5)."""

    job_id: str
    offer: int
    at: float


class HeldUp(Wire):
    """The reason why a job waits, and the command that resolves it (ruling B3); empty once the job continues."""

    job_id: str
    attempt: int
    reason: str
    next: str
    offer: int = 0
    """The number of an offer that waits for a host (ruling Q4); 0 for a begun job."""


class HostReport(Wire):
    """A host's report on jobs of a tree."""

    begun: tuple[Begun, ...] = ()
    held_up: tuple[HeldUp, ...] = ()


class DelegationInput(Wire):
    """A run, and its tree's host."""

    run: JobRun
    host: str
    placed: bool = False
    """True if the job's host is chosen when the job is to run (ruling Q4)."""
    summary: str = ""
    """The path in its tree, who does what, and the tree's title, for the web UI; empty in trees of earlier releases."""


class Reopened(Wire):
    """The message to a pipeline run, or the input of a new one, when a job of a stage's blocked tree is run
    again (K1).
    """

    stage_id: str
    tree: TreeStart
    """The tree as it continues, with the order."""
    memory: dict[str, Any] = {}
    """What the run knew when it ended; empty for a run that has not ended."""
