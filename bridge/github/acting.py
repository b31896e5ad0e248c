"""Carrying out what comments order, each once, by the operations every other surface uses (rulings L4 to L6)."""

from bridge.github.session import Session


async def act(session: Session) -> list[str]:
    """Act on the comments that were taken."""
    return []
