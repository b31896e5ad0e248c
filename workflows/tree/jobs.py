"""What a job is told and what it reports back: the values that cross from the tree to an agent run and home again.

They are wire format: a new field needs a default, unknown ones are ignored, and everything large travels by digest.
"""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from workflows.contract.models import Action, AutonomyPolicy, Decision, Delegation, HumanQuestion
from workflows.contract.notices import Notice
from workflows.contract.strings import MOST_TOKENS


class Wire(BaseModel):
    """A frozen value that crosses process borders and outlives releases."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class JobState(StrEnum):
    """Ruling B2."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class TaskState(StrEnum):
    """Ruling B2: a pause belongs to the task."""

    OPEN = "open"
    AWAITING_HUMAN = "awaiting_human"
    BLOCKED = "blocked"
    DONE = "done"
    CANCELLED = "cancelled"


class Continuation(StrEnum):
    """Why a coordinator runs again (ruling D1)."""

    NONE = "none"
    NORMAL = "normal"
    CORRECTIVE = "corrective"
    REPLAN = "replan"
    ANSWERED = "answered"
    FINALIZE = "finalize"


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
    role: str | None = None
    capabilities: tuple[str, ...] = ()
    autonomy_policy: AutonomyPolicy = AutonomyPolicy.AUTO
    session: SessionScope = SessionScope.FRESH


class Usage(Wire):
    """Tokens a job used, as far as its runtime says so."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total(self) -> int:
        """What counts against the token budget."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=min(MOST_TOKENS, self.input_tokens + other.input_tokens),
            output_tokens=min(MOST_TOKENS, self.output_tokens + other.output_tokens),
        )


class Text(Wire):
    """A text inline when it is short, or by its digest in the artifact store."""

    inline: str | None = None
    digest: str | None = None


class LongPrompt(Wire):
    """A delegation's prompt that was too long to travel: what stands in the delegation is only its beginning."""

    digest: str
    folded: str
    """Digest of the text with white space folded: what the loop signature compares (ruling H1)."""


class RefusedSet(Wire):
    """Delegations that were not dispatched, complete, and the job that returned them."""

    job_id: str
    delegations: tuple[Delegation, ...]
    long_prompts: dict[str, str] = {}
    """Digests of the prompts that are too long to stand here, by leg."""


class BriefLeg(Wire):
    """One leg's outcome, as the coordinator is told it (ruling E6)."""

    id: str
    job_id: str
    parent_job_id: str = ""
    """The coordinator's job that delegated it: names the folder of its artifact body."""
    worker: str
    ephemeral: bool = False
    action: Action
    state: JobState
    reason: str = ""
    decision: Decision | None = None
    phase: str | None = None
    summary: str = ""
    findings: str = ""
    """Only on verify legs of a failed verdict (ruling E5)."""
    pull_request: int | None = None
    branch: str | None = None
    touched_files: tuple[str, ...] = ()
    artifact_digest: str | None = None
    twin_of: str | None = None
    """The leg that ran in its place (ruling C5)."""


class BudgetLine(Wire):
    """What the tree has used of each bound when the prompt is written."""

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
    """Some of the cost is a guess (ruling K5)."""
    warned: tuple[str, ...] = ()


class Answer(Wire):
    """A person's answer to one question; None when it was left unanswered (ruling F5)."""

    id: str
    question: str
    text: str | None = None
    leg: str = ""
    """The leg that asked; empty when the coordinator did."""


class Correction(StrEnum):
    """What a corrective continuation has to put right."""

    PREFLIGHT = "preflight"
    REPEATED = "repeated"
    NO_PROGRESS = "no_progress"


class ContinuationBrief(Wire):
    """What a continuation prompt says, before it is text: small enough for a history, whole enough to render."""

    flavour: Continuation
    correction: Correction | None = None
    goal: Text
    assignment: Text | None = None
    """A delegated coordinator's own instructions; None for the root, whose instructions are the goal."""
    parent_job_id: str
    """The coordinator job that delegated the latest legs."""
    answers: tuple[Answer, ...] = ()
    guidance: str = ""
    """What a person said beyond the answers."""
    unmatched: tuple[str, ...] = ()
    """What a person wrote in an id's place that is no question's id (ruling F5)."""
    orders: tuple[str, ...] = ()
    """What people told a delegated coordinator when they had it run again (ruling F3)."""
    budget: BudgetLine
    legs: tuple[BriefLeg, ...] = ()
    previous_decision: Decision | None = None
    previous_summary: str = ""
    notes: tuple[str, ...] = ()
    """What was skipped or refused, and why."""
    refused: tuple[RefusedSet, ...] = ()
    """Sets that were not dispatched: to be corrected, issued again or dropped; a finalize is told all of them."""
    valid_agents: tuple[str, ...] = ()
    attempt: int = 0
    attempts: int = 0
    """Which replan this is, of how many (ruling E5)."""
    approved: bool = False
    """A person said to go on in spite of failures (ruling F3)."""
    inline_artifact_bodies: bool = False


class JobRun(Wire):
    """One attempt of one job, complete: everything its host needs to know."""

    job_id: str
    root_job_id: str
    parent_job_id: str | None = None
    delegation_id: str | None = None
    delegation_depth: int = 0
    task_id: str
    repo: str
    worker: Worker
    action: Action
    attempt: int = 1
    offer: int = 1
    """The same attempt is offered again, under a new number, after it was taken back (ruling B5)."""
    continuation: Continuation = Continuation.NONE
    prompt: Text
    """The instructions as they were given; a continuation's text is rendered from `brief` instead."""
    brief: ContinuationBrief | None = None
    guidance: tuple[str, ...] = ()
    """What people said for this attempt: instructions of a retry, answers to the leg's own questions (ruling F3)."""
    artifacts: tuple[str, ...] = ()
    artifact_digest: str | None = None
    """The delegating result's `artifact_body`, for a leg that names artifacts."""
    model: str | None = None
    effort: str | None = None
    phase: str | None = None
    timeout_seconds: float | None = None
    base: str = ""
    branch_deps: tuple[str, ...] = ()
    """Branches whose work this job must see, in merge order (rulings I1, I2)."""
    shared_worktree: str | None = None
    pull_request: int | None = None


class JobOutcome(Wire):
    """How an attempt ended. Small on purpose: the whole result is in the store under `result_digest`."""

    job_id: str
    attempt: int = 1
    state: JobState
    begun_at: float | None = None
    """When its host began it; None when it never did."""
    reason: str = ""
    decision: Decision | None = None
    summary: str = ""
    findings: str = ""
    """Rendered, redacted and capped: what a replan prompt quotes."""
    delegations: tuple[Delegation, ...] = ()
    human_questions: tuple[HumanQuestion, ...] = ()
    result_digest: str | None = None
    artifact_digest: str | None = None
    progress: str = ""
    """Digest of the verifiable side effects (ruling H3)."""
    usage: Usage = Usage()
    model: str | None = None
    """The model that was really used, when its program says so; of several, the one that used most tokens."""
    session: str | None = None
    branch: str | None = None
    head_sha: str | None = None
    pull_request: int | None = None
    touched_files: tuple[str, ...] = ()
    long_prompts: dict[str, LongPrompt] = {}
    """Prompts of delegations that were stored instead of sent, by leg."""
    conflict: str = ""
    """The branches this job depends on could not be merged: legs and files. Blocks the batch whatever the policy."""
    first: str = ""
    """What a person must type before it can end better; running it again at once would end the same (ruling B3)."""
    agents: tuple[Worker, ...] = ()
    """The agents routable on the repository; only when the result delegates (ruling C6)."""
    templates: tuple[str, ...] = ()
    """Registered agents whose template an ephemeral worker may name; only when the result delegates (ruling C6)."""
    notices: tuple[Notice, ...] = ()
