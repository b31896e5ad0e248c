"""What people order a running workflow to do: the same value from whatever surface to the reducer."""

from workflows.model.wire import Wire

BY_HAND = "temporal"
"""The channel of what is sent from the Temporal web UI or its command line."""

SOMEBODY = "somebody"


def signed(actor: str, channel: str) -> str:
    """Who said it and where, as every record tells it (ruling M2)."""
    return f"{actor} ({channel})"


class Kill(Wire):
    """An operator ends the tree (ruling G2)."""

    actor: str = SOMEBODY
    immediate: bool = False


class Cancel(Wire):
    """Somebody ends a pipeline's run. An order for a run that is over must not end the one after it."""

    run_id: str = ""
    """The workflow is the run: who sends it by hand need not name it."""
    actor: str = SOMEBODY


class ResumeOrder(Wire):
    """What a person says to a pause (rulings F4, F6). Also what is sent by hand from the Temporal web UI."""

    actor: str = SOMEBODY
    channel: str = BY_HAND
    """Where it was said: `cli`, `bridge`, `dashboard`, `comment`, `temporal`."""
    job_id: str = ""
    """The coordinator's, or that of any job of the tree (ruling B1); empty takes the only one that waits."""
    verb: str
    text: str = ""
    """Answers, instructions, or a duration."""
    round: int | None = None
    """The round it is meant for; None takes the open one."""
    digest: str = ""
    """The round's digest as the person saw it, or its first eight characters or more; empty takes any."""
    request_id: str = ""
    """The same request twice acts once: a comment's id, an idempotency key, an update's id."""
    partial: bool = False
    """Questions are left unanswered on purpose."""
    other: bool = False
    """A text that is none of the choices is the answer."""


class Retry(Wire):
    """An operator runs a job again (ruling D4)."""

    actor: str
    job_id: str
