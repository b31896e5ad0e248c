"""The merge gate's verdict as the check `service/gate` on the head of a pull request (ruling L10)."""

from workflows.github.bound import BoundTree

from activities.store.github.facts import FactRow
from activities.store.github.threads import Thread
from bridge.github.session import Session
from bridge.github.wrote import Wrote


def wanted(session: Session, thread: Thread, tree: BoundTree) -> list[FactRow]:
    """The check of a tree that belongs to a pull request, when `[github].check` says so."""
    return []


async def look(session: Session, github: str) -> int:
    """See where the heads of pull requests are, and what a merge queue asks; how many requests that took."""
    return 0


async def write(session: Session, fact: FactRow) -> Wrote:
    """Make or change the check run."""
    return Wrote()
