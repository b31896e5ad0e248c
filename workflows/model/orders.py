"""People's orders to a running workflow, the same value from whatever interface they come."""

from enum import StrEnum

from workflows.model.wire import Wire

BY_HAND = "temporal"
"""The channel of messages from the Temporal web UI or its command line."""

SOMEBODY = "somebody"


_PLACES = {
    "cli": "in the terminal",
    "dashboard": "on the page",
    "comment": "on GitHub",
    "bridge": "over HTTP",
    "mcp": "over MCP",
    BY_HAND: "in Temporal",
}


def signature(actor: str, channel: str) -> str:
    """Return the actor and the channel as records show them: `ann, in the terminal` (ruling M2)."""
    return f"{actor}, {_PLACES[channel]}" if channel in _PLACES else f"{actor} ({channel})"


class StopReason(StrEnum):
    """The only reasons for which a tree or a pipeline's run may end an agent that a host has begun. A pause, a block, a
    finalize and a kill without `--now` take back only what no host has begun (ruling G2.stops).
    """

    KILLED = "killed at once"
    """`kill --now`, or a cancellation of the tree's workflow: by its pipeline's run, or in Temporal."""
    CANCELLED = "cancelled"
    """The workflow that waits for the agent was cancelled: by its killed tree, its pipeline's run, or in Temporal."""
    MOVED = "moved"
    """The agent's host is lost, and the attempt has moved to another (ruling Q5.claim)."""


class Kill(Wire):
    """An operator ends the tree (ruling G2)."""

    actor: str = SOMEBODY
    immediate: bool = False


class Cancel(Wire):
    """A person ends a pipeline's run. It names the run, so that a late order does not end the next one."""

    run_id: str = ""
    """Optional in messages sent by hand, which are addressed to the run's workflow."""
    actor: str = SOMEBODY


class ResumeOrder(Wire):
    """A person's answer to a pause (rulings F4, F6). People may also send it by hand in the Temporal web UI."""

    actor: str = SOMEBODY
    channel: str = BY_HAND
    """The interface from which the order came: `cli`, `bridge`, `dashboard`, `comment`, `temporal`."""
    job_id: str = ""
    """The coordinator's id, or the id of any job of the tree (ruling B1); empty means the only coordinator that
    waits.
    """
    verb: str
    text: str = ""
    """Answers, instructions, or a duration."""
    round: int | None = None
    """The round for which the order is meant; None means the open round."""
    digest: str = ""
    """The digest of the round that the person saw, or its first eight characters or more; empty accepts any."""
    request_id: str = ""
    """The idempotency key: a comment's id, an idempotency header, an update's id."""
    partial: bool = False
    """True if questions are left unanswered on purpose."""
    other: bool = False
    """True if the answer is deliberately a text outside the choices."""


class Retry(Wire):
    """An operator runs a job again (ruling D4)."""

    actor: str
    job_id: str
