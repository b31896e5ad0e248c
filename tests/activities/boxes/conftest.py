"""Fixture: a machine to attack."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.activities.boxes.world import World, built


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with built(tmp_path) as there:
        yield there
