"""What a token with a name permits: `read`, `ask` or `act` (ruling N5)."""

from enum import StrEnum


class TokenScope(StrEnum):
    """A token's permission; each includes those before it."""

    READ = "read"
    ASK = "ask"
    ACT = "act"

    def covers(self, needed: "TokenScope") -> bool:
        """Return whether this scope includes the needed one."""
        order = list(TokenScope)
        return order.index(self) >= order.index(needed)
