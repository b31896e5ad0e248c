"""What most faults have in common."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.chaos.stack import Stack


class Base:
    """A fault that strikes at any station, harms no job, and is over at once."""

    needs: frozenset[str] = frozenset()
    seconds: float = 0.0
    alone: bool = False

    def harms(self, station: str) -> bool:
        return False

    def fits(self, station: str) -> bool:
        return True

    def lift(self, stack: "Stack") -> None:
        """Do nothing: it ends by itself."""
