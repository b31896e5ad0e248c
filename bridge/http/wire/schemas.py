"""The schemas of requests, and of responses that only HTTP has. The others stand beside their operations."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from activities.host.binding import LONGEST_REF
from activities.runtimes.table import RUNTIMES
from bridge.http.wire.parameters import DURATION_PATTERN, JOB_PATTERN, LARGEST
from bridge.operations.jobs.views import Event, JobSummary, Round
from bridge.operations.registry.reviews import ReviewView
from workflows.contract.size_limits import BOUNDS
from workflows.github.gate import GateState
from workflows.policy.answers import Verb
from workflows.policy.recipes import Recipe


class Body(BaseModel):
    """A request body: unknown members are refused, nothing is converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Error(BaseModel):
    """Everything that goes wrong, in one shape (ruling J1)."""

    error: str = Field(description="What is wrong, in a sentence.")
    code: str = Field(description="The same for programs.")
    request_id: str = Field(description="The line of the audit log that tells of it.")


class Delivered(BaseModel):
    """What came of a webhook's delivery."""

    says: str = Field(examples=["acme/shop is looked at"])


_BOTH: dict[str, Any] = {
    "required": ["pull_request", "issue"],
    "properties": {name: {"type": "integer"} for name in ("pull_request", "issue")},
}
Number = Annotated[int | None, Field(ge=1, le=LARGEST)]


class Belonging(Body):
    """What work begins from, how long it may take, and what it belongs to on GitHub, if anything (L1, O1, A10)."""

    model_config = ConfigDict(json_schema_extra={"not": _BOTH})

    pull_request: Number = Field(default=None, description="The work starts from its head.", examples=[7])
    issue: Number = Field(default=None, description="In place of a pull request.")
    base: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_REF,
        json_schema_extra={"pattern": r"\S"},
        description="The branch, tag or commit it starts from; else the pull request's head, or what is checked out.",
        examples=["main"],
    )
    timeout: str | None = Field(
        default=None,
        min_length=1,
        max_length=BOUNDS["timeout"].characters,
        json_schema_extra={"pattern": DURATION_PATTERN},
        description="How long each attempt of the root and of its continuations may take; of a pipeline, each stage.",
        examples=["1h30m"],
    )


class AskRequest(Belonging):
    """What an agent is asked, and about which repository."""

    message: str = Field(min_length=1, json_schema_extra={"pattern": r"\S"}, examples=["Which module limits the rate?"])
    repo: str = Field(min_length=1, max_length=BOUNDS["repo"].characters, examples=["acme/shop"])
    model: str | None = Field(default=None, min_length=1, max_length=BOUNDS["model"].characters)
    runtime: str | None = Field(
        default=None, min_length=1, max_length=32, json_schema_extra={"enum": [*RUNTIMES, None]}, examples=["runtime_a"]
    )
    effort: str | None = Field(default=None, min_length=1, max_length=BOUNDS["effort"].characters)


class AskAnswer(BaseModel):
    """The job that answers."""

    job_id: str = Field(examples=["job-0c5e2v7q9a3k"])


class OrchestrateRequest(Belonging):
    """A goal for a built-in recipe of several workers."""

    recipe: Annotated[Recipe, Field(strict=False)]
    goal: str = Field(min_length=1, json_schema_extra={"pattern": r"\S"}, examples=["Limit the rate per customer."])
    repo: str = Field(min_length=1, max_length=BOUNDS["repo"].characters, examples=["acme/shop"])
    runtimes: list[Annotated[str, Field(min_length=1, max_length=32)]] = Field(
        default=[], max_length=32, description="All that are configured when left out.", examples=[["runtime_a"]]
    )
    legs: int | None = Field(
        default=None, ge=1, le=LARGEST, description="How many parallel legs; a verifier takes none.", examples=[3]
    )


class OrchestrateAnswer(BaseModel):
    """The root of a recipe's tree."""

    job_id: str = Field(examples=["job-0c5e2v7q9a3k"])
    caveat: str = Field(description="What its result must be read with; empty when nothing.")


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


class MergeRequest(Body):
    """How a leg is merged into the branch of its task (ruling I5)."""

    then: list[Annotated[str, Field(json_schema_extra={"pattern": JOB_PATTERN})]] = Field(
        default=[], max_length=256, description="Legs of its tree to merge behind it, in order: all of them, or none."
    )
    anyway: bool = Field(default=False, description="Also what was decided against; recorded with who said so.")


class LeftOutLeg(BaseModel):
    """A leg whose work is not in the branch of the task, and every way to have it there or to do without."""

    leg: str
    job_id: str
    branch: str
    files: list[str] = Field(description="What it conflicts in.")
    says: str
    commands: list[str]


class MergeAnswer(BaseModel):
    """The branch of the task, the legs that are in it, and those that conflict with it."""

    task_branch: str
    head: str
    merged: list[str] = Field(description="By this call.")
    already: list[str] = Field(description="Before it.")
    left_out: list[LeftOutLeg] = []


class ResolveRequest(Body):
    """Who brings together what conflicts (ruling O6)."""

    agent: str | None = Field(
        default=None, min_length=1, max_length=64, description="Else the agent whose work conflicts, if it can."
    )


class ConflictingWork(BaseModel):
    """A leg whose work conflicts with what was dispatched before it."""

    leg: str
    branch: str
    against: list[str]
    files: list[str]


class ResolveAnswer(BaseModel):
    """The job that resolves it; `merge` takes its work into the branch of the task."""

    job_id: str
    root_job_id: str
    agent: str
    task_branch: str
    conflicts: list[ConflictingWork]


class DropRequest(Body):
    """How a leg's branch is removed."""

    force: bool = Field(default=False, description="Also when its commits are merged nowhere.")


class DroppedBranch(BaseModel):
    """A branch that was removed, and the commit it pointed at."""

    job_id: str
    branch: str
    head_sha: str
    merged: bool


class DropAnswer(DroppedBranch):
    """The branch that was removed; of a tree the first of them, with all of them."""

    root_job_id: str
    dropped: list[DroppedBranch]
    stays: str = Field(description="The branch of the task, where it alone has the work; else empty.")


class Gate(BaseModel):
    """Whether a tree's work is ready to be merged (ruling L10)."""

    state: GateState
    reasons: list[str] = Field(description="Each with the next command; none when it is ready.")
    head: str | None = Field(description="The commit that was judged.")


class PublishRequest(Body):
    """Where a tree's work is to go (ruling L9)."""

    base: str | None = Field(
        default=None,
        max_length=200,
        description="The branch that takes it; else that of the pull request it belongs to, or the default branch.",
    )


class RunRequest(Belonging):
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


class EventList(BaseModel):
    """A page of events, oldest first."""

    events: list[Event]
    next_cursor: int | None = Field(description="`cursor` of the next page; null on the last one so far.")


class ReviewList(BaseModel):
    """A page of in-session reviews, newest first."""

    reviews: list[ReviewView]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")


class Health(BaseModel):
    """Alive."""

    status: Literal["ok"] = "ok"
