"""Stations: named moments of the work, at which the matrix of faults (`tests/chaos`) lets faults strike.

Standard library only, since supervisors load it. In production a station does nothing.
"""

from collections.abc import Callable

hook: Callable[[str, str, str], None] | None = None
"""What happens at a station. Only tests set it: no setting and no variable does."""


def reach(station: str, subject: str = "", detail: str = "") -> None:
    """Note that work has come to a station: its literal name, the job or tree it is about, and what else tells it
    apart.
    """
    if hook is not None:
        hook(station, subject, detail)
