"""What goes over the wire, as the OpenAPI document declares it. Answers are written from rows and not checked again."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from activities.settings.model import RUNTIMES
from bridge.http.parameters import LARGEST
from bridge.operations.pipeline_runs import RunLine
from workflows.contract.models import Action, Decision
from workflows.policy.verbs import Verb
from workflows.tree.jobs import Continuation, JobState, TaskState
from workflows.tree.pauses import RoundKind
from workflows.tree.records import FailingRecord, QuestionRecord

_RUNTIME: JsonDict = {"enum": [*RUNTIMES, None]}


class Body(BaseModel):
    """A request body: unknown members are refused, nothing is converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Error(BaseModel):
    """Everything that goes wrong, in one shape (ruling J1)."""

    error: str = Field(description="What is wrong, in a sentence.")
    code: str = Field(description="The same for programs.")
    request_id: str = Field(description="The line of the audit log that tells of it.")


class AskRequest(Body):
    """What an agent is asked, and about which repository."""

    message: str = Field(min_length=1, json_schema_extra={"pattern": r"\S"}, examples=["Which module limits the rate?"])
    repo: str = Field(min_length=1, max_length=201, examples=["acme/shop"])
    model: str | None = Field(default=None, min_length=1, max_length=200)
    runtime: str | None = Field(
        default=None, min_length=1, max_length=32, json_schema_extra={"enum": [*RUNTIMES, None]}, examples=["runtime_a"]
    )
    effort: str | None = Field(default=None, min_length=1, max_length=64)


class AskAnswer(BaseModel):
    """The job that answers."""

    job_id: str = Field(examples=["job-0c5e2v7q9a3k"])


class ResumeRequest(Body):
    """What a person says to a pause (ruling F4)."""

    verb: str = Field(
        min_length=1,
        max_length=32,
        description="One of those the round names.",
        json_schema_extra={"enum": [str(each) for each in Verb]},
        examples=["answer"],
    )
    text: str = Field(default="", examples=["color: red"])
    round: int | None = Field(default=None, ge=1, le=LARGEST, description="Only if this is the round that waits.")
    digest: str | None = Field(default=None, max_length=64, description="Only if this is what the round asks.")
    partial: bool = Field(default=False, description="Questions without an answer are left so on purpose.")
    other: bool = Field(default=False, description="A text that is none of a question's choices is the answer.")


class ResumeAnswer(BaseModel):
    """What became of it."""

    job_id: str
    verb: str
    message: str
    applied: bool = Field(description="False: no worker is there; it is kept, and takes effect when one comes.")


class KillRequest(Body):
    """How a tree is ended (ruling G2)."""

    now: bool = Field(default=False, description="Also stop the agents that run.")


class KillAnswer(BaseModel):
    """The tree that is being ended, or, where it was blocked, is over now."""

    root_job_id: str
    over: bool
    unmerged_branches: list[str]


class RunRequest(Body):
    """What a run is given."""

    payload: dict[str, str] = Field(
        default={},
        description="32 entries, keys of 64 bytes, values of 32 KiB, 48 KiB of both together, at most.",
        json_schema_extra={"maxProperties": 32, "propertyNames": {"pattern": "^[a-z][a-z0-9_]{0,63}$"}},
        examples=[{"ticket": "SHOP-17"}],
    )


class RunAnswer(BaseModel):
    """The run that was started."""

    run_id: str = Field(examples=["prun-0c5e2v7q9a3k"])


class RunList(BaseModel):
    """A page of runs, newest first."""

    runs: list[RunLine]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


class Usage(BaseModel):
    """Tokens, as far as the runtime says."""

    input_tokens: int
    output_tokens: int


class JobSummary(BaseModel):
    """A job in a list."""

    job_id: str
    root_job_id: str
    parent_job_id: str | None
    delegation_id: str | None
    delegation_depth: int
    task_id: str
    repo: str
    agent: str
    ephemeral: bool
    runtime: str
    action: Action
    continuation: Continuation
    state: JobState
    attempt: int
    reason: str
    next: str = Field(description="What happens next, and the command that moves it.")
    decision: Decision | None
    summary: str
    model: str | None
    effort: str | None
    phase: str | None
    branch: str | None
    head_sha: str | None
    pull_request: int | None
    result_digest: str | None
    usage: Usage
    cost_usd: float
    price_assumed: bool
    queued_at: float
    started_at: float | None
    ended_at: float | None
    preflight_failed: str | None


class Round(BaseModel):
    """A pause, and all that is needed to end it (ruling F1)."""

    round_id: str
    coordinator_id: str
    number: int
    kind: RoundKind
    digest: str
    questions: list[QuestionRecord]
    failing: list[FailingRecord]
    verbs: list[str]
    commands: list[str]
    opened_at: float
    expires_at: float


class Links(BaseModel):
    """Where to look further."""

    self: str
    tree: str
    events: str
    temporal: str | None


class Job(JobSummary):
    """A job with its result (ruling J6)."""

    result: dict[str, Any] | None = Field(description="What is inside `service_result`.")
    observation: dict[str, Any] | None = Field(description="What was observed of its claims.")
    round: Round | None = Field(description="The round it waits in, while it does.")
    links: Links


class JobList(BaseModel):
    """A page of jobs, newest first."""

    jobs: list[JobSummary]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


class Task(BaseModel):
    """The unit of work a tree belongs to."""

    task_id: str
    root_job_id: str
    repo: str
    title: str
    state: TaskState
    reason: str
    next: str
    opened_at: float
    ended_at: float | None


class Spent(BaseModel):
    """What a tree has used so far."""

    jobs: int
    elapsed_seconds: float
    tokens: int
    cost_usd: float
    price_assumed: bool = Field(description="Some of the cost is a guess: a model is not in the price table.")


class Tree(BaseModel):
    """A whole tree."""

    task: Task
    jobs: list[JobSummary]
    bounds: dict[str, float]
    spent: Spent
    over: bool


class Event(BaseModel):
    """A lifecycle event (ruling B4)."""

    event_id: str
    seq: int
    job_id: str
    root_job_id: str
    kind: str
    at: float
    message: str
    data: dict[str, Any]


class EventList(BaseModel):
    """A page of events, oldest first."""

    events: list[Event]
    next_cursor: int | None = Field(description="`cursor` of the next page; null on the last one so far.")


class ReviewStatus(BaseModel):
    """What its author says; no gate reads it."""

    state: Literal["open", "closed"]
    grade: Literal["reported"]
    label: Literal["non_authoritative"]
    verdict: str | None


class ReviewNote(BaseModel):
    """A progress note."""

    author_asserted: str = Field(description="Who wrote it, as the caller says.")
    text: str
    at: float


class Review(BaseModel):
    """A review of a pull request that somebody says they are doing (spec: In-session review state)."""

    review_id: str
    type: Literal["review"]
    repo: str | None
    pull_request: int
    head_sha: str
    workflow: str
    opened_at: float
    closed_at: float | None
    review_status: ReviewStatus
    notes: list[ReviewNote]


class ReviewList(BaseModel):
    """A page of in-session reviews, newest first."""

    reviews: list[Review]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


class Health(BaseModel):
    """Alive."""

    status: Literal["ok"]
