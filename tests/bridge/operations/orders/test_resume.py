"""Checks of an order to a pause before it reaches the tree."""

from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.settings.home import Home
from bridge.operations.orders import resume
from bridge.operations.orders.resume import ResumeOutcome
from bridge.operations.service import Service
from bridge.operations.temporal import OrderDeclinedError
from tests.bridge import seeds
from workflows.model.errors import RefusedError
from workflows.model.event_kinds import EventKind
from workflows.model.orders import ResumeOrder
from workflows.model.refusals import ResumeFault

NOT_FOUND = RPCStatusCode.NOT_FOUND
ORDER = ResumeOrder(actor="ann", channel="cli", job_id=seeds.ROOT, verb="extend", text="2h")


class Tree:
    """A tree that does not know its round at first: its worker died while it wrote the round's rows."""

    def __init__(self, behind: int) -> None:
        self.behind, self.asked = behind, 0

    async def hear(self, *_: object) -> ResumeOutcome:
        self.asked += 1
        if self.asked <= self.behind:
            raise OrderDeclinedError(ApplicationError("it has no open round", {}, type=ResumeFault.NO_OPEN_ROUND))
        return ResumeOutcome("extend is accepted", applied=True)


async def connected(_: Service) -> SimpleNamespace:
    return SimpleNamespace(get_workflow_handle=lambda *_: None)


SPENT = {"kind": "failure", "questions": (), "verbs": ("abort", "extend"), "commands": ("service resume j abort",)}


@pytest.mark.ruling("F4", "F5")
@pytest.mark.parametrize(
    ("round_", "order", "why"),
    [
        (SPENT, {"verb": "abort"}, ""),
        (SPENT, {"verb": "retry"}, "round 1 of .* takes abort, extend now, not retry"),
        (SPENT, {"verb": "continue"}, "takes abort, extend now, not continue"),
        (SPENT, {"verb": "answer", "text": "red"}, "is a failure round: it takes"),
        (SPENT, {"verb": "extend", "text": "soon"}, "the duration"),
        (SPENT, {"verb": "abort", "round": 2}, "round 1 of .* is open now"),
        (SPENT, {"verb": "abort", "digest": "f" * 8}, "round 1 of .* is open now"),
        ({}, {"verb": "answer", "text": "PostgreSQL"}, ""),
        ({"verbs": ("abort", "extend")}, {"verb": "answer", "text": "PostgreSQL"}, ""),
        ({"verbs": ("abort", "extend")}, {"verb": "abort"}, ""),
        ({}, {"verb": "retry"}, "is an ask round: it takes"),
    ],
)
async def test_without_a_worker_an_order_is_refused_or_kept_but_never_both(
    home: Home, kept: list[ResumeOrder], round_: dict[str, Any], order: dict[str, Any], why: str
) -> None:
    service = Service(home)
    seeds.write(service, seeds.task(), seeds.job(), seeds.round_(**round_))
    resume_order = ResumeOrder(actor="ann", channel="cli", job_id=seeds.ROOT, **order)
    if why:
        with pytest.raises(RefusedError, match=why):
            await resume.resume(service, resume_order)
    else:
        assert "it is kept" in (await resume.resume(service, resume_order)).message
    assert len(kept) == (not why)


@pytest.mark.ruling("F4", "F7")
@pytest.mark.parametrize(("request_id", "taken"), [("comment-7-0", True), ("comment-8-0", False), ("", False)])
async def test_a_request_that_comes_again_was_taken_also_when_its_tree_is_over(
    home: Home, request_id: str, taken: bool
) -> None:
    """The sender was killed before it stored the answer; a tree can end in a moment."""
    service = Service(home)
    data = {"actor": "ann", "channel": "comment", "verb": "answer", "round": 1, "request": "comment-7-0"}
    says = "ann, on GitHub: answer on round 1"
    accepted = seeds.event(1, kind=EventKind.RESUME_ACCEPTED, message=says, data=data)
    over = seeds.round_(end="answered", closed_at=5.0, closed="answered by ann, on GitHub")
    seeds.write(service, seeds.task(state="done", ended_at=6.0), seeds.job(), over, accepted)
    order = ResumeOrder(
        actor="ann", channel="comment", job_id=seeds.ROOT, verb="answer", text="red", request_id=request_id
    )
    if taken:
        assert await resume.resume(service, order) == ResumeOutcome(says, applied=True)
    else:
        with pytest.raises(RefusedError, match=r"has ended \(done\); round 1 of .* is over: answered by ann"):
            await resume.resume(service, order)


@pytest.mark.ruling("F4")
@pytest.mark.parametrize("fault", [WorkflowUpdateRPCTimeoutOrCancelledError(), RPCError("gone", NOT_FOUND, b"")])
async def test_a_request_is_taken_also_if_the_worker_died_or_the_tree_ended_before_its_verdict_came(
    home: Home, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """The case `decide, rows written: record resume_accepted, 1, kill whoever is there` of the matrix of faults."""
    service, says = Service(home), "bridge: retry on round 1"
    seeds.write(service, seeds.task(), seeds.job(), seeds.round_(kind="failure", questions=(), verbs=("retry",)))

    async def execute_update(_: str, sent: ResumeOrder, **__: object) -> str:
        data = {"actor": "ann", "channel": "bridge", "verb": "retry", "round": 1, "request": sent.request_id}
        event = seeds.event(1, kind=EventKind.RESUME_ACCEPTED, message=says, data=data)
        seeds.write(service, seeds.round_(end="retried", revision=99), event)
        raise fault

    async def client(_: Service) -> SimpleNamespace:
        return SimpleNamespace(get_workflow_handle=lambda _: SimpleNamespace(execute_update=execute_update))

    async def settle(*_: object) -> None:
        """Find the workflow's rows as they are."""

    monkeypatch.setattr(resume, "client_of", client)
    monkeypatch.setattr(resume, "settle", settle)
    order = ResumeOrder(actor="ann", channel="bridge", job_id=seeds.ROOT, verb="retry")
    assert await resume.resume(service, order) == ResumeOutcome(says, applied=True)


@pytest.mark.ruling("F4")
@pytest.mark.parametrize(("waiting", "accepted"), [(True, True), (False, False)])
async def test_a_tree_that_is_about_to_come_to_its_round_again_is_asked_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, waiting: bool, accepted: bool
) -> None:
    service, tree = Service(home), Tree(behind=2)
    seeds.write(service, seeds.task(), seeds.job(), *([seeds.round_()] if waiting else []))
    monkeypatch.setattr(resume, "_send", tree.hear)
    monkeypatch.setattr(resume, "client_of", connected)
    if accepted:
        assert (await resume.resume(service, ORDER)).message == "extend is accepted"
        assert tree.asked == 3
    else:
        with pytest.raises(RefusedError, match="it has no open round"):
            await resume.resume(service, ORDER)
        assert tree.asked == 1
