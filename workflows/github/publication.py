"""The publication of a tree's work: a branch and its pull request, as stored in the fact's row (ruling L9)."""

from workflows.model.wire import Wire

OURS = "service/"
"""The prefix of our branches; no other branch is ever pushed."""

BY_ITSELF = "[github].publish"
"""The actor of a publication that the settings request and no person."""

REMEMBERED = 4
"""Digests of our latest texts that are kept."""


class Publication(Wire):
    """A request to publish a job's work, and its progress."""

    job_id: str
    actor: str
    base: str = ""
    """The requested base branch; empty: it is found."""
    commit: str = ""
    """The last pushed commit."""
    draft: bool = False
    """True if we created it as a draft, and have not marked it ready since."""
    no_drafts: bool = False
    """True if the repository does not support drafts."""
    said: tuple[str, ...] = ()
    """Digests of texts we wrote, or were about to write: any other text is a person's."""
    into: str = ""
    """The base branch on GitHub, which people may change."""
    state: str = ""
    """The state of the pull request when last seen: open, draft, closed, merged."""

    def about_to_say(self, digest: str) -> "Publication":
        """Record a text's digest before posting it, so that the service recognises its own text after a crash in
        between.
        """
        said = tuple(each for each in self.said if each != digest)
        return self.model_copy(update={"said": (*said, digest)[-REMEMBERED:]})
