"""How often a coordinator goes in circles before its tree is ended: one ladder for both signals (rulings H1 to H3)."""

from collections.abc import Sequence

from workflows.model.digests import digest
from workflows.model.wire import Memory
from workflows.policy.loops import Rung

WINDOW = 8


class Ladder(Memory):
    """What a chain has dispatched and come to so far, and how often it has been warned."""

    window: list[str] = []
    """Signatures of the last sets dispatched (ruling H1)."""
    repeat_warned: bool = False
    rung: int = 0
    streak: int = 0
    """Generations, or sets that could not go out, in a row without progress."""
    progress: str | None = None
    """The last generation's digest (ruling H3)."""
    history: str = ""
    """Digest over all generations: the part a whole chain plays in its parent's progress."""

    def repeats(self, signature: str) -> Rung | None:
        """A set dispatched before: a warning once, then it is a loop for good (ruling H2)."""
        if signature not in self.window:
            return None
        rung = Rung.DETECTED if self.repeat_warned or self.rung else Rung.WARNING
        self.repeat_warned, self.rung = True, 1
        return rung

    def dispatched(self, signature: str) -> None:
        """Only sets that went out enter the window (ruling C6)."""
        self.window = [*self.window, signature][-WINDOW:]

    def generation(self, legs: Sequence[str], limit: int) -> Rung | None:
        """One is over: the same digest again lengthens the streak, another resets streak and ladder (ruling H3)."""
        now = digest(sorted(legs))
        same = now == self.progress
        self.streak = self.streak + 1 if same else 0
        if not same and self.progress is not None:
            self.rung = 0
        self.progress, self.history = now, digest([self.history, now])
        if self.streak < limit:
            return None
        rung = Rung.DETECTED if self.rung else Rung.WARNING
        self.rung = 1
        return rung

    def unroutable(self, limit: int) -> bool:
        """Whether a coordinator that keeps naming workers it cannot have is given another try (ruling C6)."""
        self.streak += 1
        return self.streak <= limit
