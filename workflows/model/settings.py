"""The settings of a tree, frozen at its start (ruling K4): later edits never affect it.

The settings file and its format are in `activities/settings`.
"""

from pydantic import BaseModel, ConfigDict, Field

from workflows.contract.models import Runtime


class Snapshot(BaseModel):
    """Frozen settings; unknown keys, which other releases may have written, are ignored. Only the file format is
    strict.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


class Bounds(Snapshot):
    """The hard bounds of the spec's limits table. Zero means unlimited for tokens and dollars."""

    max_delegation_depth: int = Field(default=8, ge=1)
    max_delegation_total_jobs: int = Field(default=64, ge=1)
    max_delegation_wall_clock_seconds: float = Field(default=7200.0, gt=0)
    max_delegation_token_budget: int = Field(default=0, ge=0)
    max_delegation_cost_usd: float = Field(default=0.0, ge=0)
    max_delegation_width: int = Field(default=16, ge=1)
    max_delegation_non_progress_streak: int = Field(default=2, ge=1)
    max_verify_replan_attempts: int = Field(default=2, ge=0)


class Timeouts(Snapshot):
    """Seconds per phase. None means not set; a phase is unbounded if nothing else sets its timeout (spec: timeout
    precedence).
    """

    default_plan_timeout: float | None = None
    default_implement_timeout: float | None = None
    default_review_timeout: float | None = None
    default_gate_timeout: float | None = None
    default_repair_timeout: float | None = None
    default_delegation_timeout: float | None = None


class RuntimeDefaults(Snapshot):
    """The defaults of `[runtimes.<name>]`, for delegations and agents that set no model or effort."""

    default_model: str | None = None
    default_effort: str | None = None
    tiers: dict[str, str] = {}
    """The model that each tier's word stands for."""


MERGE_LINE = "line"


class TreeSettings(Snapshot):
    """All settings that the rules of a tree read."""

    bounds: Bounds = Bounds()
    timeouts: Timeouts = Timeouts()
    runtimes: dict[str, RuntimeDefaults] = {}
    configured_runtimes: tuple[str, ...] = tuple(each.value for each in Runtime)
    """Runtimes that an ephemeral worker may name on this service (ruling C6), in the order in which recipes use
    them.
    """
    escalation_ttl_seconds: float = 86_400.0
    escalation_handle: str | None = None
    inline_artifact_bodies: bool = False
    merge: str = "ask"
    """`line`: the task's branch is moved to the tree's line once the tree ends done and its gate passes (O6)."""
    prices: dict[str, tuple[float, float]] = {}
    """Overrides by model pattern: dollars per million input and output tokens (ruling K5)."""
    by_hand: bool = True
    """True if messages sent to Temporal by hand are accepted (ruling N1)."""
