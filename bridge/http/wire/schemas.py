"""The schemas of requests, and of responses that only HTTP has. Other responses are defined beside their operations."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from activities.host.base import LONGEST_REF
from activities.runtimes.known_runtimes import PROGRAMS, RUNTIMES
from bridge.http.wire.parameters import DURATION_PATTERN, JOB_PATTERN, LARGEST
from bridge.operations.jobs.views import Event, JobSummary, ListedTree, Round
from bridge.operations.registry.reviews import ReviewView
from workflows.contract.size_limits import BOUNDS
from workflows.github.merge_gate import GateState
from workflows.policy.answers import Verb
from workflows.policy.recipes import Recipe


class Body(BaseModel):
    """A request body. Unknown members are refused, and values are not converted to other types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Error(BaseModel):
    """The body of every error response (ruling J1)."""

    error: str = Field(description="A sentence that says what is wrong.")
    code: str = Field(description="The kind of error, for programs.")
    request_id: str = Field(description="The request's id in the audit log.")


class Delivered(BaseModel):
    """The outcome of a webhook delivery."""

    says: str = Field(examples=["acme/shop will be read"])


_BOTH: dict[str, Any] = {
    "required": ["pull_request", "issue"],
    "properties": {name: {"type": "integer"} for name in ("pull_request", "issue")},
}
Number = Annotated[int | None, Field(ge=1, le=LARGEST)]


class WorkRequest(Body):
    """The base, the timeout and the pull request or issue of new work (L1, O1, A10)."""

    model_config = ConfigDict(json_schema_extra={"not": _BOTH})

    pull_request: Number = Field(
        default=None, description="The pull request the work belongs to; it starts from its head.", examples=[7]
    )
    issue: Number = Field(default=None, description="The issue the work belongs to, instead of a pull request.")
    base: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_REF,
        json_schema_extra={"pattern": r"\S"},
        description="The branch, tag or commit it starts from; by default the pull request's head, else HEAD.",
        examples=["main"],
    )
    timeout: str | None = Field(
        default=None,
        min_length=1,
        max_length=BOUNDS["timeout"].characters,
        json_schema_extra={"pattern": DURATION_PATTERN},
        description="The timeout of each attempt of the root and its continuations; of a pipeline, of each stage.",
        examples=["1h30m"],
    )


class TaskRequest(WorkRequest):
    """The options of every new tree, beside its message (C4)."""

    budget: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="The most the tree may cost in dollars; at most the setting `orchestrate.max_delegation_cost_usd`.",
        examples=[5],
    )


class AskRequest(TaskRequest):
    """A question to an agent about a repository."""

    message: str = Field(min_length=1, json_schema_extra={"pattern": r"\S"}, examples=["Which module limits the rate?"])
    repo: str = Field(min_length=1, max_length=BOUNDS["repo"].characters, examples=["acme/shop"])
    model: str | None = Field(default=None, min_length=1, max_length=BOUNDS["model"].characters)
    runtime: str | None = Field(
        default=None,
        min_length=1,
        max_length=32,
        json_schema_extra={"enum": [*RUNTIMES, *PROGRAMS, None]},
        description="A runtime, or the name of the program that drives it.",
        examples=["runtime_a"],
    )
    effort: str | None = Field(default=None, min_length=1, max_length=BOUNDS["effort"].characters)


class AskAnswer(BaseModel):
    """The job that was started."""

    job_id: str = Field(examples=["job-0c5e2v7q9a3k"])


class OrchestrateRequest(TaskRequest):
    """A goal for a built-in recipe of several workers."""

    recipe: Annotated[Recipe, Field(strict=False)]
    goal: str = Field(min_length=1, json_schema_extra={"pattern": r"\S"}, examples=["Limit the rate per customer."])
    repo: str = Field(min_length=1, max_length=BOUNDS["repo"].characters, examples=["acme/shop"])
    runtimes: list[Annotated[str, Field(min_length=1, max_length=32)]] = Field(
        default=[], max_length=32, description="By default all that are configured.", examples=[["runtime_a"]]
    )
    legs: int | None = Field(
        default=None,
        ge=1,
        le=LARGEST,
        description="The number of parallel legs; not for the verifier recipe.",
        examples=[3],
    )


class OrchestrateAnswer(BaseModel):
    """The root of a recipe's tree."""

    job_id: str = Field(examples=["job-0c5e2v7q9a3k"])
    caveat: str = Field(description="A caveat about the result; empty without one.")


class ResumeRequest(Body):
    """A person's answer or decision for a pause (ruling F4)."""

    verb: str = Field(
        min_length=1,
        max_length=32,
        description="One of the round's verbs.",
        json_schema_extra={"enum": [str(verb) for verb in Verb]},
        examples=["answer"],
    )
    text: str = Field(default="", examples=["color: red"])
    round: int | None = Field(default=None, ge=1, le=LARGEST, description="Refuse the order if another round is open.")
    digest: str | None = Field(
        default=None, max_length=64, description="Refuse the order if the round's questions have changed."
    )
    partial: bool = Field(default=False, description="Accept an answer that leaves questions open.")
    other: bool = Field(default=False, description="Accept an answer that is not one of the choices.")


class ResumeAnswer(BaseModel):
    """The outcome of an answer or decision for a pause."""

    job_id: str
    verb: str
    message: str
    applied: bool = Field(
        description="False if no worker took it in time: the order is kept, and takes effect when one does."
    )


class KillRequest(Body):
    """How a tree is ended (ruling G2)."""

    now: bool = Field(default=False, description="Also stop running agents.")


class KillAnswer(BaseModel):
    """The tree that is being ended or, if it was blocked, has ended."""

    root_job_id: str
    over: bool
    unmerged_branches: list[str]


class MergeRequest(Body):
    """How a leg is merged into the branch of its task (ruling I5)."""

    then: list[Annotated[str, Field(json_schema_extra={"pattern": JOB_PATTERN})]] = Field(
        default=[],
        max_length=256,
        description="Further legs of its tree to merge after it, in this order: all or none.",
    )
    anyway: bool = Field(default=False, description="Merge even what a decision is against; this is recorded.")


class LeftOutLeg(BaseModel):
    """A leg that is not in the task's branch, and the commands that merge or drop it."""

    leg: str
    job_id: str
    branch: str
    files: list[str] = Field(description="The files with conflicts.")
    says: str
    commands: list[str]


class MergeAnswer(BaseModel):
    """The task's branch, the legs that are merged into it, and those that conflict with it."""

    task_branch: str
    head: str
    merged: list[str] = Field(description="Legs that this call merged.")
    already: list[str] = Field(description="Legs that were merged before.")
    left_out: list[LeftOutLeg] = []


class ResolveRequest(Body):
    """The agent that resolves conflicts (ruling O6)."""

    agent: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="By default one whose work conflicts.",
    )


class ConflictingWork(BaseModel):
    """A leg whose work conflicts with legs that were dispatched before it."""

    leg: str
    branch: str
    against: list[str]
    files: list[str]


class ResolveAnswer(BaseModel):
    """The job that resolves the conflicts; `merge` is the command that merges it into the task's branch."""

    job_id: str
    root_job_id: str
    agent: str
    task_branch: str
    conflicts: list[ConflictingWork]


class LineComment(Body):
    """A comment on a line of a diff."""

    path: str = Field(min_length=1, max_length=4096, description="The file, as the diff names it.")
    line: int = Field(ge=1, le=10**9, description="The line's number in that file.")
    side: Literal["new", "old"] = Field(default="new", description="`old` for a line that the diff removes.")
    text: str = Field(min_length=1, max_length=16_000)


class ReviseRequest(Body):
    """A person's comments on a diff."""

    text: str = Field(default="", max_length=100_000, description="About the whole of it.")
    comments: list[LineComment] = Field(default=[], max_length=200)
    head: str = Field(default="", max_length=64, description="The commit that was read; another one is refused.")
    whole_tree: bool = Field(default=False, description="It is about all work of the job's tree.")
    agent: str | None = Field(default=None, min_length=1, max_length=64, description="By default the job's own.")


class ReviewRequest(Body):
    """The agent that reviews the task's unreviewed commits (ruling L10)."""

    agent: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="By default one that reviewed it before.",
    )


class DropRequest(Body):
    """How a leg's branch is removed."""

    force: bool = Field(default=False, description="Remove it even if its commits are not merged.")


class DroppedBranch(BaseModel):
    """A branch that was removed, and the commit it pointed at."""

    job_id: str
    branch: str
    head_sha: str
    merged: bool


class DropAnswer(DroppedBranch):
    """The removed branch; for a tree, the first removed branch and the list of all."""

    root_job_id: str
    dropped: list[DroppedBranch]
    stays: str = Field(description="The task's branch if it stays, because only it has the work; else empty.")


class Gate(BaseModel):
    """The merge gate's verdict on a tree's work, with its reasons (ruling L10)."""

    state: GateState
    reasons: list[str] = Field(description="Each with the next command; empty when the work is ready.")
    head: str | None = Field(description="The commit that was judged.")
    unseen: list[str] = Field(description="Reviewing jobs that have not seen all of that commit.")


class PublishRequest(Body):
    """The base branch for publishing (ruling L9)."""

    base: str | None = Field(
        default=None,
        max_length=200,
        description="The base branch; by default that of the pull request it belongs to, else the default branch.",
    )


class RunRequest(WorkRequest):
    """The input of a run."""

    payload: dict[str, str] = Field(
        default={},
        description="At most 32 entries, keys of 64 bytes, values of 32 KiB, 48 KiB of keys and values together.",
        json_schema_extra={"maxProperties": 32, "propertyNames": {"pattern": "^[a-z][a-z0-9_]{0,63}$"}},
        examples=[{"ticket": "SHOP-17"}],
    )


class RunAnswer(BaseModel):
    """The run that was started."""

    run_id: str = Field(examples=["prun-0c5e2v7q9a3k"])


class Links(BaseModel):
    """Addresses of pages about the job."""

    self: str
    tree: str
    events: str
    temporal: str | None


class Job(JobSummary):
    """A job with its result (ruling J6)."""

    result: dict[str, Any] | None = Field(description="The content of `service_result`.")
    observation: dict[str, Any] | None = Field(description="Which of its claims the diff shows.")
    round: Round | None = Field(description="The open round it waits in.")
    links: Links


class JobList(BaseModel):
    """A page of jobs, newest first."""

    jobs: list[JobSummary]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


class TreeList(BaseModel):
    """A page of trees, newest first."""

    trees: list[ListedTree]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


class EventList(BaseModel):
    """A page of events, oldest first."""

    events: list[Event]
    next_cursor: int | None = Field(description="`cursor` of the next page; null on the last one so far.")


class ReviewList(BaseModel):
    """A page of in-session reviews, newest first."""

    reviews: list[ReviewView]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


class Health(BaseModel):
    """The service is alive."""

    status: Literal["ok"] = "ok"
