"""When a run's output grew: an index beside the output, because programs print no clock times.

Each line is a size of the output in bytes, and when it had grown to that size.
"""

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from activities.runs.regular_files import content_of, open_to_append, stat_of

INDEX = "stdout.times"
MOST_BYTES = 4 * 1024 * 1024
"""Bytes of an index that are read: 30 hours of output without a pause."""


@dataclass(frozen=True)
class OutputTimes:
    """The sizes of an output, ascending, and the time of each."""

    sizes: tuple[int, ...] = ()
    times: tuple[float, ...] = ()

    def written_at(self, offset: int) -> float | None:
        """Return when the byte at this offset was there; None if that is unknown."""
        at = bisect_right(self.sizes, offset)
        return self.times[at] if at < len(self.times) else None


def note(output: Path) -> None:
    """Record how large the output is now, and since when. A full disk leaves a gap in the index."""
    if (status := stat_of(output)) and status.st_size:
        with suppress(OSError), open_to_append(output.with_name(INDEX)) as index:
            index.write(b"%d %.1f\n" % (status.st_size, status.st_mtime))


def read(output: Path) -> OutputTimes:
    """Return the times of an output; none if its index is missing or not the service's own."""
    try:
        lines = content_of(output.with_name(INDEX), MOST_BYTES).splitlines()
    except OSError:
        return OutputTimes()
    sizes, times = list[int](), list[float]()
    for line in lines:
        size, _, at = line.partition(b" ")
        with suppress(ValueError):
            grown, when = int(size), float(at)
            if grown > (sizes[-1] if sizes else 0):
                sizes.append(grown)
                times.append(when)
    return OutputTimes(tuple(sizes), tuple(times))
