"""The content of a valid pipeline file, as values (ruling K1)."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from workflows.contract.models import Action, Decision, Ephemeral
from workflows.model.wire import Wire

SUCCESS = (Decision.APPROVED, Decision.IMPLEMENTED, Decision.SKIPPED)
"""Decisions of a successful agent stage, unless its definition says otherwise (spec: rules for skipped, 5)."""

MAY_SUCCEED = (*SUCCESS, Decision.CHANGES_REQUESTED)
"""Decisions that a definition may accept; those that fail or block a job are excluded (ruling A11)."""


class StageKind(StrEnum):
    """What a stage runs."""

    SHELL = "shell"
    AGENT = "agent"


class Schedule(Wire):
    """When a pipeline runs: by `cron` in a time zone, or every `interval`."""

    cron: str | None = None
    interval: str | None = None
    jitter: str | None = None
    timezone: str | None = None


class _Stage(Wire):
    id: str
    needs: tuple[str, ...] = ()
    timeout: str | None = None
    retry: int = 0
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Labels that the stage requires or prefers of its host (ruling Q4)."""


class ShellStage(_Stage):
    """A command, run in a worktree of its own."""

    kind: Literal[StageKind.SHELL] = StageKind.SHELL
    command: tuple[str, ...]
    env: dict[str, str] = {}


class AgentStage(_Stage):
    """A delegation tree for an agent; `timeout` applies to each run of its first agent."""

    kind: Literal[StageKind.AGENT] = StageKind.AGENT
    agent: str | None = None
    ephemeral: Ephemeral | None = None
    action: Action
    prompt: str
    model: str | None = None
    effort: str | None = None
    pull_request: int | None = None
    issue: int | None = None
    """The pull request or issue of the stage's tree, if it is not the run's (ruling L1)."""
    success: tuple[Decision, ...] = SUCCESS


Stage = Annotated[ShellStage | AgentStage, Field(discriminator="kind")]


class Definition(Wire):
    """A whole pipeline file."""

    name: str
    repo: str | None = None
    base: str | None = None
    """The branch, tag or commit from which each run starts; None means the checked-out commit (ruling O1)."""
    enabled: bool = True
    schedule: Schedule | None = None
    stages: tuple[Stage, ...]
