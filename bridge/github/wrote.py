"""What a write came to."""

from dataclasses import dataclass

APART = 1.0
"""Seconds between two writes (ruling L8)."""


@dataclass(frozen=True)
class Wrote:
    """It stands there: its id, its page, the digest of what it says."""

    github_id: str = ""
    url: str = ""
    digest: str = ""
    more: bool = False
    """There is more of it than is written at a time: the rest follows."""


class Later(Exception):  # noqa: N818
    """Not yet: something else has to happen first."""

    def __init__(self, why: str, until: float) -> None:
        super().__init__(why)
        self.until = until


class Needless(Exception):  # noqa: N818
    """What it would tell is over, and was never told: it need not be written any more."""


class Gone(Exception):  # noqa: N818
    """A person deleted the comment it is about: it is left so, and nobody has to look."""


class Never(Exception):  # noqa: N818
    """It cannot be written; a person has to look."""
