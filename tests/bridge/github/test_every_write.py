"""Every kind of write, its answer lost each time, and a new process after each loss: all is there once (L3, L8)."""

import time
from pathlib import Path
from typing import Literal

import pytest

from activities.github.account import App, Credentials
from activities.github.client import Client
from activities.settings.home import Home
from activities.store.github import account, comments, facts, reading
from bridge.github import orders, publishing
from bridge.github.session import Session
from bridge.operations import publish
from bridge.operations.resume import Verdict
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.github.conftest import Office
from tests.bridge.published import FACT, Scene, scene
from tests.github.hub import Hub
from tests.github.keys import private_key
from tests.github.wire import Request
from workflows.github.facts import FactKind
from workflows.github.marks import marked
from workflows.model.orders import ResumeOrder
from workflows.model.states import JobState, TaskState

ROOT = seeds.ROOT
FINDINGS = [{"title": f"Wrong {at}", "file": "limiter.py", "line": at + 1, "severity": "high"} for at in range(60)]
How = Literal["502", "cut"]
Kind = Literal["app", "user"]


class Once:
    """Matches every write that is seen for the first time: so the answer of each is lost once."""

    def __init__(self) -> None:
        self.lost: list[str] = []

    def __call__(self, request: Request) -> bool:
        key = f"{request.line} {request.body.decode()}"
        if not request.writes or request.path.endswith("/access_tokens") or key in self.lost:
            return False
        self.lost.append(key)
        return True


class Desks:
    """One process after the other: who has lost an answer dies, and the next one knows only what the store says."""

    def __init__(self, tree: Scene, credentials: Credentials) -> None:
        self.tree, self._credentials = tree, credentials
        self.died = 0

    async def until_quiet(self) -> None:
        store = self.tree.service.store
        reading.want(store)
        for _ in range(150):
            account.note(store, wrote_at=0.0, blocked_until=None)
            async with Client(store, self._credentials, self.tree.hub.address) as client:
                office = Office(self.tree.hub, Session(Service(self.tree.service.home), client))
                turn = await office.turn()
                for each in turn.pushes:
                    await publishing.push(office.session, each.fact_id)
                    self._seen_by_github()
            self.died += account.read(store).blocked_until is not None
            if turn.says == "nothing to do" and not turn.pushes:
                return
        raise AssertionError(turn.says)

    def _seen_by_github(self) -> None:
        for branch, commit in self.tree.there().items():
            if branch.startswith("service/"):
                self.tree.hub.push(branch, commit)


def judged(hub: Hub) -> list[str]:
    """The verdicts of all commits, the latest first."""
    found = [each for sha in hub.repository().commits for each in (*hub.checks(sha), *hub.statuses(sha))]
    return [each.get("conclusion") or each.get("state") for each in found]


def noted(hub: Hub) -> list[int]:
    """How many annotations each check run has."""
    return [each["output"]["annotations_count"] for sha in hub.repository().commits for each in hub.checks(sha)]


async def live(tree: Scene, desks: Desks, number: int) -> None:
    """A tree's whole life on a pull request, with every kind of thing that is ever written."""
    hub, service = tree.hub, tree.service
    running = {"state": JobState.RUNNING, "ended_at": None, "head_sha": None, "pull_request": number}
    tree.task(TaskState.OPEN, revision=1)
    tree.run(**running)
    seeds.write(service, seeds.event(1, kind="tree_started"))
    publish.publish(service, ROOT, actor="ann (cli)")
    await desks.until_quiet()
    waits = seeds.round_(opened_at=time.time(), expires_at=time.time() + 60)
    tree.task(TaskState.AWAITING_HUMAN, revision=2)
    seeds.write(service, waits, seeds.event(2, kind="round_opened"))
    await desks.until_quiet()
    no = {"channel": "comment", "actor": "ann", "verb": "retry", "round": 1}
    refused = seeds.event(4, kind="resume_refused", message="round 1 takes answer", data=no)
    seeds.write(service, seeds.event(3, kind="round_reminder", message="soon over", data={"round": 1}), refused)
    await desks.until_quiet()
    for body in ("/service resume answer red", "/service status", "/service kill"):
        hub.comment(as_="ann", number=number, body=body)
    await desks.until_quiet()
    over = {"opened_at": 1.0, "expires_at": 2.0, "end": "answered", "closed": "ann answered", "closed_at": 2.0}
    tree.task(TaskState.DONE, revision=9)
    tree.job(pull_request=number, revision=3, decision="changes_requested")
    seeds.write(service, seeds.round_(**over, revision=2), seeds.event(5, kind="round_closed"))
    result = {"decision": "changes_requested", "summary": "It is done.", "findings": FINDINGS}
    seeds.payload(service, ROOT, {"service_result": result}, attempt=2)
    seeds.write(service, seeds.event(6, kind="tree_ended"))
    await desks.until_quiet()


def opened(tree: Scene) -> int:
    """A pull request whose head git knows."""
    number, head = tree.hub.pull("topic"), run_git(tree.bare, "rev-parse", "main")
    run_git(tree.bare, "update-ref", f"refs/pull/{number}/head", head)
    tree.hub.push_head(number, head)
    return number


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
    said: list[str] = []

    async def resume(_: Service, order: ResumeOrder) -> Verdict:
        said.append(order.request_id)
        return Verdict("recorded", applied=True)

    monkeypatch.setattr(orders, "resume", resume)
    once = Once()
    with scene(home, tmp_path) as tree:
        hub, store = tree.hub, tree.service.store
        hub.user("ann", role="write")
        home.config.write_text(home.config.read_text() + "check = true\n")
        credentials = Credentials(token=hub.user("helper", role="write"))
        if kind == "app":
            credentials = Credentials(app=App("4242", str(hub.app()), private_key()))
        number, desks = opened(tree), Desks(tree, credentials)
        hub.after_write(once, how, times=10_000)
        await live(tree, desks, number)
        assert desks.died == len(once.lost) > 20
        assert facts.unwritten(store) == []
        assert {each.kind for root in (ROOT, "") for each in facts.of_root(store, root)} == {*FactKind}
        assert len(set(said)) == 1
        assert [each.state for each in comments.latest(store, 9)] == ["refused", "done", "done"]
        ours = [mark.rpartition("-")[2] for body in hub.bodies(number) if (mark := marked(body))]
        assert ours == ["status", "pause", "e3", "e4", "report", "refusal", "end"]
        reactions = [hub.reactions(each["id"]) for each in hub.comments(number) if each["user"]["login"] == "ann"]
        assert [[content for _, content in each] for each in reactions] == [["eyes", "+1"], ["eyes", "+1"], ["eyes"]]
        assert judged(hub)[0] == "failure"
        assert noted(hub) == ([len(FINDINGS)] if kind == "app" else [])
        (published,) = (each for each in hub.pulls() if each["number"] != number)
        assert (published["draft"], published["state"], marked(published["body"])) == (False, "open", FACT)
