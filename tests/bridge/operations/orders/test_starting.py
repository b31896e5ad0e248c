"""The start of a tree, while the bridge dies."""

import pytest

from activities.settings.home import Home
from activities.store import job_rows, tree_rows
from bridge.operations.orders import trees
from bridge.operations.service import Service
from tests.bridge import seeds


class DiedError(BaseException):
    """The bridge's end."""


@pytest.mark.ruling("J9", "O6")
async def test_a_tree_whose_bridge_dies_as_soon_as_it_runs_has_its_start(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, it would never be merged."""
    service = Service(home)

    async def client(_: Service) -> None: ...

    async def dies(*_: object) -> None:
        raise DiedError

    monkeypatch.setattr(trees, "client_of", client)
    monkeypatch.setattr(trees, "_start_workflow", dies)
    with pytest.raises(DiedError):
        await trees.start(service, seeds.start(service, "a" * 40), "here")
    assert tree_rows.get(service.store, seeds.ROOT) is not None
    assert job_rows.get(service.store, seeds.ROOT) is None, "its workflow writes what is shown"
