"""A comment as read from GitHub, and the rule whether it may contain commands (ruling L5)."""

from collections.abc import Collection
from dataclasses import dataclass
from math import floor

from workflows.github.marks import holds_mark

PERSON = "User"
BOT_ENDING = "[bot]"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a pull request or issue. Times are seconds since 1970."""

    id: int
    author: str
    """The login; empty for a deleted account."""
    author_type: str
    """`User`, `Bot`, `Organization` or `Mannequin`, as reported by GitHub."""
    author_id: int
    body: str
    created_at: float
    updated_at: float
    number: int
    """The number of its pull request or issue."""
    url: str

    @property
    def on_pull_request(self) -> bool:
        """True if its address is a pull request's."""
        return f"/pull/{self.number}" in self.url


def why_ignored(comment: Comment, ours: Collection[str], bound_since: float) -> str:
    """Return the reason to ignore a comment; empty if it may command. `ours` are the service's own logins.

    GitHub's times are whole seconds, so a comment of the second in which the tree was bound counts.
    """
    login = comment.author.casefold()
    if login in {each.casefold() for each in ours}:
        return "it is our own"
    if holds_mark(comment.body):
        return "it holds the mark of a comment of the service"
    if comment.author_type != PERSON or not login or login.endswith(BOT_ENDING):
        return "its author is no person"
    if comment.updated_at != comment.created_at:
        return "it was edited"
    if comment.created_at < floor(bound_since):
        return "it is older than the tree's binding"
    return ""
