"""Permission to command from a comment (ruling L5): the refusal's sentence, and the rate limit of refusals."""

from collections.abc import Collection

from workflows.github.commands import Kill, Resume, Retry, Said, Start, Status, Unknown
from workflows.policy.answers import Verb

MAY_COMMAND = frozenset({"admin", "maintain", "write"})
"""The collaborator's `permission` on GitHub; a custom role reports that of the role it is based on."""

MOST_REFUSALS = 5
"""Refusals posted on one thread in an hour (ruling L6)."""


def refusal(said: Said, permission: str, allowed: Collection[str]) -> str:
    """Return the reason for a refusal and an alternative; empty if the command is allowed. `allowed` is
    `[github].commands`.
    """
    if permission not in MAY_COMMAND:
        return (
            "only people who may write to this repository command the service, and your permission is"
            f" `{permission if permission.isalpha() else 'none'}`: ask one of them to write the comment"
        )
    if isinstance(said, Unknown):
        return _unknown(said, allowed)
    if said.word not in allowed:
        return (
            f"`/service {said.word}` is not allowed in comments here: type `{_elsewhere(said)}` on the command line,"
            f" or have `{said.word}` added to `commands` under `[github]` in the service's settings"
        )
    return _incomplete(said)


def silent(refused_in_last_hour: int) -> bool:
    """Return whether to skip this refusal's reply: the thread's limit of refusals per hour is used up."""
    return refused_in_last_hour >= MOST_REFUSALS


def _unknown(said: Unknown, allowed: Collection[str]) -> str:
    if said.nearest:
        return f"`/service` knows no such command: write `/service {said.nearest}`, if that is meant"
    known = ", ".join(f"`/service {each}`" for each in sorted(allowed))
    return f"`/service` knows no such command: here it takes {known or 'none'}"


def _elsewhere(said: Resume | Start | Kill | Retry | Status) -> str:
    """Return the equivalent command line, without repeating anything from the comment."""
    match said:
        case Resume():
            return "service resume JOB"
        case Start():
            return f"service agent {said.word} AGENT"
        case Kill():
            return "service job kill JOB"
        case Retry():
            return "service job retry JOB"
        case Status():
            return "service job list"


def _incomplete(said: Resume | Start | Kill | Retry | Status) -> str:
    match said:
        case Resume(verb=""):
            return f"the verb is missing: write `/service resume` and one of {', '.join(f'`{each}`' for each in Verb)}"
        case Start(agent="") | Start(text=""):
            return f"the agent or what it should do is missing: write `/service {said.word} AGENT` and the text behind"
        case Retry(job=""):
            return "the job is missing: write `/service retry JOB`"
        case _:
            return ""
