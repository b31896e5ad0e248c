"""The figures that `service daemon status` shows."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store.registry import host_rows
from bridge.operations.home import overview
from bridge.operations.home.overview import sizes
from bridge.operations.service import Service
from tests.bridge import seeds
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("K6")


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    made = Service(home)
    yield made
    made.store.dispose()


def test_without_a_store_there_is_only_the_disk(tmp_path: Path) -> None:
    figures = overview.find(Service(Home(tmp_path / "none")))
    assert figures.counts is None
    assert (figures.counts, figures.slots, figures.spent_today) == (None, None, None)
    assert figures.disk.bytes == 0
    assert figures.disk.free > 0
    assert not (tmp_path / "none").exists(), "looking makes nothing"


def test_it_counts_what_there_is_to_do_and_who_waits(service: Service) -> None:
    roots = [f"job-{number:012d}" for number in range(5)]
    tasks = [TaskState.OPEN, TaskState.OPEN, TaskState.AWAITING_HUMAN, TaskState.BLOCKED, TaskState.DONE]
    states = [JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED, JobState.SUCCEEDED]
    now = time.time()
    used = Usage(input_tokens=10, output_tokens=5)
    for root, task, state in zip(roots, tasks, states, strict=True):
        waits = "retry" if task is TaskState.BLOCKED else ""
        ended = now if state not in (JobState.QUEUED, JobState.RUNNING) else None
        job = seeds.job(root, state=state, ended_at=ended, usage=used, cost_usd=0.5)
        seeds.write(service, seeds.task(root, state=task, waits_for=waits), job)
    host_rows.see(service.store, "here", slots=8, started_at=now)
    host_rows.see(service.store, "gone", slots=4, started_at=now)
    host_rows.stop(service.store, "gone", started_at=now)
    figures = overview.find(service)
    assert figures.counts is not None
    assert (figures.counts.queued, figures.counts.running, figures.counts.paused, figures.counts.blocked) == (
        1,
        1,
        1,
        1,
    )
    seen = {(host.name, host.slots, host.works) for host in figures.slots or ()}
    assert seen == {("here", 8, True), ("gone", 4, False)}
    assert figures.spent_today is not None
    assert figures.spent_today.tokens == 75
    assert figures.spent_today.cost_usd == pytest.approx(2.5)


def test_the_disk_is_told_by_what_it_is_for(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for path, size in ((home.store, 3), (home.root / "store.db-wal", 4), (home.runs / "a" / "b" / "out", 50)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    (home.runs / "elsewhere").symlink_to("/usr")
    disk = overview.measure(home, 60.0)
    sizes = {part.name: part.bytes for part in disk.parts}
    assert sizes["store"] == 7
    assert 50 <= sizes["transcripts"] < 1000, "no link is followed"
    assert disk.whole


def test_a_home_that_is_too_large_to_be_walked_is_told_as_far_as_it_was(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.worktrees.mkdir()
    for number in range(50):
        (home.worktrees / str(number)).write_bytes(b"x")
    disk = overview.measure(home, 0.0)
    assert not disk.whole
    assert disk.bytes < 50


@pytest.mark.ruling("engine:gc")
def test_a_folder_takes_what_is_in_it_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "large").write_bytes(b"x" * 100_000)
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "file").write_bytes(b"x" * 300)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    link = (folder / "link").lstat().st_size
    assert sum(sizes(folder)) == 300 + link
    assert sum(sizes(folder / "link")) == link
    assert sum(sizes(folder / "below" / "file")) == 300
    assert sum(sizes(tmp_path / "gone")) == 0
