"""Inputs of workflows, and messages to them from hosts and other workflows. People's orders are in `model/orders`."""

from typing import Any

from workflows.model.jobs import JobRun
from workflows.model.wire import Wire
from workflows.tree.commands import RunChild, RunCoordinator
from workflows.tree.events import RetryRequested, TreeTakenUp
from workflows.tree.state import TreeInput, TreeMemory


class TreeStart(Wire):
    """The input of a tree's workflow: a new tree, or the state of an earlier run with the commands to carry out
    next.
    """

    input: TreeInput
    host: str
    """The host that had the repository when the tree started."""
    placed: bool = False
    """True if a host is chosen for each attempt (ruling Q4); otherwise all run on the tree's host."""
    state: TreeMemory | None = None
    retry: RetryRequested | None = None
    """The order that re-opens a blocked tree (ruling D4)."""
    taken_up: TreeTakenUp | None = None
    """The order to continue a tree whose workflow was ended from outside."""
    coordinators: tuple[RunCoordinator, ...] = ()
    children: tuple[RunChild, ...] = ()
    """Commands that the previous run left when it continued as new."""
    tells: bool = False
    """True if the tree reports its end to its parent by signal, because the parent was reset while the tree ran."""
    history_limit: int | None = None
    """The number of events from which on the tree continues as new; None follows the server's advice."""


class Attention(Wire):
    """A tree's signal to its pipeline run: the reason why it waits for people; empty when it stops waiting (ruling
    K1).
    """

    job_id: str
    waits_for: str


class Outcome(Wire):
    """The outcome of a cancelled or taken-up child, sent to its parent by signal, because Temporal does not deliver
    it.
    """

    workflow_id: str
    value: dict[str, Any]


class Begun(Wire):
    """A host has begun a job (ruling B5)."""

    job_id: str
    offer: int
    at: float


class HeldUp(Wire):
    """Why a job waits, and the command that ends the wait (ruling B3); empty once the job continues."""

    job_id: str
    attempt: int
    reason: str
    next: str
    offer: int = 0
    """The number of an offer for which no host is chosen yet (ruling Q4); 0 for a begun job."""


class HostReport(Wire):
    """A host's report on jobs of a tree."""

    begun: tuple[Begun, ...] = ()
    held_up: tuple[HeldUp, ...] = ()


class DelegationInput(Wire):
    """One attempt of a job, and the host of its tree."""

    run: JobRun
    host: str
    placed: bool = False
    """True if a host is chosen for the job when it is to run (ruling Q4)."""
    summary: str = ""
    """For the web UI: the job's path in its tree, its worker and action, and the tree's title; empty in trees of
    earlier releases.
    """


class Reopened(Wire):
    """The message to a pipeline run, or the input of a new one, that a job in a stage's blocked tree is retried
    (K1).
    """

    stage_id: str
    tree: TreeStart
    """The state from which the tree continues, with the order."""
    memory: dict[str, Any] = {}
    """The state in which the run ended; empty for a run that has not ended."""
