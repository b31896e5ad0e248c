"""What is published of a tree: a branch and its pull request, as the row of its fact keeps it (ruling L9)."""

from workflows.model.wire import Wire

OURS = "service/"
"""What every branch of ours begins with; no other is ever pushed."""

BY_ITSELF = "[github].publish"
"""The actor, where the settings wish it and nobody asked."""

REMEMBERED = 4
"""So many of our own latest texts are known again."""


class Publication(Wire):
    """Who wants which job's work published, and how far that is."""

    job_id: str
    actor: str
    base: str = ""
    """The branch that is to take the work, as somebody said; empty: it is found."""
    commit: str = ""
    """What was pushed last."""
    draft: bool = False
    """We made it a draft, and have not said since that it is ready."""
    no_drafts: bool = False
    """The repository has no drafts."""
    said: tuple[str, ...] = ()
    """Digests of the texts we wrote, or were about to write: a text that is none of them is somebody's own."""
    into: str = ""
    """The branch that takes it on GitHub, where people may change that."""
    state: str = ""
    """Of the pull request when it was seen last: open, draft, closed, merged."""

    def about_to_say(self, digest: str) -> "Publication":
        """Before a text is written: who dies in between knows it again."""
        said = tuple(each for each in self.said if each != digest)
        return self.model_copy(update={"said": (*said, digest)[-REMEMBERED:]})
