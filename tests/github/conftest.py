"""A GitHub for a test."""

from collections.abc import Iterator

import pytest

from tests.github.hub import Hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    """The Hub with the repository acme/tool, ann who writes and bob who only reads."""
    with Hub() as made:
        made.repo("acme/tool")
        made.user("ann", role="write")
        made.user("bob")
        yield made
