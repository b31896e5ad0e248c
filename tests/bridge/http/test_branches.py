"""`POST /v1/jobs/JOB/merge`, `/drop` and `/retry`: the operations of `service job`, by HTTP (rulings J9, I5, L10)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from activities.settings.home import Home
from activities.store import tree_rows
from bridge.http.app import create_app
from bridge.machine import tokens_file
from bridge.operations.orders import trees
from bridge.operations.registry import agents
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.conftest import bearer
from tests.bridge.grown import CODE, FILE, grown
from tests.bridge.http.conftest import BASE, PLENTY
from tests.bridge.reviewed import TASK_BRANCH, A, B, Reviewed, reviewed
from tests.bridge.seeds import ROOT
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("J9", "I5", "L10")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Iterator[Reviewed]:
    home.config.write_text(PLENTY)
    made = reviewed(Service(home), tmp_path)
    yield made
    made.service.store.dispose()


async def post(service: Service, path: str, body: dict[str, Any] | None = None, token: str = "") -> httpx.Response:
    app = httpx.ASGITransport(create_app(service))
    shown = {"Authorization": f"Bearer {token}"} if token else bearer(service)
    async with httpx.AsyncClient(transport=app, base_url=BASE, headers=shown) as client:
        return await client.post(f"/v1/jobs/{path}", json=body)


async def test_legs_are_merged_in_order_all_or_none_and_twice_is_once(tree: Reviewed) -> None:
    answers = [await post(tree.service, f"{A}/merge", {"then": [B]}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    head = run_git(tree.repo, "rev-parse", TASK_BRANCH)
    expected = {"task_branch": TASK_BRANCH, "head": head, "left_out": []}
    assert answers[0].json() == expected | {"merged": [A, B], "already": []}
    assert answers[1].json() == expected | {"merged": [], "already": [A, B]}


async def test_it_is_recorded_under_the_token_s_name(tree: Reviewed) -> None:
    await post(tree.service, f"{A}/merge", token=tokens_file.add(tree.service.home, "ann", "act"))
    from activities.store import event_rows

    (event,) = [each for each in event_rows.of_tree(tree.service.store, seeds.ROOT) if each.kind == "branch_merged"]
    assert event.message.startswith("ann, over HTTP merged ")


async def test_what_was_decided_against_is_merged_only_anyway(tree: Reviewed) -> None:
    tree.write(2, a={"decision": "changes_requested"})
    refused = await post(tree.service, f"{A}/merge")
    assert (refused.status_code, refused.json()["code"]) == (409, "refused")
    assert f"service job merge {A} --anyway" in refused.json()["error"]
    assert (await post(tree.service, f"{A}/merge", {"anyway": True})).json()["merged"] == [A]


async def test_a_conflict_has_its_code_and_names_no_path_of_this_machine(tree: Reviewed) -> None:
    run_git(tree.repo, "checkout", "-q", "-b", TASK_BRANCH, tree.base)
    (tree.repo / "a.txt").write_text("another\n")
    run_git(tree.repo, "add", "a.txt")
    run_git(tree.repo, "commit", "-q", "-m", "another")
    run_git(tree.repo, "checkout", "-q", "main")
    refused = await post(tree.service, f"{A}/merge")
    assert (refused.status_code, refused.json()["code"]) == (409, "merge_conflict")
    assert "conflicts with" in refused.json()["error"]
    assert str(tree.repo) not in refused.text


async def test_a_branch_is_dropped_once_it_is_merged_or_by_force(tree: Reviewed) -> None:
    await post(tree.service, f"{A}/merge")
    gone = await post(tree.service, f"{A}/drop")
    branch = {"job_id": A, "branch": f"service/{A}-a", "head_sha": tree.heads["a"], "merged": True}
    assert gone.json() == branch | {"root_job_id": seeds.ROOT, "dropped": [branch], "stays": ""}
    assert (await post(tree.service, f"{A}/drop")).status_code == 404
    refused = await post(tree.service, f"{B}/drop")
    assert (refused.status_code, f"service job drop {B} --force" in refused.text) == (409, True)
    assert (await post(tree.service, f"{B}/drop", {"force": True})).json()["merged"] is False


@pytest.mark.ruling("D4")
async def test_a_retry_says_whether_its_tree_was_opened_again(tree: Reviewed, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[tuple[str, str]] = []

    async def retry(_: Service, job_id: str, *, actor: str) -> trees.RetryAnswer:
        ordered.append((job_id, actor))
        return trees.RetryAnswer(job_id=job_id, reopened=True)

    monkeypatch.setattr(trees, "retry", retry)
    answer = await post(tree.service, f"{B}/retry")
    assert (answer.status_code, answer.json()) == (200, {"job_id": B, "reopened": True})
    assert ordered == [(B, "bridge")]


@pytest.mark.ruling("O6")
async def test_a_root_is_merged_by_its_line_and_what_is_left_out_names_no_path(home: Home, tmp_path: Path) -> None:
    made = grown(Service(home), tmp_path)
    answer = await post(made.service, f"{ROOT}/merge")
    assert answer.json()["head"] == made.line
    [left] = answer.json()["left_out"]
    assert (left["leg"], left["files"], left["commands"][0]) == ("docs", [FILE], f"service job resolve {ROOT}")
    assert str(made.repo) not in answer.text
    gone = await post(made.service, f"{ROOT}/drop", {"force": True})
    assert (len(gone.json()["dropped"]), gone.json()["stays"]) == (4, "")
    assert run_git(made.repo, "branch", "--list", "service/*") == ""
    made.service.store.dispose()


@pytest.mark.ruling("O6")
async def test_a_conflict_is_given_to_an_agent(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(_: Service, tree: TreeInput, host: str) -> str:
        assert host
        return tree.root_job_id

    made = grown(Service(home), tmp_path)
    monkeypatch.setattr(trees, "start", start)
    refused = await post(made.service, f"{ROOT}/resolve")
    assert (refused.status_code, "no agent can resolve conflicts" in refused.text) == (400, True)
    can: dict[str, Any] = {"capabilities": "implement", "autonomy": "workspace-write", "repos": ("acme/shop",)}
    agents.add(made.service, NewAgent("dev", "shell", command="true", **can))
    answer = (await post(made.service, f"{ROOT}/resolve", {"agent": "dev"})).json()
    assert (answer["root_job_id"], answer["agent"], answer["task_branch"]) == (ROOT, "dev", TASK_BRANCH)
    assert [(each["leg"], each["files"]) for each in answer["conflicts"]] == [("docs", [FILE])]
    reads = tokens_file.add(made.service.home, "ann", "read")
    assert (await post(made.service, f"{ROOT}/resolve", token=reads)).status_code == 403
    made.service.store.dispose()


async def test_what_is_unseen_is_given_to_a_reviewer(tree: Reviewed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(service: Service, new: TreeInput, host: str) -> str:
        tree_rows.begin(service.store, new, host)
        return new.root_job_id

    monkeypatch.setattr(trees, "start", start)
    tree.merge("a", "b")
    nothing = await post(tree.service, f"{ROOT}/review")
    assert (nothing.status_code, "has no commit that still needs a review" in nothing.text) == (409, True)
    head = tree.commit(TASK_BRANCH)
    agents.add(tree.service, NewAgent("critic", "shell", command="cat", repos=("acme/shop",)))
    answer = (await post(tree.service, f"{ROOT}/review", {"agent": "critic"})).json()
    assert (answer["root_job_id"], answer["agent"], answer["head"], answer["files"]) == (
        ROOT,
        "critic",
        head,
        ["later.txt"],
    )
    asks = tokens_file.add(tree.service.home, "ann", "ask")
    assert (await post(tree.service, f"{ROOT}/review", token=asks)).status_code == 403


@pytest.mark.ruling("O6", "M2")
async def test_comments_on_a_diff_are_given_to_an_agent(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[TreeInput] = []

    async def start(_: Service, tree: TreeInput, host: str) -> str:
        begun.append(tree)
        return tree.root_job_id

    made = grown(Service(home), tmp_path)
    monkeypatch.setattr(trees, "start", start)
    can: dict[str, Any] = {"capabilities": "implement", "autonomy": "workspace-write", "repos": ("acme/shop",)}
    agents.add(made.service, NewAgent("dev", "shell", command="true", **can))
    comment = {"path": FILE, "line": 1, "text": "Say more."}
    body = {"text": "Nearly.", "comments": [comment], "head": made.heads["code"]}
    answer = (await post(made.service, f"{CODE}/revise", body)).json()
    assert answer == {
        "job_id": begun[0].root_job_id,
        "root_job_id": ROOT,
        "agent": "dev",
        "task_branch": TASK_BRANCH,
        "again": False,
    }
    assert "Say more." in (begun[0].assignment.prompt.inline or "")
    removed = await post(made.service, f"{CODE}/revise", {"comments": [comment | {"side": "old"}]})
    assert (removed.status_code, "does not show line 1 of the old" in removed.text) == (400, True)
    assert (await post(made.service, f"{CODE}/revise", body | {"head": made.base})).status_code == 409
    reads = tokens_file.add(made.service.home, "ann", "read")
    assert (await post(made.service, f"{CODE}/revise", body, token=reads)).status_code == 403
    made.service.store.dispose()
