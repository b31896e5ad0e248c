"""Who may command the service in a comment, and which commands (ruling L5); the texts of refusals (ruling L6)."""

from collections.abc import Collection

from workflows.github.commands import (
    CommentCommand,
    KillCommand,
    ResumeCommand,
    RetryCommand,
    StartCommand,
    StatusCommand,
    UnknownCommand,
)
from workflows.model.wire import Wire
from workflows.policy.answers import Verb

ALLOWED = ("resume", "status")
"""The default of `[github].commands`."""

MAY_COMMAND = frozenset({"admin", "maintain", "write"})
"""The values of a collaborator's `permission` on GitHub that allow commands; a custom role reports the one of the role
it is based on.
"""

MOST_REFUSALS = 5
"""Refusals posted on one thread in an hour (ruling L6)."""


class Refused(Wire):
    """Refused commands of a comment: a sentence for each, and corrected command lines that the service suggests."""

    why: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    """The comment line that each sentence is about; empty for strangers."""
    stranger: bool = False
    """True if the author may give no command at all."""
    instead: tuple[str, ...] = ()


def refusal_reason(command: CommentCommand, permission: str, allowed: Collection[str]) -> str:
    """Return the reason for a refusal and an alternative; empty if the command is allowed. `allowed` is
    `[github].commands`.
    """
    if permission not in MAY_COMMAND:
        return (
            "only people who may write to this repository command the service, and your permission is"
            f" `{permission if permission.isalpha() else 'none'}`: ask one of them to write the comment"
        )
    if isinstance(command, UnknownCommand):
        return _why_unknown(command, allowed)
    if command.word not in allowed:
        return (
            f"`/service {command.word}` is not allowed in comments here: type `{_elsewhere(command)}` on the command"
            f" line, or have `{command.word}` added to `commands` under `[github]` in the service's settings"
        )
    return _why_incomplete(command)


def silent(refused_in_last_hour: int) -> bool:
    """Return whether to skip the reply to a refused command, because the thread's limit of refusals per hour is
    reached.
    """
    return refused_in_last_hour >= MOST_REFUSALS


def _why_unknown(command: UnknownCommand, allowed: Collection[str]) -> str:
    if command.nearest:
        return f"`/service` knows no such command: write `/service {command.nearest}`, if that is meant"
    known = ", ".join(f"`/service {word}`" for word in sorted(allowed))
    return f"`/service` knows no such command: here it takes {known or 'none'}"


def _elsewhere(command: ResumeCommand | StartCommand | KillCommand | RetryCommand | StatusCommand) -> str:
    """Return the equivalent command of the command line, without text from the comment."""
    match command:
        case ResumeCommand():
            return "service resume JOB"
        case StartCommand():
            return f"service agent {command.word} AGENT"
        case KillCommand():
            return "service job kill JOB"
        case RetryCommand():
            return "service job retry JOB"
        case StatusCommand():
            return "service job list"


def _why_incomplete(command: ResumeCommand | StartCommand | KillCommand | RetryCommand | StatusCommand) -> str:
    match command:
        case ResumeCommand(verb=""):
            return f"the verb is missing: write `/service resume` and one of {', '.join(f'`{verb}`' for verb in Verb)}"
        case StartCommand(agent="") | StartCommand(text=""):
            return (
                f"the agent or what it should do is missing: write `/service {command.word} AGENT` and the text behind"
            )
        case RetryCommand(job=""):
            return "the job is missing: write `/service retry JOB`"
        case _:
            return ""
