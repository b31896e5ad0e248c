"""The whole life of a tree on a pull request, with every kind of write to GitHub."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from activities.github.client import Client
from activities.github.credentials import App, Credentials
from activities.settings.home import Home
from activities.store.github import account, facts
from bridge.github import publishing
from bridge.github.session import GithubSession
from bridge.operations.branches import publish
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.github.conftest import Office
from tests.bridge.published import Scene, scene
from tests.github.keys import private_key
from workflows.model.states import JobState, TaskState

ROOT = seeds.ROOT
FINDINGS = [{"title": f"Wrong {at}", "file": "limiter.py", "line": at + 1, "severity": "high"} for at in range(60)]
Kind = Literal["app", "user"]


class Desks:
    """One process after the other: a lost answer kills it, and the next one knows only the store."""

    def __init__(self, tree: Scene, credentials: Credentials) -> None:
        self.tree, self._credentials = tree, credentials
        self.died = 0

    async def until_quiet(self) -> None:
        store = self.tree.service.store
        account.want_reading(store)
        for _ in range(150):
            account.note(store, wrote_at=0.0, blocked_until=None)
            async with Client(store, self._credentials, self.tree.hub.address) as client:
                office = Office(self.tree.hub, GithubSession(Service(self.tree.service.home), client))
                turn = await office.turn()
                for push in turn.pushes:
                    await publishing.push(office.session, push.fact_id)
                    self._seen_by_github()
            self.died += account.read(store).blocked_until is not None
            if turn.says == "nothing to do" and facts.waiting_until(store) is None:
                return
        raise AssertionError(turn.says)

    def _seen_by_github(self) -> None:
        for branch, commit in self.tree.there().items():
            if branch.startswith("service/"):
                self.tree.hub.push(branch, commit)


@contextmanager
def peopled(home: Home, folder: Path, kind: Kind) -> Iterator[tuple[Scene, Desks]]:
    """Open a scene where ann may write; the account is a GitHub App or a user."""
    with scene(home, folder) as tree:
        tree.hub.user("ann", role="write")
        home.config.write_text(home.config.read_text() + "check = true\n")
        credentials = Credentials(token=tree.hub.user("helper", role="write"))
        if kind == "app":
            credentials = Credentials(app=App("4242", str(tree.hub.app()), private_key()))
        yield tree, Desks(tree, credentials)


async def live(tree: Scene, desks: Desks, number: int) -> None:
    """Play a tree from start to end; what ann writes meanwhile is accepted, reported and refused."""
    hub, service = tree.hub, tree.service
    running: dict[str, Any] = {"state": JobState.RUNNING, "ended_at": None, "head_sha": None, "pull_request": number}
    tree.task(TaskState.OPEN, revision=1)
    tree.run(**running)
    seeds.write(service, seeds.event(1, kind="tree_started"))
    publish.publish(service, ROOT, actor="ann, in the terminal")
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
    over: dict[str, Any] = {
        "opened_at": 1.0,
        "expires_at": 2.0,
        "end": "answered",
        "closed": "ann answered",
        "closed_at": 2.0,
    }
    tree.task(TaskState.DONE, revision=9)
    tree.job(pull_request=number, revision=3, decision="changes_requested")
    seeds.write(service, seeds.round_(**over, revision=2), seeds.event(5, kind="round_closed"))
    result = {"decision": "changes_requested", "summary": "It is done.", "findings": FINDINGS}
    seeds.payload(service, ROOT, {"service_result": result}, attempt=2)
    seeds.write(service, seeds.event(6, kind="tree_ended"))
    await desks.until_quiet()


def opened(tree: Scene) -> int:
    """Open a pull request whose head git knows."""
    number, head = tree.hub.pull("topic"), run_git(tree.bare, "rev-parse", "main")
    run_git(tree.bare, "update-ref", f"refs/pull/{number}/head", head)
    tree.hub.push_head(number, head)
    return number
