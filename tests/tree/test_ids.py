"""Ids that contain their tree's (ruling B1)."""

import pytest

from workflows.model.ids import RANDOM_BITS, root_id, root_of, task_id

pytestmark = pytest.mark.ruling("B1")


def test_a_root_id_is_twelve_digits_that_sort_by_time() -> None:
    ids = [root_id(1_790_000_000_000 + step, 7919 * step) for step in (0, 10, 60_000, 10**10)]
    assert ids == sorted(ids)
    assert all(root_of(job) == job and len(job) == 16 for job in ids)
    assert root_id(10, 1) != root_id(10, 2)
    assert root_id(10, 1) == root_id(10, 1 + (1 << RANDOM_BITS))
    assert root_id(10, 0) < root_id(20, 0)


@pytest.mark.parametrize(
    ("job", "root"),
    [
        ("job-0123456789ab", "job-0123456789ab"),
        ("job-0123456789ab.64", "job-0123456789ab"),
        ("job-0123456789ab.0", None),
        ("job-0123456789ab.1.2", None),
        ("job-0123456789az", None),
        ("../job-0123456789ab", None),
        ("", None),
    ],
)
def test_every_job_id_names_its_tree_and_nothing_else_does(job: str, root: str | None) -> None:
    assert root_of(job) == root


def test_a_task_is_named_after_its_tree() -> None:
    assert task_id("job-0123456789ab") == "task-0123456789ab"
