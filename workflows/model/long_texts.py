"""Texts that travel inline if short, else by their digest in the artifact store."""

from workflows.contract.models import Delegation
from workflows.model.wire import Wire


class Text(Wire):
    """A text, inline or by its digest in the artifact store."""

    inline: str | None = None
    digest: str | None = None


class LongPrompt(Wire):
    """A delegation's prompt that is too long to travel: the delegation contains only its beginning."""

    digest: str
    folded: str
    """Digest of the text with white space folded, for the loop signature (ruling H1)."""


class RefusedSet(Wire):
    """Delegations that were not dispatched, complete, and the job that returned them."""

    job_id: str
    delegations: tuple[Delegation, ...]
    long_prompts: dict[str, str] = {}
    """Digests of prompts that are too long for this set, by leg."""
    left_out: int = 0
    """Number of delegations omitted because they exceed the tree's memory (ruling B6)."""
