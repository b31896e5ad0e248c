"""A job's assignment and its worker."""

from enum import StrEnum

from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.long_texts import Text
from workflows.model.wire import Wire

UNRESOLVED = "HEAD"
"""The base of a tree that was started on a host without the checkout: the tree's first job resolves it (ruling O1)."""


ABILITIES: dict[str, str] = {Action.ASK: "plans", Action.REVIEW: "reviews", Action.IMPLEMENT: "writes changes"}


class SessionScope(StrEnum):
    """How long a session of an agent's program lives (ruling K3)."""

    FRESH = "fresh"
    """Every job starts a new session."""
    TREE = "tree"
    """A coordinator's continuations resume the session of its first job, if possible."""


class Worker(Wire):
    """The worker of a job, frozen at dispatch: a registered agent or an ephemeral worker."""

    name: str
    runtime: str
    ephemeral: bool = False
    command: tuple[str, ...] = ()
    """The command of a shell runtime; empty for the others."""
    model: str | None = None
    effort: str | None = None
    template: str | None = None
    """For an ephemeral worker: the agent whose template begins its prompt. For a registered agent: its own template,
    unless that travels by digest.
    """
    template_digest: str | None = None
    """The digest of an agent's own template, frozen with the worker."""
    role: str | None = None
    capabilities: tuple[str, ...] = ()
    autonomy_policy: AutonomyPolicy = AutonomyPolicy.AUTO
    session: SessionScope = SessionScope.FRESH

    @property
    def abilities(self) -> str:
        """Return what it can be asked to do, in words."""
        *most, last = [ABILITIES[action] for action in self.capabilities] or ["does nothing"]
        return f"{', '.join(most)} and {last}" if most else last


class Assignment(Wire):
    """A job's task, worker and parameters. Model, effort and timeout are set when the job is dispatched."""

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
    """The issue of the tree, which has a pull request or an issue, never both (ruling L1)."""
    github: str = ""
    """The GitHub name of their repository when the tree started."""
    web: str = ""
    """The web address of GitHub; empty means github.com."""
    about: Text | None = None
    """Title and text of the pull request or issue when the tree started; None if they were not fetched."""
    into: str = ""
    """The base branch of the pull request; empty if unknown."""
    head: str = ""
    """The head of the pull request when the tree started, unless it is the tree's base."""
    base: str = ""
    """The commit from which jobs start while the task has no branch (ruling O1). UNRESOLVED until the tree's first
    job.
    """
    task_branch: str = ""
    """The branch of another task, whose conflicts this tree resolves; empty means the tree's own task (ruling O6)."""
