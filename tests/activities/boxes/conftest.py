"""A machine to attack."""

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
    """Each box that this machine can make."""
    kind = BoxKind(request.param)
    if why := why_not(kind):
        pytest.skip(why)
    return kind
