"""Control groups whose processes together have a small share of one processor, or little memory."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from tests.waiting import wait_for

PERIOD = 100_000
HIERARCHIES = {
    "cpu": ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup"),
    "memory": ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"),
}
HELD_UP = {
    "cpu": (("cpu.stat", "nr_throttled"),),
    "memory": (("memory.failcnt", ""), ("memory.events", "max")),
}
"""The files that count how often the limit was met, in cgroup v1 and v2, with the word before the number."""
NUMBERS = count()


def limits(controller: str, limit: int) -> list[dict[str, str]]:
    """Return the files that set a limit, in v1 and in v2: percents of a core, or bytes."""
    if controller == "cpu":
        quota = limit * PERIOD // 100
        v1 = {"cpu.cfs_period_us": f"{PERIOD}", "cpu.cfs_quota_us": f"{quota}"}
        return [v1, {"cpu.max": f"{quota} {PERIOD}"}]
    return [{"memory.limit_in_bytes": f"{limit}"}, {"memory.max": f"{limit}"}]


@dataclass
class Group:
    """A control group of a test's own. Children of its processes are born in it."""

    controller: str
    folder: Path
    former: dict[int, Path] = field(default_factory=dict)
    """The groups that its processes were taken from."""

    def enter(self, pid: int) -> None:
        """Put a process into it, 0 for the calling one; one that has ended is left out."""
        self.former[pid] = self._of(pid or os.getpid())
        with contextlib.suppress(ProcessLookupError):
            print(pid, file=self._members.open("w"), flush=True)

    @property
    def held_up(self) -> int:
        """Return how often its processes met the limit."""
        for name, word in HELD_UP[self.controller]:
            if (path := self.folder / name).exists():
                rows = (row.split() for row in path.read_text().splitlines())
                return next(int(row[-1]) for row in rows if not word or row[0] == word)
        return 0

    def leave_room(self, size: int) -> None:
        """Limit its memory to so many bytes more than its processes have in it. What they had before is not counted."""
        for used, limit in (("memory.usage_in_bytes", "memory.limit_in_bytes"), ("memory.current", "memory.max")):
            if (path := self.folder / used).exists():
                (self.folder / limit).write_text(f"{int(path.read_text()) + size}")

    def close(self) -> None:
        """Put its processes where they came from, or their parents did, and remove it."""
        while pids := self._members.read_text().split():
            for pid in map(int, pids):
                target = self.former.get(pid, self.folder.parent)
                with contextlib.suppress(OSError):  # it has ended, or its former group has
                    print(pid, file=(target / "cgroup.procs").open("w"), flush=True)
                    continue
                with contextlib.suppress(ProcessLookupError):
                    print(pid, file=(self.folder.parent / "cgroup.procs").open("w"), flush=True)
        self.remove()

    def remove(self) -> None:
        """Wait for the end of its processes, and remove it."""
        wait_for(lambda: not self._members.read_text().strip(), "the end of its processes")
        self.folder.rmdir()

    @property
    def _members(self) -> Path:
        return self.folder / "cgroup.procs"

    def _of(self, pid: int) -> Path:
        """Return the folder of the group in which a process is."""
        with contextlib.suppress(OSError):
            for row in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                _, controllers, path = row.split(":", 2)
                if controllers in (self.controller, "") and (self.folder.parent / path.strip("/")).is_dir():
                    return self.folder.parent / path.strip("/")
        return self.folder.parent


def made(controller: str, limit: int) -> Group | None:
    """Make a group with a limit; None where this account may not."""
    for root, files in zip(HIERARCHIES[controller], limits(controller, limit), strict=True):
        folder = Path(root, f"test-starved-{os.getpid()}-{next(NUMBERS)}")
        with contextlib.suppress(OSError):
            folder.mkdir()
            if not (folder / "cgroup.procs").exists():  # a folder of the hierarchies of v1, not a hierarchy
                folder.rmdir()
                continue
            for name, value in files.items():
                (folder / name).write_text(value)
            return Group(controller, folder)
    return None


@cache
def can_limit() -> bool:
    """Return whether this account may make control groups with a limit of memory."""
    if (group := made("memory", 1 << 40)) is not None:
        group.remove()
    return group is not None


@contextlib.contextmanager
def starved(percent: int) -> Iterator[Callable[[int], None]]:
    """Make a group with a share of a processor; yield what puts a process into it, 0 for the calling one."""
    group = made("cpu", percent)
    if group is None:
        pytest.skip("this account may make no control group with a limit of processor time here")
    try:
        yield group.enter
    finally:
        group.remove()
