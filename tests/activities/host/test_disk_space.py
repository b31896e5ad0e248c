"""Disk space: below the floor nothing starts, and a run that writes too much is ended with the reason."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.host import disk_space
from activities.host.disk_space import GIB, DiskRoom, DiskWriter, bytes_written
from activities.runs.os_processes import MARK
from activities.settings.model import WorkerSection

pytestmark = [pytest.mark.ruling("N3"), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
MIB = 1 << 20


class Disk:
    """A disk of 100 GiB whose free space the tests set."""

    def __init__(self) -> None:
        self.free = 50 * GIB

    def __call__(self, place: Path) -> tuple[int, int]:
        return self.free, 100 * GIB - self.free


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    fake_disk = Disk()
    monkeypatch.setattr(disk_space, "disk", fake_disk)
    return fake_disk


@pytest.fixture
def writer(tmp_path: Path) -> Callable[[str, int], DiskWriter]:
    def made(name: str, mib: int) -> DiskWriter:
        folder = tmp_path / name
        (folder / "deep/er").mkdir(parents=True)
        since = time.time() - 1
        (folder / "deep/er/file").write_bytes(bytes(mib * MIB))
        return DiskWriter(folder, (folder,), since, lambda: None, 50 * GIB)

    return made


def test_below_the_floor_nothing_starts_and_above_it_again(disk: Disk, tmp_path: Path) -> None:
    held = DiskRoom()
    reasons: list[str] = []
    held.heeded_by.append(reasons.append)
    settings = WorkerSection(free_disk=2.0)
    assert held.look(tmp_path, settings) == ""
    disk.free = GIB + GIB // 2
    says = f"1.5 GiB are free on the disk of {tmp_path}, and nothing starts below 2.0 GiB"
    held.hold(held.look(tmp_path, settings))
    assert (reasons, held.held) == ([says], says)
    assert held.look(tmp_path, WorkerSection(free_disk=0)) == ""


def test_below_half_the_floor_who_wrote_most_is_ended_and_nobody_else_unless_more_is_written(
    disk: Disk, writer: Callable[[str, int], DiskWriter], tmp_path: Path
) -> None:
    small, large, idle = writer("small", 1), writer("large", 4), writer("idle", 0)
    held = DiskRoom({small, large, idle})
    settings = WorkerSection(free_disk=2.0)
    disk.free = GIB + 1
    held.look(tmp_path, settings)
    assert [each.reason for each in (small, large, idle)] == ["", "", ""]
    disk.free = GIB - 1
    held.look(tmp_path, settings)
    assert large.reason.startswith(
        "it was ended because the disk was nearly full (1.0 GiB free), and it wrote the most: 4 MiB"
    )
    assert "service gc" in large.reason
    held.writers.discard(large)
    disk.free -= GIB // 8
    held.look(tmp_path, settings)
    assert [small.reason] == [""], "what was written until the first was gone"
    disk.free -= GIB // 4
    held.look(tmp_path, settings)
    assert small.reason
    assert not idle.reason


def test_a_job_that_writes_more_than_its_bound_is_ended_and_looked_at_only_when_it_may_have(
    disk: Disk, writer: Callable[[str, int], DiskWriter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_space, "GIB", MIB)
    large, small = writer("large", 3), writer("small", 1)
    held = DiskRoom({large, small})
    settings = WorkerSection(job_disk=2, free_disk=0)
    disk.free -= MIB
    held.look(tmp_path, settings)
    assert (large.wrote, large.reason) == (0, ""), "so little was written that it was not looked at"
    disk.free -= MIB
    held.look(tmp_path, settings)
    assert large.reason.startswith("it was ended because it wrote ")
    assert "[worker].job_disk" in large.reason
    assert not small.reason
    assert small.wrote == MIB


def test_sparse_files_and_what_was_there_before_count_nothing_and_deleted_files_count(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(bytes(MIB))
    since = time.time() + 0.05
    time.sleep(0.1)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    os.link(tmp_path / "sparse", tmp_path / "again")
    assert bytes_written((tmp_path,), since, "none") == 0
    script = (
        f"import os, time\nf = open({str(tmp_path / 'gone')!r}, 'wb'); f.write(bytes({2 * MIB})); f.flush()\n"
        f"os.unlink(f.name); print(flush=True); time.sleep(600)"
    )

    async def count() -> int:
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, env={MARK: "run@home"}, stdout=asyncio.subprocess.PIPE
        )
        assert holder.stdout is not None
        await holder.stdout.readline()
        try:
            return bytes_written((tmp_path,), since, "run@home")
        finally:
            holder.kill()
            await holder.wait()

    assert asyncio.run(count()) == 2 * MIB
