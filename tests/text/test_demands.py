"""Demands of a validation in our words."""

import pytest

from workflows.text.demands import demand

pytestmark = pytest.mark.ruling("J1", "K6")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("String should have at least 1 character", "must have at least 1 character"),
        ("Input should be a valid integer", "must be a valid integer"),
        (
            "List should have at most 3 items after validation, not 4",
            "must have at most 3 items after validation, not 4",
        ),
        ("Value error, a duration is text", "a duration is text"),
        ("the port is taken", "the port is taken"),
    ],
)
def test_the_type_is_left_out(message: str, words: str) -> None:
    assert demand(message) == words
