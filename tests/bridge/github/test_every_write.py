"""Every kind of write with its answer lost, and a new process after each loss: everything exists once (L3, L8)."""

from pathlib import Path
from typing import Literal

import pytest

from activities.settings.home import Home
from activities.store.github import facts, threads
from bridge.github import orders
from bridge.operations.orders.resume import ResumeOutcome
from bridge.operations.service import Service
from tests.bridge.github.life import FINDINGS, ROOT, Kind, live, opened, peopled
from tests.bridge.published import FACT
from tests.github.hub import Hub
from tests.github.wire import Request
from workflows.github.facts import FactKind, fact_in
from workflows.model.orders import ResumeOrder

How = Literal["502", "cut"]


class Once:
    """Matches every write at its first occurrence, so that each loses its answer once."""

    def __init__(self) -> None:
        self.lost: list[str] = []

    def __call__(self, request: Request) -> bool:
        key = f"{request.line} {request.body.decode()}"
        if not request.writes or request.path.endswith("/access_tokens") or key in self.lost:
            return False
        self.lost.append(key)
        return True


def judged(hub: Hub) -> list[str]:
    """Return the verdicts of all commits, the latest first."""
    checks = [each for sha in hub.repository().commits for each in (*hub.checks(sha), *hub.statuses(sha))]
    return [str(each.get("conclusion") or each.get("state")) for each in checks]


def noted(hub: Hub) -> list[int]:
    """Return the number of annotations of each check run."""
    return [each["output"]["annotations_count"] for sha in hub.repository().commits for each in hub.checks(sha)]


@pytest.mark.ruling("L3", "L6", "L9", "L10")
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("app", "cut"),
        pytest.param("user", "cut", marks=pytest.mark.long),
        pytest.param("app", "502", marks=pytest.mark.long),
        pytest.param("user", "502", marks=pytest.mark.long),
    ],
)
async def test_each_kind_of_write_is_there_once_though_every_answer_was_lost(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, how: How
) -> None:
    words: list[str] = []

    async def resume(_: Service, order: ResumeOrder) -> ResumeOutcome:
        words.append(order.request_id)
        return ResumeOutcome("recorded", applied=True)

    monkeypatch.setattr(orders, "resume", resume)
    once = Once()
    with peopled(home, tmp_path, kind) as (tree, desks):
        hub, store, number = tree.hub, tree.service.store, opened(tree)
        hub.after_write(once, how, times=10_000)
        await live(tree, desks, number)
        assert desks.died == len(once.lost) > 20
        assert facts.failures(store) == facts.waiting(store) == []
        assert {each.kind for root in (ROOT, "") for each in facts.of_root(store, root)} == {*FactKind}
        assert len(set(words)) == 1
        assert [each.state for each in threads.latest_comments(store, 9)] == ["refused", "done", "done"]
        marks = [mark.removesuffix(f"-{ROOT}") for body in hub.bodies(number) if (mark := fact_in(body))]
        kinds = ["status", "pause", "e3", "e4", "report", "refusal", "end"]
        assert [mark.rpartition("-")[2] for mark in marks] == kinds
        reactions = [hub.reactions(each["id"]) for each in hub.comments(number) if each["user"]["login"] == "ann"]
        assert [[content for _, content in each] for each in reactions] == [["eyes", "+1"], ["eyes", "+1"], ["eyes"]]
        assert judged(hub)[0] == "failure"
        assert noted(hub) == ([len(FINDINGS)] if kind == "app" else [])
        (published,) = (each for each in hub.pulls() if each["number"] != number)
        assert (published["draft"], published["state"], fact_in(published["body"])) == (False, "open", FACT)
