"""Judge whether a process is frozen: it exists, but makes no progress."""

from dataclasses import dataclass, field

from activities.runs import os_processes

LOOKS = 6
"""Checks without a sign of life after which a process counts as frozen. Checks are counted, not seconds: the observer
may have been suspended together with the process.
"""

ENOUGH_SECONDS = 10.0
"""Processor time within which any living process gives a sign of life, even if few of its threads run."""


@dataclass
class SignsOfLife:
    """Repeated checks of one process. A process that lacks processor time or waits for a disk is slow, not frozen."""

    pid: int
    last: object = field(default_factory=object)
    missed: int = 0
    used: float = 0.0
    """Processor time at the last sign."""

    def are_missing(self, sign: object) -> bool:
        """Check once, and return whether the process is frozen. A `sign` that differs from the last one shows that it
        lives.
        """
        used, waits = os_processes.effort(self.pid) or (0.0, False)
        if sign != self.last:
            self.last, self.missed, self.used = sign, 0, used
        elif not waits or used - self.used >= ENOUGH_SECONDS:
            self.missed += 1
        return self.missed >= LOOKS
