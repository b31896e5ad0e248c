"""A job's assignment and its worker."""

from enum import StrEnum

from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.long_texts import Text
from workflows.model.wire import Wire

UNRESOLVED = "HEAD"
"""The base of a tree that was started on another host than the checkout's: its first job resolves it (ruling O1)."""


class SessionScope(StrEnum):
    """The lifetime of an agent program's session (ruling K3)."""

    FRESH = "fresh"
    """Every job starts a session of its own."""
    TREE = "tree"
    """A coordinator's continuations resume the session of its first job, if possible."""


class Worker(Wire):
    """The worker of a job, frozen at dispatch: a registered agent, or an ephemeral worker."""

    name: str
    runtime: str
    ephemeral: bool = False
    command: tuple[str, ...] = ()
    """The shell runtime's command; empty for the others."""
    model: str | None = None
    effort: str | None = None
    template: str | None = None
    """An ephemeral worker's: the agent whose template seeds its prompt. An agent's own, unless it travels by digest."""
    template_digest: str | None = None
    """The digest of an agent's own template, frozen with the worker."""
    role: str | None = None
    capabilities: tuple[str, ...] = ()
    autonomy_policy: AutonomyPolicy = AutonomyPolicy.AUTO
    session: SessionScope = SessionScope.FRESH


class Assignment(Wire):
    """A job's task, worker and parameters; model, effort and timeout are complete once it is dispatched."""

    worker: Worker
    action: Action
    prompt: Text
    """The original instructions; a continuation's text is rendered from its brief instead."""
    model: str | None = None
    effort: str | None = None
    phase: str | None = None
    timeout_seconds: float | None = None
    pull_request: int | None = None
    issue: int | None = None
    """The pull request or issue of the tree, never both (ruling L1)."""
    github: str = ""
    """Their repository on GitHub, by its name when the tree started."""
    web: str = ""
    """The web address of GitHub; empty: github.com."""
    about: Text | None = None
    """Title and text of the pull request or issue when the tree started; None if they were not fetched."""
    into: str = ""
    """The base branch of the pull request; empty if unknown."""
    head: str = ""
    """The head of the pull request when the tree started, if the tree has another base."""
    base: str = ""
    """The base of the tree: the commit from which jobs start while the task has no branch (ruling O1). UNRESOLVED until
    the tree's first job.
    """
    task_branch: str = ""
    """The branch of the task whose conflicts its tree resolves; empty: its own task's (ruling O6)."""
