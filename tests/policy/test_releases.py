"""The release that takes the steps of trees: the newest that has a host (ruling Q8)."""

import pytest

from workflows.policy.releases import is_newer, must_become_current

pytestmark = pytest.mark.ruling("Q8")


@pytest.mark.parametrize(
    ("own", "current", "living", "does"),
    [
        ("0.2.0", "", ["0.2.0"], True),
        ("0.2.0", "0.2.0", ["0.2.0"], False),
        ("0.3.0", "0.2.0", ["0.2.0", "0.3.0"], False),
        ("0.3.0", "0.2.0", ["0.2.0", "0.2.0", "0.3.0", "0.3.0"], True),
        ("0.3.0", "0.2.0", ["0.3.0"], True),
        ("0.2.0", "0.3.0", ["0.2.0", "0.2.0", "0.3.0"], False),
        ("0.2.0", "0.3.0", ["0.2.0"], True),
        ("0.10.0", "0.9.1", ["0.9.1", "0.10.0", "0.10.0"], True),
        ("unreleased", "0.2.0", ["0.2.0", "unreleased", "unreleased"], False),
    ],
)
def test_the_newest_release_that_two_hosts_run_leads(own: str, current: str, living: list[str], does: bool) -> None:
    assert must_become_current(own, current, living) is does


def test_no_two_releases_take_the_lead_from_each_other() -> None:
    known = ("unreleased", "0.2.0", "0.2.0rc1", "0.2", "0.10.0", "1.0.0")
    for one in known:
        for other in known:
            living = [one, one, other, other]
            assert not (must_become_current(one, other, living) and must_become_current(other, one, living))
            assert not (is_newer(one, other) and is_newer(other, one))
