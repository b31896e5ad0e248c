"""Fixtures: a machine to attack, and the boxes of this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.boxes.box import BoxKind
from tests.activities.boxes.world import World, built, why_not


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with built(tmp_path) as there:
        yield there


@pytest.fixture(params=[BoxKind.BWRAP, BoxKind.LANDLOCK])
def kind(request: pytest.FixtureRequest) -> BoxKind:
    """Return each kind of box of this machine."""
    if why := why_not(request.param):
        pytest.skip(why)
    return BoxKind(request.param)
