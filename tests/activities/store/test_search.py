"""Searches for jobs by words that people remember of them (ruling M4)."""

import pytest
from sqlalchemy import Engine

from activities.store import job_rows
from tests.bridge import seeds
from workflows.model.rows import JobRecord, Records, TaskRecord

pytestmark = pytest.mark.ruling("M4")

OTHER = "job-9999999999zz"


@pytest.fixture
def trees(store: Engine) -> Engine:
    _write(store, seeds.task(title="Raise the 100% limit"), seeds.job(queued_at=1.0))
    _write(store, None, seeds.job(f"{seeds.ROOT}.1", agent="Builder_one", delegation_id="check-it", queued_at=2.0))
    _write(store, seeds.task(OTHER, title="Something else"), seeds.job(OTHER, agent="scout", queued_at=3.0))
    return store


def _write(store: Engine, task: TaskRecord | None, job: JobRecord) -> None:
    job_rows.write(store, Records(task=task, jobs=(job,)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise", [f"{seeds.ROOT}.1", seeds.ROOT]),
        ("100%", [f"{seeds.ROOT}.1", seeds.ROOT]),
        ("0_", []),
        ("l%t", []),
        ("\\", []),
        ("builder_", [f"{seeds.ROOT}.1"]),
        ("CHECK-IT", [f"{seeds.ROOT}.1"]),
        ("9999zz", [OTHER]),
        ("sCOUT", [OTHER, seeds.ROOT]),
        ("' OR 1=1 --", []),
    ],
)
def test_a_text_finds_ids_titles_legs_and_agents(trees: Engine, text: str, expected: list[str]) -> None:
    assert [job.job_id for job in job_rows.find(trees, job_rows.JobFilter(text=text))] == expected


def test_it_goes_together_with_the_other_filters(trees: Engine) -> None:
    assert [job.job_id for job in job_rows.find(trees, job_rows.JobFilter(text="raise", roots_only=True))] == [
        seeds.ROOT
    ]
    assert [job.job_id for job in job_rows.find(trees, job_rows.JobFilter(text="scout", before=(3.0, OTHER)))] == [
        seeds.ROOT
    ]


def test_trees_are_named_by_their_titles(trees: Engine) -> None:
    assert job_rows.titles(trees, {seeds.ROOT, "job-000000000000"}) == {seeds.ROOT: "Raise the 100% limit"}
    assert job_rows.titles(trees, set()) == {}
