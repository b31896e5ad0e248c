"""A valid result of an agent, as values.

The JSON Schema and the contract's explanation are generated from these models, so the description of every field says
what an agent must know. They tolerate unknown keys because they cross the wire and outlive releases; the strict rules
live in `validate`, which reports every fault at once.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Entry = str | dict[str, JsonValue]
Finding = str | dict[str, JsonValue] | list[JsonValue]


class Decision(StrEnum):
    """What the agent concluded."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    BLOCKED = "blocked"
    IMPLEMENTED = "implemented"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def words(self) -> str:
        """Return the decision as a label."""
        words = {Decision.IMPLEMENTED: "changes made", Decision.CHANGES_REQUESTED: "changes requested"}
        return words.get(self, self.value)


class Action(StrEnum):
    """What a job is asked to do."""

    ASK = "ask"
    REVIEW = "review"
    IMPLEMENT = "implement"


class FailurePolicy(StrEnum):
    """What a failing leg does to its batch."""

    BLOCK_PARENT = "block_parent"
    CONTINUE = "continue"
    ESCALATE = "escalate"
    ESCALATE_HUMAN = "escalate_human"


class SynthesisRule(StrEnum):
    """How the outcomes of a batch are put together."""

    SUMMARY = "summary"
    VOTE = "vote"
    QUORUM = "quorum"
    VERIFY = "verify"


class Runtime(StrEnum):
    """The registered runtimes an ephemeral worker may name; `shell` is for registered agents only."""

    RUNTIME_A = "runtime_a"
    RUNTIME_B = "runtime_b"
    RUNTIME_C = "runtime_c"


class Tier(StrEnum):
    """The strength of a model: advice for choosing one, and a key of the price table. `standard` is the middle."""

    MECHANICAL = "mechanical"
    CHEAP = "cheap"
    STANDARD = "standard"
    DEEP = "deep"


class AutonomyPolicy(StrEnum):
    """How freely a worker may act in its worktree."""

    AUTO = "auto"
    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"


WRITE_POLICIES = frozenset({AutonomyPolicy.WORKSPACE_WRITE, AutonomyPolicy.DANGER_FULL_ACCESS})


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class HumanQuestion(_Frozen):
    """A question only a person can answer; it pauses the task."""

    id: Id = Field(description="Unique within the result.")
    prompt: str = Field(min_length=1, description="The question.")
    choices: tuple[str, ...] = Field(default=(), description="Suggested answers.")


class Ephemeral(_Frozen):
    """A throwaway worker, created for one child job and disposed of when it ends. It cannot delegate."""

    runtime: Runtime = Field(description="The runtime that drives the worker.")
    model: str | None = Field(default=None, description="Runtime-scoped model name, passed through as it is.")
    effort: str | None = Field(default=None, description="The worker's default effort.")
    template: str | None = Field(default=None, description="Agent-template id that seeds the worker's prompt.")
    role: str | None = Field(default=None, description="Human-readable role label.")
    capabilities: tuple[str, ...] = Field(default=(), description="Capabilities the worker advertises.")
    autonomy_policy: AutonomyPolicy = Field(
        default=AutonomyPolicy.READ_ONLY,
        description="Sandbox autonomy.",
    )


class Delegation(_Frozen):
    """A follow-up job for another agent. Exactly one of `agent` and `ephemeral` is set."""

    id: Id = Field(description="Stable and unique within the result; siblings name it in deps.")
    agent: str | None = Field(default=None, description="Name of a registered agent, never of a runtime.")
    ephemeral: Ephemeral | None = Field(default=None, description="An inline throwaway worker instead of an agent.")
    action: Action = Field(description="What the child job does.")
    prompt: str = Field(min_length=1, description="Instructions for the child job.")
    deps: tuple[Id, ...] = Field(default=(), description="Sibling ids that must succeed before this one runs.")
    failure_policy: FailurePolicy | None = Field(
        default=None, description="What its failure does; left out, block_parent, or an input to vote, quorum, verify."
    )
    synthesis_rule: SynthesisRule | None = Field(default=None, description="How outcomes are put together.")
    quorum: int | None = Field(
        default=None, ge=1, description="Approving children needed; required when synthesis_rule is quorum."
    )
    timeout: str | None = Field(default=None, description="Positive duration such as 30m or 1h30m.")
    retry: int = Field(default=0, ge=0, description="How often a failing child is run again.")
    worktree: str | None = Field(
        default=None,
        description="Legs that name the same share it; @base: begin at the base; @merge:ID: with leg ID's merge.",
    )
    artifacts: tuple[str, ...] = Field(
        default=(), description="Named artifact handles; the result must then set artifact_body."
    )
    fingerprint: str | None = Field(default=None, description="Legs with the same fingerprint are dispatched once.")
    model: str | None = Field(default=None, description="Model for this child; leave out for the runtime's default.")
    effort: str | None = Field(default=None, description="Effort for this child; overrides the worker's own.")
    phase: str | None = Field(default=None, description="Free label, echoed back in the continuation.")


class ServiceResult(_Frozen):
    """The one object every job ends with, under the key `service_result`."""

    decision: Decision = Field(description="What you concluded.")
    summary: str = Field(min_length=1, description="Brief outcome.")
    findings: tuple[Finding, ...] = Field(
        default=(), description="Free-form; objects may have keys such as title, severity, source_url."
    )
    changes_made: tuple[Entry, ...] = Field(
        default=(), description="What you changed; name the repo-relative file paths in each entry."
    )
    tests_run: tuple[Entry, ...] = Field(default=(), description="Only tests that were actually run.")
    needs: tuple[Entry, ...] = Field(
        default=(),
        description="Missing credentials, unclear scope, unavailable tools, failing services, decisions wanted.",
    )
    delegations: tuple[Delegation, ...] = Field(default=(), description="Follow-up child jobs; empty when none.")
    artifact_body: JsonValue = Field(
        default=None, description="Payload for delegated children; required when any delegation sets artifacts."
    )
    human_questions: tuple[HumanQuestion, ...] = Field(
        default=(), description="Only when progress is impossible without a person's decision; pauses the task."
    )


class Notice(BaseModel):
    """A notice of a job's end for its tree, before the tree gives it an id and a time (ruling B4)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    message: str
    data: dict[str, str | int | float | bool | list[str] | None] = {}
