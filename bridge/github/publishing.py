"""A tree's work as a pull request: its branch is pushed, then a pull request is opened, once (ruling L9)."""

from sqlalchemy import Engine
from workflows.github.bound import BoundTree

from activities.store.github.facts import FactRow
from bridge.github.session import Session
from bridge.github.wrote import Wrote


def wanted(session: Session, tree: BoundTree) -> list[FactRow]:
    """What is to be published by itself, as `[github].publish` says."""
    return []


def to_push(store: Engine, now: float) -> list[FactRow]:
    """Facts whose branch has to be pushed first."""
    return []


async def push(session: Session, fact_id: str) -> None:
    """Push the branch from this host's checkout."""


async def open_pull(session: Session, fact: FactRow) -> Wrote:
    """Open the pull request, or find the one that is there."""
    return Wrote()
