"""The content of a continuation's prompt, as values that `policy/prompts` renders."""

from enum import StrEnum

from workflows.contract.models import Action, Decision
from workflows.model.long_texts import RefusedSet, Text
from workflows.model.states import Continuation, JobState
from workflows.model.wire import Wire


class BriefLeg(Wire):
    """One leg's outcome, for the coordinator's prompt (ruling E6)."""

    id: str
    job_id: str
    parent_job_id: str = ""
    """The coordinator's job that delegated the leg; it names the folder of the leg's artifact body."""
    worker: str
    ephemeral: bool = False
    action: Action
    state: JobState
    reason: str = ""
    decision: Decision | None = None
    phase: str | None = None
    summary: str = ""
    findings: str = ""
    """The findings of a leg that did not approve, or the answer of an `ask` (rulings E5, P3)."""
    pull_request: int | None = None
    branch: str | None = None
    touched_files: tuple[str, ...] = ()
    artifact_digest: str | None = None
    twin_of: str | None = None
    """The leg that ran in place of this duplicate (ruling C5)."""


class BudgetLine(Wire):
    """The tree's use of each bound when the prompt is written."""

    jobs: int
    jobs_cap: int
    depth: int
    depth_cap: int
    elapsed_seconds: float
    wall_clock_seconds: float
    tokens: int
    token_budget: int
    cost_usd: float
    cost_budget_usd: float
    price_assumed: bool = False
    """True if part of the cost is an estimate (ruling K5)."""
    warned: tuple[str, ...] = ()
    width: int = 0
    """The most delegations of one result; 0 in briefs that earlier releases wrote."""


class Answer(Wire):
    """A person's answer to one question; None if the question was left unanswered (ruling F5)."""

    id: str
    question: str
    text: str | None = None
    leg: str = ""
    """The leg that asked; empty for the coordinator itself."""


class Correction(StrEnum):
    """The problem that a corrective continuation has to fix."""

    PREFLIGHT = "preflight"
    REPEATED = "repeated"
    NO_PROGRESS = "no_progress"
    LEFT_OUT = "left_out"


class ContinuationBrief(Wire):
    """The content of a continuation's prompt, complete but not rendered, and small enough for a history."""

    flavour: Continuation
    correction: Correction | None = None
    goal: Text
    assignment: Text | None = None
    """A delegated coordinator's own instructions; None for the root, whose instructions are the goal."""
    belongs_to: str = ""
    """The pull request or issue of the tree, in words; empty without one (ruling L1)."""
    parent_job_id: str
    """The coordinator job that delegated the latest legs."""
    answers: tuple[Answer, ...] = ()
    guidance: str = ""
    """What a person wrote besides the answers."""
    unmatched: tuple[str, ...] = ()
    """Unknown question ids in a person's answer (ruling F5)."""
    orders: tuple[str, ...] = ()
    """The instructions of people who ran a delegated coordinator again (ruling F3)."""
    budget: BudgetLine
    legs: tuple[BriefLeg, ...] = ()
    previous_decision: Decision | None = None
    previous_summary: str = ""
    previous_discarded: tuple[str, ...] = ()
    """Files that the last job changed and names in its result, although none of its changes are kept (ruling I2)."""
    notes: tuple[str, ...] = ()
    """What was skipped or refused, with the reasons."""
    refused: tuple[RefusedSet, ...] = ()
    """Sets of delegations that were not dispatched: the coordinator corrects, repeats or drops them. A finalize
    receives all of them.
    """
    valid_agents: tuple[str, ...] = ()
    attempt: int = 0
    attempts: int = 0
    """The number of this replan, and the limit (ruling E5)."""
    approved: bool = False
    """True if a person decided to continue in spite of failures (ruling F3)."""
    inline_artifact_bodies: bool = False
