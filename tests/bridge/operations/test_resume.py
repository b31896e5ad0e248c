"""What an order to a pause meets on its way to the tree."""

from types import SimpleNamespace

import pytest
from temporalio.exceptions import ApplicationError

from activities.settings.home import Home
from bridge.operations import resume
from bridge.operations.resume import Verdict
from bridge.operations.service import Service
from bridge.operations.temporal import DeclinedError
from tests.bridge import seeds
from workflows.model.errors import RefusedError
from workflows.model.orders import ResumeOrder
from workflows.model.refusals import ResumeFault

ORDER = ResumeOrder(actor="ann", channel="cli", job_id=seeds.ROOT, verb="extend", text="2h")


class Tree:
    """A tree that does not know of its round for the first looks: its worker died as it wrote the round's rows."""

    def __init__(self, behind: int) -> None:
        self.behind, self.asked = behind, 0

    async def hear(self, *_: object) -> Verdict:
        self.asked += 1
        if self.asked <= self.behind:
            raise DeclinedError(ApplicationError("nobody is waited for", {}, type=ResumeFault.NO_OPEN_ROUND))
        return Verdict("extend is accepted", applied=True)


async def connected(_: Service) -> SimpleNamespace:
    return SimpleNamespace(get_workflow_handle_for=lambda *_: None)


@pytest.mark.ruling("F4")
@pytest.mark.parametrize(("waiting", "accepted"), [(True, True), (False, False)])
async def test_a_tree_that_is_about_to_come_to_its_round_again_is_asked_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, waiting: bool, accepted: bool
) -> None:
    service, tree = Service(home), Tree(behind=2)
    seeds.write(service, seeds.task(), seeds.job(), *([seeds.round_()] if waiting else []))
    monkeypatch.setattr(resume, "_asked", tree.hear)
    monkeypatch.setattr(resume, "client_of", connected)
    if accepted:
        assert (await resume.resume(service, ORDER)).message == "extend is accepted"
        assert tree.asked == 3
    else:
        with pytest.raises(RefusedError, match="nobody is waited for"):
            await resume.resume(service, ORDER)
        assert tree.asked == 1
