import re

import pytest

from workflows.tree.ids import new_root_id, root_of


@pytest.mark.ruling("B1")
def test_root_ids_are_url_safe_and_sort_by_time() -> None:
    ids = [new_root_id(1_790_000_000_000 + step, 7919 * step) for step in (0, 1, 60_000, 10**10)]
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"job-[0-9a-v]{12}", each) for each in ids)
    assert new_root_id(1, 1) != new_root_id(1, 2)


@pytest.mark.ruling("B1")
def test_any_job_id_names_its_tree() -> None:
    assert root_of("job-0123456789ab.17") == root_of("job-0123456789ab") == "job-0123456789ab"
    assert root_of("prun-1") == "prun-1"
