"""The outcomes of a write."""

from dataclasses import dataclass

APART = 1.0
"""Seconds between two writes (ruling L8)."""


@dataclass(frozen=True)
class Wrote:
    """A successful write: the object's id, its page, and the digest of its content."""

    github_id: str = ""
    url: str = ""
    digest: str = ""
    more: bool = False
    """True if the rest has to follow in further writes."""


class Later(Exception):  # noqa: N818
    """The write has to wait for something else."""

    def __init__(self, why: str, until: float) -> None:
        super().__init__(why)
        self.until = until


class Needless(Exception):  # noqa: N818
    """The fact is outdated and was never written: nothing is to be written."""


class Gone(Exception):  # noqa: N818
    """A person deleted the comment it is about: the fact is dropped, and nobody is notified."""


class Never(Exception):  # noqa: N818
    """The fact cannot be written; a person has to look."""
