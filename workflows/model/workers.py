"""What a job is to do, and who runs it."""

from enum import StrEnum

from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.texts import Text
from workflows.model.wire import Wire

UNRESOLVED = "HEAD"
"""The base of a tree that was started on another host than the checkout's: its first job resolves it (ruling O1)."""


class SessionScope(StrEnum):
    """How long an agent's program keeps its session (ruling K3)."""

    FRESH = "fresh"
    """Every job begins one of its own."""
    TREE = "tree"
    """A coordinator's continuations go on in the one its first job began, where that can be."""


class Worker(Wire):
    """Who runs a job, frozen when the job is dispatched: a registered agent, or an ephemeral worker."""

    name: str
    runtime: str
    ephemeral: bool = False
    command: tuple[str, ...] = ()
    """The shell runtime's command; empty for the others."""
    model: str | None = None
    effort: str | None = None
    template: str | None = None
    """An ephemeral worker's: the agent whose template seeds its prompt. An agent's own, where it does not travel."""
    template_digest: str | None = None
    """An agent's own template as it travels, frozen with the worker."""
    role: str | None = None
    capabilities: tuple[str, ...] = ()
    autonomy_policy: AutonomyPolicy = AutonomyPolicy.AUTO
    session: SessionScope = SessionScope.FRESH


class Assignment(Wire):
    """What a job is to do, by whom and with what; model, effort and time are complete once it is dispatched."""

    worker: Worker
    action: Action
    prompt: Text
    """The instructions as they were given; a continuation's text is rendered from its brief instead."""
    model: str | None = None
    effort: str | None = None
    phase: str | None = None
    timeout_seconds: float | None = None
    pull_request: int | None = None
    issue: int | None = None
    """What the tree belongs to: a pull request or an issue, never both (ruling L1)."""
    github: str = ""
    """The repository on GitHub whose pull request or issue it is, as it was called when the tree started."""
    web: str = ""
    """Where people see that repository; empty: on github.com."""
    about: Text | None = None
    """Title and text of the pull request or issue, as they were when the tree started; None where nobody asked."""
    into: str = ""
    """The branch that the pull request goes into; empty where that is not known."""
    head: str = ""
    """The head of the pull request when the tree started, where the tree has another base."""
    base: str = ""
    """The base of its tree: the commit it begins from while its task has no branch (ruling O1).

    Empty in trees of earlier releases, whose jobs begin from HEAD of the checkout; UNRESOLVED until its first job.
    """
    task_branch: str = ""
    """The branch of the task whose conflicts its tree resolves; empty: its own task's (ruling O6)."""
