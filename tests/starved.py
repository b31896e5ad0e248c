"""A control group whose processes together have a small share of one processor."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_for

PERIOD = 100_000


@contextlib.contextmanager
def starved(percent: int) -> Iterator[Callable[[int], None]]:
    """Make the group; yield what puts a process into it, 0 for the calling one. Its later children are in it too."""
    quota = percent * PERIOD // 100
    for root, limits in (
        ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": f"{PERIOD}", "cpu.cfs_quota_us": f"{quota}"}),
        ("/sys/fs/cgroup", {"cpu.max": f"{quota} {PERIOD}"}),
    ):
        group = Path(root, f"test-starved-{os.getpid()}")
        with contextlib.suppress(OSError):
            group.mkdir()
            for name, value in limits.items():
                (group / name).write_text(value)
            break
    else:
        pytest.skip("this account may make no control group with a limit of processor time here")
    members = group / "cgroup.procs"
    try:
        yield lambda pid: print(pid, file=members.open("w"), flush=True)
    finally:
        wait_for(lambda: not members.read_text().strip(), "the end of its processes")
        group.rmdir()
