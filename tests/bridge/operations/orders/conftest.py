"""Trees to give orders about, and the trees that orders start."""

from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.operations.orders import trees
from bridge.operations.service import Service
from tests.bridge.grown import Grown, grown
from tests.bridge.operations.orders.team import add
from workflows.tree.state import TreeInput


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Grown:
    made = grown(Service(home), tmp_path)
    add(made.service, "dev")
    return made


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[TreeInput]:
    """Return the list of trees that were started, in place of Temporal."""
    started: list[TreeInput] = []

    async def start(_: Service, tree: TreeInput, host: str) -> str:
        assert host
        started.append(tree)
        return tree.root_job_id

    monkeypatch.setattr(trees, "start", start)
    return started
