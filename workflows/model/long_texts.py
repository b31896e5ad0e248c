"""Texts that travel inline if they are short, else by their digest in the artifact store."""

from workflows.contract.models import Delegation
from workflows.model.wire import Wire


class Text(Wire):
    """A text, inline or by its digest in the artifact store."""

    inline: str | None = None
    digest: str | None = None


class LongPrompt(Wire):
    """A delegation's prompt that is too long to travel; the delegation itself contains only its beginning."""

    digest: str
    folded: str
    """Digest of the text with white space folded, for the loop signature (ruling H1)."""


class RefusedSet(Wire):
    """All delegations of a set that was not dispatched, and the job that returned them."""

    job_id: str
    delegations: tuple[Delegation, ...]
    long_prompts: dict[str, str] = {}
    """Digests of the prompts that are too long to travel with this set, by leg."""
    left_out: int = 0
    """Number of delegations left out because the tree's state has no room for them (ruling B6)."""
