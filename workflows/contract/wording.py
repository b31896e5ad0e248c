"""The meaning of each allowed value, for the schema and the explanation (spec: the tables of values)."""

from collections.abc import Mapping
from enum import StrEnum

from workflows.contract.models import Action, AutonomyPolicy, Decision, FailurePolicy, Runtime, SynthesisRule, Tier

MEANINGS: Mapping[type[StrEnum], Mapping[str, str]] = {
    Decision: {
        Decision.APPROVED: "a review found no blocking issues, or found nothing to flag",
        Decision.CHANGES_REQUESTED: "a review found issues to fix before merge",
        Decision.BLOCKED: "work cannot continue without human input or an external change",
        Decision.IMPLEMENTED: "the requested implementation work was completed",
        Decision.FAILED: "the attempted action errored or could not complete",
        Decision.SKIPPED: "the task itself had no work to do; cannot carry delegations",
    },
    Action: {
        Action.ASK: "answer a question, read-only",
        Action.REVIEW: "judge work, read-only",
        Action.IMPLEMENT: "change files, in a branch of its own",
    },
    FailurePolicy: {
        FailurePolicy.BLOCK_PARENT: "the task is blocked (the default)",
        FailurePolicy.CONTINUE: "only the jobs that depend on it are skipped",
        FailurePolicy.ESCALATE: "you are told every outcome and decide",
        FailurePolicy.ESCALATE_HUMAN: "the task pauses for a person's decision",
    },
    SynthesisRule: {
        SynthesisRule.SUMMARY: "the summaries are merged (the default)",
        SynthesisRule.VOTE: "every child must approve, else the task is blocked",
        SynthesisRule.QUORUM: "at least `quorum` children must approve, else the task is blocked",
        SynthesisRule.VERIFY: "this child's decision is the verdict: approved or implemented passes, else you replan",
    },
    AutonomyPolicy: {
        AutonomyPolicy.AUTO: "the runtime's own default, no write promised",
        AutonomyPolicy.READ_ONLY: "reads only (the default)",
        AutonomyPolicy.WORKSPACE_WRITE: "edits files, runs no shell commands unattended",
        AutonomyPolicy.DANGER_FULL_ACCESS: "edits files and runs commands unattended",
    },
    Runtime: {},
}

TIERS: Mapping[Tier, str] = {
    Tier.MECHANICAL: "the smallest model",
    Tier.CHEAP: "a small, fast model",
    Tier.STANDARD: "leave model out, and the runtime's default applies",
    Tier.DEEP: "a strong model, for hard or quorum-critical jobs",
}
"""Advice for choosing a model; not a value of any field (spec: advisory tiers)."""
