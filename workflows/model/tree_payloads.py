"""Payloads of events about a tree's growth, spend and end. Others: `job_payloads`, `people_payloads`."""

from typing import Literal

from workflows.model.payload import Payload


class TreeStartedPayload(Payload):
    """The start of a tree: its task, agent and action."""

    task: str
    agent: str
    action: str


class TreeEndedPayload(Payload):
    """A tree is closed; a blocked one can be opened again."""

    state: str
    jobs: int
    tokens: int
    cost_usd: float
    cost_assumed: bool
    elapsed: float


class JobQueuedPayload(Payload):
    """A job, or a new attempt of it, is queued."""

    leg: str | None
    agent: str
    action: str
    attempt: int


class JobBegunPayload(Payload):
    """The host has begun an attempt."""

    attempt: int
    runtime: str
    model: str | None


class JobEndedPayload(Payload):
    """A job has ended, or never ran. Contains the use of all its attempts."""

    attempt: int
    state: str
    decision: str | None
    tokens: int
    cost_usd: float
    cost_assumed: bool


class AttemptPayload(Payload):
    """An attempt of the job."""

    attempt: int


class BatchSettledPayload(Payload):
    """Every leg of a batch has ended. Contains their states and the rules' verdict."""

    coordinator: str
    verdict: Literal["proceed", "block", "replan", "stopped", "ending"]
    reason: str
    legs: list[str]
    """`<leg>: <state>`, in the order of the result."""


class ContinuationPayload(Payload):
    """A coordinator runs again: the job before it, and the reason."""

    after: str
    flavour: str
    notes: list[str]


class PreflightPayload(Payload):
    """Workers of a set are not available; nothing of it is dispatched (ruling C6)."""

    faults: list[str]
    """One line per fault; it says if a name is a runtime's."""
    valid_agents: list[str]
    alternative: str
    """An ephemeral worker that would do instead."""


class WalltimePayload(Payload):
    """The wall-clock budget is used up."""

    elapsed: float
    budget: float


class TokensPayload(Payload):
    """The token budget is used up."""

    tokens: int
    budget: int


class DollarsPayload(Payload):
    """The dollar budget is used up."""

    cost_usd: float
    budget: float
    price_assumed: bool = False


class WidthPayload(Payload):
    """One result has more delegations than the cap."""

    width: int
    cap: int


class DepthPayload(Payload):
    """A job at the depth cap delegates."""

    depth: int
    cap: int


class JobBudgetPayload(Payload):
    """New jobs would cross the per-root job budget."""

    new_jobs: int
    jobs: int
    cap: int


class LoopPayload(Payload):
    """A rung of the ladder, and which of its two signals climbed it (rulings H2, H3)."""

    signal: Literal["signature", "progress"]
    streak: int


class KillPayload(Payload):
    """An operator ends the tree. Contains the jobs that never start, those asked back from their host, and those
    that run on.
    """

    actor: str
    immediate: bool
    cancelled: list[str]
    asked_back: list[str]
    running: list[str]


class FinalizePayload(Payload):
    """The tree's last job, and the kind of event that caused it."""

    cause: str
    reason: str


class DelegationsPayload(Payload):
    """Delegations that are not dispatched, by id."""

    delegations: list[str]


class BudgetWarningPayload(Payload):
    """80 % of a budget is used (ruling C4)."""

    of: Literal["jobs", "wall_clock", "tokens", "cost_usd"]
    used: float
    budget: float


class ReplansPayload(Payload):
    """Every replan attempt of the root is used (ruling E5)."""

    attempts: int
