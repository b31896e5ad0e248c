"""Fixtures: a machine to attack, and the boxes of this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.boxes.box import BoxKind
from activities.boxes.try_boxes import look
from tests.activities.boxes.world import UID, World, built, needs_bubblewrap, why_not

BY_ITSELF = " by itself"
BY_BUBBLEWRAP = f"{BoxKind.BWRAP}{BY_ITSELF}"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with built(tmp_path) as there:
        yield there


@pytest.fixture(params=[BoxKind.BWRAP, BoxKind.LANDLOCK, pytest.param(BY_BUBBLEWRAP, marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest, world: World) -> BoxKind:
    """Return each kind of box of this machine; if root makes bubblewrap's box itself, also the one that bubblewrap
    makes.
    """
    world.own_root = request.param != BY_BUBBLEWRAP
    kind = BoxKind(request.param.removesuffix(BY_ITSELF))
    if why := why_not(kind):
        pytest.skip(why)
    if request.param == BY_BUBBLEWRAP:
        needs_bubblewrap()
        if not look(UID).own_root:
            pytest.skip("no other way to lay out a box of bubblewrap here")
    return kind
