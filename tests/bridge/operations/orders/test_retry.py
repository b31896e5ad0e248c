"""An order to run a job again, before the tree has come to where its rows are."""

from types import SimpleNamespace

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from activities.settings.home import Home
from bridge.operations.orders import trees
from bridge.operations.orders.trees import RetryAnswer
from bridge.operations.service import Service
from tests.bridge import seeds
from workflows.model.errors import RefusedError
from workflows.model.states import WaitsFor


@pytest.mark.ruling("D4")
@pytest.mark.parametrize(("offered", "asked"), [(True, 3), (False, 1)])
async def test_a_tree_that_is_about_to_come_to_its_block_again_is_asked_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, offered: bool, asked: int
) -> None:
    """Its worker died when the rows said already that the part failed, and offered its retry."""
    service, orders = Service(home), list[object]()
    waits = {"next": f"service job retry {seeds.ROOT}", "waits_for": WaitsFor.RETRY} if offered else {}
    seeds.write(service, seeds.task(state="blocked"), seeds.job(state="failed", **waits))

    async def execute_update(_: object, order: object, **__: object) -> None:
        orders.append(order)
        if len(orders) < 3:
            raise WorkflowUpdateFailedError(ApplicationError("part bad is running", type="Refused"))

    async def client(_: Service) -> SimpleNamespace:
        return SimpleNamespace(get_workflow_handle=lambda _: SimpleNamespace(execute_update=execute_update))

    monkeypatch.setattr(trees, "client_of", client)
    if offered:
        assert await trees.retry(service, seeds.ROOT, actor="ann") == RetryAnswer(job_id=seeds.ROOT, reopened=False)
    else:
        with pytest.raises(RefusedError, match="part bad is running"):
            await trees.retry(service, seeds.ROOT, actor="ann")
    assert len(orders) == asked
