"""Disk space of the service home: with too little free, no run starts; a run that writes too much is ended (N3)."""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from activities.host.helper_process import TooMuchError, apart
from activities.runs import supervised_run as runs
from activities.runs.os_processes import with_mark
from activities.runs.supervised_run import Claim, Progress, RunEnd
from activities.runs.supervisor import EndKind
from activities.settings.model import WorkerSection

GIB = 1 << 30
LOOK_SECONDS, TIGHT_SECONDS = 0.5, 0.1
TIGHT = 8
"""Multiple of the floor: with less free space, checks are more frequent."""

WALK_SECONDS, MEASURE_SECONDS = 3.0, 10.0
"""Time limits of measuring a run: files not reached within the first don't count; at the second the measurement is
killed.
"""

STEPS = 16
"""A run is measured again after the disk's use has grown by the rest of the run's limit, but by at least one such part
of the limit.
"""

FIX = "service gc --dry-run; df -h; [worker].free_disk in config.toml"


@dataclass(eq=False)
class DiskWriter:
    """A running run, and the folders it writes to."""

    run_dir: Path
    folders: tuple[Path, ...]
    since: float
    stop: Callable[[], None]
    used: int
    """Use of the whole disk, in bytes, when this run was measured last."""
    wrote: int = 0
    reason: str = ""
    """The reason why the run was ended."""

    def measure(self, used: int) -> None:
        """Measure what the run wrote, in a separate process: it may have made a million files."""
        with contextlib.suppress(TooMuchError):
            self.wrote = apart(MEASURE_SECONDS, bytes_written, self.folders, self.since, runs.mark_of(self.run_dir))
        self.used = used

    def end(self, reason: str) -> None:
        self.reason = reason
        self.stop()


@dataclass
class DiskRoom:
    """The disk of one home, and the runs that write to it."""

    writers: set[DiskWriter] = field(default_factory=set)
    held: str = ""
    """The reason why no run may start now; empty if runs may start."""
    heeded_by: list[Callable[[str], None]] = field(default_factory=list)
    _reasons: dict[str, str] = field(default_factory=dict)
    """Reasons to hold runs back, by who gave them."""
    seconds: float = LOOK_SECONDS
    """Interval until the next check."""
    _line: int | None = None
    """Free space below which the next run is ended: half the floor at first, lower after each ended run."""

    async def follow(
        self, run_dir: Path, claim: Claim, cwd: Path, on_progress: Callable[[Progress], None] | None
    ) -> RunEnd:
        """Wait for a run's end, like `supervised_run.follow`. If it wrote too much, its end has that reason."""
        loop, ending = asyncio.get_running_loop(), list[asyncio.Task[RunEnd]]()

        def stop() -> None:
            ending.append(loop.create_task(runs.stop(run_dir, 0.0)))

        def from_a_thread() -> None:
            loop.call_soon_threadsafe(stop)

        writer = DiskWriter(run_dir, (run_dir, cwd), claim.at, from_a_thread, disk(run_dir.parent)[1])
        self.writers.add(writer)
        try:
            end = await runs.follow(run_dir, claim, on_progress)
        finally:
            self.writers.discard(writer)
            await asyncio.gather(*ending, return_exceptions=True)
        return replace(end, error=writer.reason) if writer.reason and end.kind is EndKind.CANCELLED else end

    def hold(self, why: str, by: str = "disk") -> None:
        """Set or clear (empty) the reason of `by` to hold new runs back. Once no reason is left, waiting runs start."""
        self._reasons[by] = why
        self.held = next(filter(None, self._reasons.values()), "")
        for heed in self.heeded_by:
            heed(self.held)

    def look(self, place: Path, settings: WorkerSection) -> str:
        """End runs that write too much. Return why no run may start now; empty if runs may start."""
        free, used = disk(place)
        if settings.job_disk:
            self._bound(settings.job_disk * GIB, used)
        floor = int(settings.free_disk * GIB)
        self.seconds = TIGHT_SECONDS if free < TIGHT * floor else LOOK_SECONDS
        if free >= floor:
            self._line = None
            return ""
        if free < (floor // 2 if self._line is None else self._line) and (writer := self._worst(used)):
            self._line = free * 3 // 4
            writer.end(
                f"it was ended because the disk was nearly full ({size(free)} free), and it wrote the most: "
                f"{size(writer.wrote)} (try: {FIX})"
            )
        return f"{size(free)} are free on the disk of {place}, and nothing starts below {size(floor)}"

    def _bound(self, bound: int, used: int) -> None:
        for writer in self._going_on():
            if used - writer.used >= max(bound - writer.wrote, bound // STEPS):
                writer.measure(used)
                if writer.wrote > bound:
                    says = f"it was ended because it wrote {size(writer.wrote)}, and a job may write {size(bound)}"
                    writer.end(f"{says} (try: a larger [worker].job_disk, then service job retry <job>)")

    def _worst(self, used: int) -> DiskWriter | None:
        writers = self._going_on()
        for writer in writers:
            writer.measure(used)
        return max((writer for writer in writers if writer.wrote), key=lambda writer: writer.wrote, default=None)

    def _going_on(self) -> list[DiskWriter]:
        return [each for each in self.writers.copy() if not each.reason]


def disk(place: Path) -> tuple[int, int]:
    """Return the bytes free for this account, and the bytes in use."""
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize, (status.f_blocks - status.f_bfree) * status.f_frsize


def bytes_written(folders: tuple[Path, ...], since: float, mark: str) -> int:
    """Count the bytes of files in these folders that changed since then, and of deleted files that the run keeps
    open.
    """
    until = time.monotonic() + WALK_SECONDS
    files = [file for file in _files(folders, until) if file.st_ctime >= since]
    files += (file for pid in with_mark(mark) for file in _deleted_files(pid))
    return sum({(file.st_dev, file.st_ino): file.st_blocks * 512 for file in files}.values())


def _files(folders: tuple[Path, ...], until: float) -> Iterator[os.stat_result]:
    waiting = list(map(str, folders))
    while waiting and time.monotonic() < until:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with contextlib.suppress(OSError):
                        yield entry.stat(follow_symlinks=False)


def _deleted_files(pid: int) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = os.stat(entry.path)
                if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                    yield status


def size(count: int) -> str:
    """Format a number of bytes for people."""
    return f"{count / GIB:.1f} GiB" if count >= GIB // 10 else f"{count / (1 << 20):.0f} MiB"
