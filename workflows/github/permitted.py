"""Who may command from a comment, and what (ruling L5): the sentence that refuses, and when even that is left out."""

from collections.abc import Collection

from workflows.github.said import Kill, Resume, Retry, Said, Start, Status, Unknown
from workflows.policy.verbs import Verb

MAY_COMMAND = frozenset({"admin", "maintain", "write"})
"""The collaborator's `permission`, as GitHub says it; a custom role has that of the role it is based on."""

MOST_REFUSALS = 5
"""So many refusals an hour are said on one thread (ruling L6)."""


def refusal(said: Said, permission: str, allowed: Collection[str]) -> str:
    """Why this is not carried out, and what to do instead; empty when it may be. `allowed` is `[github].commands`."""
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
    """As many refusals as an hour takes have been said on this thread: the next one is not."""
    return refused_in_last_hour >= MOST_REFUSALS


def _unknown(said: Unknown, allowed: Collection[str]) -> str:
    if said.nearest:
        return f"`/service` knows no such command: write `/service {said.nearest}`, if that is meant"
    known = ", ".join(f"`/service {each}`" for each in sorted(allowed))
    return f"`/service` knows no such command: here it takes {known or 'none'}"


def _elsewhere(said: Resume | Start | Kill | Retry | Status) -> str:
    """The same on the command line; nothing of what was written is repeated."""
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
