"""People's orders to a running workflow: one value from every surface to the reducer."""

from enum import StrEnum

from workflows.model.wire import Wire

BY_HAND = "temporal"
"""The channel of messages from the Temporal web UI or its command line."""

SOMEBODY = "somebody"


def signature(actor: str, channel: str) -> str:
    """Return the actor and the channel, as every record shows them (ruling M2)."""
    return f"{actor} ({channel})"


class StopReason(StrEnum):
    """The reasons for which a tree or a pipeline's run may end an agent that a host has begun. There is no other: a
    pause, a block, a finalize and a kill without `--now` take back only what no host has begun (ruling G2.stops).
    """

    KILLED = "killed at once"
    """`kill --now`, or a cancellation of the tree's workflow: by its pipeline's run, or in Temporal."""
    CANCELLED = "cancelled"
    """The workflow that waits for it was cancelled: by its killed tree, its pipeline's run, or in Temporal."""
    MOVED = "moved"
    """Its host is lost, and the attempt has moved (ruling Q5.claim)."""


class Kill(Wire):
    """An operator ends the tree (ruling G2)."""

    actor: str = SOMEBODY
    immediate: bool = False


class Cancel(Wire):
    """A person ends a pipeline's run. A late order must not end the run after it."""

    run_id: str = ""
    """Optional when sent by hand: the workflow is the run."""
    actor: str = SOMEBODY


class ResumeOrder(Wire):
    """A person's answer to a pause (rulings F4, F6). Also the message sent by hand from the Temporal web UI."""

    actor: str = SOMEBODY
    channel: str = BY_HAND
    """The surface from which the order came: `cli`, `bridge`, `dashboard`, `comment`, `temporal`."""
    job_id: str = ""
    """The coordinator's, or any job of the tree (ruling B1); empty means the only one that waits."""
    verb: str
    text: str = ""
    """Answers, instructions, or a duration."""
    round: int | None = None
    """The round for which the order is meant; None means the open round."""
    digest: str = ""
    """The round's digest as the person saw it, or its first eight characters or more; empty accepts any."""
    request_id: str = ""
    """The idempotency key: a comment's id, an idempotency header, an update's id."""
    partial: bool = False
    """True if questions are left unanswered on purpose."""
    other: bool = False
    """True if a text outside the choices is the answer."""


class Retry(Wire):
    """An operator runs a job again (ruling D4)."""

    actor: str
    job_id: str
