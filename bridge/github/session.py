"""The dependencies that every step of a GitHub turn takes, and the possible outcomes of a write."""

from dataclasses import dataclass

from sqlalchemy import Engine

from activities.github.client import Client
from activities.settings.model import Github
from bridge.operations.service import Service


@dataclass(frozen=True)
class GithubSession:
    """The GitHub account, store and clients that every step of a turn uses."""

    service: Service
    client: Client

    @property
    def store(self) -> Engine:
        return self.service.store

    @property
    def settings(self) -> Github:
        return self.service.settings.github


APART = 1.0
"""Seconds between two writes (ruling L8)."""


@dataclass(frozen=True)
class Wrote:
    """A successful write: the id and page of the written object, and the digest of its content."""

    github_id: str = ""
    url: str = ""
    digest: str = ""
    more: bool = False
    """True if the rest has to follow in further writes."""


class Later(Exception):  # noqa: N818
    """The write must wait until something else is done."""

    def __init__(self, why: str, until: float) -> None:
        super().__init__(why)
        self.until = until


class Needless(Exception):  # noqa: N818
    """The fact is outdated before it was written, so nothing is written."""


class CommentDeleted(Exception):  # noqa: N818
    """The comment that a fact answers was deleted: the fact is dropped without a notification."""


class Never(Exception):  # noqa: N818
    """The fact can never be written; a person has to look at it."""
