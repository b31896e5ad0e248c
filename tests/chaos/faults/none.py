"""No fault: for what a workload does undisturbed."""

from typing import TYPE_CHECKING

from tests.chaos.protocol import GO, Arrival

if TYPE_CHECKING:
    from tests.chaos.stack import Stack


class NoFault:
    """A fault that does nothing."""

    name = "none"
    needs: frozenset[str] = frozenset()
    seconds = 0.0
    alone = False

    def harms(self, station: str) -> bool:
        return False

    def fits(self, station: str) -> bool:
        return False

    def strike(self, stack: "Stack", arrival: Arrival) -> str:
        return GO

    def proof(self, stack: "Stack") -> str:
        return "nothing happened"

    def lift(self, stack: "Stack") -> None:
        """Do nothing."""


FAULTS = (NoFault,)
