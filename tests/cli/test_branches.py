"""`service job publish` waits for the pull request, with a bound; `service job gate` has exit codes for programs."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store.github import account, facts
from bridge.operations.branches import publish
from bridge.operations.service import Service
from cli.main import main
from tests.bridge.published import FACT, LEGS, SHOP, TASK_BRANCH, Scene, scene
from tests.bridge.reviewed import V, reviewed
from tests.bridge.seeds import ROOT
from tests.waiting import wait_for
from workflows.contract.models import Action

pytestmark = pytest.mark.ruling("K6")
URL = "https://github.com/acme/shop/pull/4"


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Iterator[Scene]:
    with scene(home, tmp_path) as made:
        made.task()
        yield made


@pytest.fixture
def written(tree: Scene) -> Iterator[None]:
    """Write the pull request as soon as it is wanted."""

    def write() -> None:
        store = tree.service.store
        wait_for(lambda: facts.get(store, FACT))
        facts.mark_written(store, FACT, github_id="4", url=URL)

    thread = threading.Thread(target=write)
    thread.start()
    yield
    thread.join()


@pytest.mark.ruling("L9")
@pytest.mark.usefixtures("written")
def test_it_prints_the_address(tree: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    tree.run()
    assert main(["job", "publish", ROOT]) == 0
    assert capsys.readouterr().out == f"{URL}\n"
    assert main(["job", "branches", ROOT]) == 0
    assert f"published {TASK_BRANCH}: {URL}" in capsys.readouterr().out


@pytest.mark.ruling("L9")
def test_who_does_not_wait_is_told_how_far_it_is(tree: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    tree.run()
    assert main(["job", "publish", ROOT, "--no-wait", "--json"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert (view["state"], view["over"], view["branch"], view["github"]) == ("push", False, TASK_BRANCH, SHOP)
    assert publish.publication(tree.fact).actor.endswith(", in the terminal")


@pytest.mark.ruling("L9")
def test_nobody_waits_for_a_github_that_wants_to_be_left_alone(tree: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    tree.run()
    account.note(tree.service.store, blocked_until=time.time() + 3000, problem="the quota is used up")
    assert main(["job", "publish", ROOT]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{TASK_BRANCH} of {ROOT} will be published at {SHOP}: GitHub is left alone until ")
    assert "the quota is used up; it will be done then" in out


@pytest.mark.ruling("L9")
def test_it_waits_no_longer_than_a_person(
    tree: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.run()
    monkeypatch.setattr(publish, "WAIT_SECONDS", 0.3)
    assert main(["job", "publish", ROOT]) == 0
    assert f"see how far it is: service job publish {ROOT}" in capsys.readouterr().out


@pytest.mark.ruling("L9")
def test_what_failed_is_said_as_a_refusal(tree: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    commit = tree.run()
    publish.publish(tree.service, ROOT, actor="ann")
    was = publish.publication(tree.fact).model_copy(update={"commit": commit, "state": "merged"})
    facts.note(tree.service.store, FACT, text=was.model_dump_json())
    facts.mark_written(tree.service.store, FACT, github_id="4", url=URL)
    assert main(["job", "publish", ROOT]) == 0
    assert "it is merged already" in capsys.readouterr().out

    def fail() -> None:
        wait_for(lambda: tree.fact.state == "push")
        facts.give_up(tree.service.store, FACT, "somebody else pushed")

    thread = threading.Thread(target=fail)
    thread.start()
    assert main(["job", "publish", ROOT, "--base", "stable"]) == 3
    thread.join()
    errors = capsys.readouterr().err
    assert f"{TASK_BRANCH} is not published: somebody else pushed" in errors
    assert f"try: service job publish {ROOT}" in errors


@pytest.mark.ruling("L9")
def test_several_branches_are_merged_first(tree: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    tree.job(action=Action.ASK)
    for name in "ab":
        tree.run(LEGS[name], delegation_id=name)
    assert main(["job", "publish", ROOT]) == 3
    assert f"try: service job merge {ROOT}" in capsys.readouterr().err


@pytest.mark.ruling("L10")
def test_ready_is_a_word_and_zero_and_everything_else_a_reason_and_three(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = reviewed(Service(home), tmp_path)
    tree.merge("a")
    assert main(["job", "gate", ROOT]) == 3
    printed = capsys.readouterr()
    assert [line.count("; next: ") for line in printed.out.splitlines()] == [1, 1]
    assert printed.err == ""
    head = tree.merge("a", "b")
    assert main(["job", "gate", V]) == 0
    assert capsys.readouterr().out == "ready\n"
    assert main(["job", "gate", ROOT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "state": "passing",
        "reasons": [],
        "head": head,
        "unseen": [],
    }
    tree.write(2, v={"decision": "changes_requested"})
    assert main(["job", "gate", ROOT, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["state"] == "failing"


@pytest.mark.ruling("L10")
def test_a_pull_request_that_cannot_be_fetched_is_a_reason(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = reviewed(Service(home), tmp_path)
    assert main(["job", "gate", ROOT, "--pr", "7"]) == 3
    assert f"{tree.repo} has no remote to fetch acme/shop from; next: git -C" in capsys.readouterr().out
