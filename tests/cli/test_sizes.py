"""Byte counts for people."""

import pytest

from cli.sizes import size


@pytest.mark.ruling("engine:gc")
@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9_960, "10.0 kB"),
        (83_000, "83 kB"),
        (52_500_000_000, "52 GB"),
    ],
)
def test_bytes_are_told_in_the_largest_unit_that_fits(count: int, told: str) -> None:
    assert size(count) == told
