"""What a comment says: made from the rows at the moment it is written."""

from activities.store.github.facts import FactRow
from bridge.github.session import Session


def body_of(session: Session, fact: FactRow) -> str:
    """The whole comment, its marker included."""
    raise NotImplementedError
