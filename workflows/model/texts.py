"""Texts that travel as they are when they are short, and else by their digest in the artifact store."""

from workflows.contract.models import Delegation
from workflows.model.wire import Wire


class Text(Wire):
    """A text inline when it is short, or by its digest in the artifact store."""

    inline: str | None = None
    digest: str | None = None


class LongPrompt(Wire):
    """A delegation's prompt that was too long to travel: what stands in the delegation is only its beginning."""

    digest: str
    folded: str
    """Digest of the text with white space folded: what the loop signature compares (ruling H1)."""


class RefusedSet(Wire):
    """Delegations that were not dispatched, complete, and the job that returned them."""

    job_id: str
    delegations: tuple[Delegation, ...]
    long_prompts: dict[str, str] = {}
    """Digests of the prompts that are too long to stand here, by leg."""
    left_out: int = 0
    """So many delegations there were that are not here, for they did not fit into the tree's memory (ruling B6)."""
