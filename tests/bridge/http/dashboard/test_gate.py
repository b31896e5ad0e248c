"""The merge gate on a tree's page, and merges against a decision, from every page (rulings L10, M3)."""

from pathlib import Path

import pytest
from sqlalchemy import update

from activities.store import schema
from bridge.operations.branches import merge_gate
from bridge.operations.jobs import jobs
from bridge.operations.orders import trees
from bridge.operations.registry import agents
from bridge.operations.registry.agents import NewAgent
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import Surfer
from tests.bridge.reviewed import TASK_BRANCH, A, B, V, reviewed
from tests.bridge.seeds import ROOT
from tests.sealed import seal
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.tree.state import TreeInput

pytestmark = pytest.mark.ruling("L10", "M3")
TREE = f"/ui/trees/{ROOT}"


async def test_a_done_tree_says_whether_it_is_ready(service: Service, ann: Surfer, tmp_path: Path) -> None:
    tree = reviewed(service, tmp_path)
    shown = await ann.open(f"{TREE}/changes")
    assert ("ready to be merged" in shown.words, "Merge 2 parts into main" in shown.words) == (False, True)
    shown = await ann.send(shown.form(f"{TREE}/branches"), "Merge all 2")
    assert f"2 parts merged into {TASK_BRANCH} ({run_git(tree.repo, 'rev-parse', TASK_BRANCH)[:7]} )" in shown.words
    head = tree.merge("a", "b")
    assert f"Ready to be merged , at {head[:7]} ." in shown.words
    tree.write(2, v={"decision": "changes_requested", "attempt": 2})
    fields = {"attempt": 2, "base_sha": tree.base, "given": list(tree.heads.values())}
    seeds.payload(service, V, {}, **fields)
    assert f"Not to be merged , at {head[:7]} : part v" in (await ann.open(TREE)).words


async def test_what_a_review_has_not_seen_is_said_and_asked_for(
    service: Service, ann: Surfer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[TreeInput] = []

    async def start(_: Service, new: TreeInput, host: str) -> str:
        begun.append(new)
        seeds.write(service, seeds.task(new.root_job_id, task_id=new.task_id), seeds.job(new.root_job_id))
        return new.root_job_id

    monkeypatch.setattr(trees, "start", start)
    tree = reviewed(service, tmp_path)
    tree.merge("a", "b")
    head = tree.commit(TASK_BRANCH)
    shown = await ann.open(TREE)
    assert "it has not seen 1 commit in later.txt" in shown.words
    assert "/ui/new/agent?repo=acme/shop" in shown.read.links, "nobody can review it yet"
    agents.add(service, NewAgent("critic", "shell", command="cat", repos=("acme/shop",)))
    shown = await ann.send((await ann.open(TREE)).form(f"{TREE}/finish", form_id="finish"), "Ask for a review")
    assert f"critic reviews {head[:7]}" in shown.words
    assert f"/ui/trees/{begun[0].root_job_id}" in shown.read.links
    assert f"the later review {begun[0].root_job_id} is not done" in shown.words


@pytest.mark.parametrize("state", [each for each in TaskState if each is not TaskState.DONE])
async def test_no_other_tree_is_judged(
    service: Service, ann: Surfer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: TaskState
) -> None:
    def judged(*_: object, **__: object) -> None:
        raise AssertionError("nobody asked")

    reviewed(service, tmp_path, task={"state": state})
    monkeypatch.setattr(merge_gate, "of_tree", judged)
    shown = await ann.open(TREE)
    assert (shown.status, 'id="gate"' in shown.html) == (200, False)
    assert (await ann.open("/ui/")).status == 200


async def test_a_tree_that_wrote_nothing_is_not_judged(service: Service, ann: Surfer) -> None:
    seeds.write(service, seeds.task(state=TaskState.DONE), seeds.job(state=JobState.SUCCEEDED, decision="approved"))
    assert 'id="gate"' not in (await ann.open(TREE)).html


async def test_a_merge_that_is_decided_against_needs_a_tick(service: Service, ann: Surfer, tmp_path: Path) -> None:
    tree = reviewed(service, tmp_path)
    assert 'name="anyway"' not in (await ann.open(f"{TREE}/changes")).html, "nobody objects"
    tree.write(2, v={"decision": "changes_requested", "attempt": 2})
    seeds.payload(service, V, {}, attempt=2, base_sha=tree.base, given=[tree.heads["a"]])
    with service.store.begin() as connection:
        connection.execute(update(schema.jobs).where(schema.jobs.c.job_id == B).values(attempt=1))
    shown = await ann.open(f"{TREE}/changes")
    form = shown.form(f"{TREE}/branches")
    refused = await ann.send(form, "Merge the chosen", leg=[A, B])
    assert refused.status == 409
    assert f"part a ({A}) is not approved: part v ({V}), which looked at it" in refused.words
    assert f"service job merge {A} {B} --anyway" in refused.words
    shown = await ann.send(refused.form(f"{TREE}/branches"), "Merge the chosen", leg=[A, B], anyway="yes")
    assert f"{A} : is merged into {TASK_BRANCH}" in shown.words
    messages = [event.message for event in jobs.events(service, ROOT) if event.kind == "branch_merged"]
    assert "ann@desk, on the page merged" in messages[0]
    assert ["although" in each for each in messages] == [True, False]


async def test_the_same_on_the_leg_s_own_page(service: Service, ann: Surfer, tmp_path: Path) -> None:
    reviewed(service, tmp_path, a={"decision": "changes_requested"})
    page = f"/ui/jobs/{A}"
    shown = await ann.open(page)
    assert f"anyway: {A} asks for changes" in shown.words
    refused = await ann.send(shown.form(f"{page}/merge"))
    assert (refused.status, "is not approved" in refused.words) == (409, True)
    shown = await ann.send(refused.form(f"{page}/merge"), anyway="yes")
    assert f"is merged into {TASK_BRANCH}" in shown.words


async def test_a_conflict_ends_from_the_first_page_whatever_was_decided(
    service: Service, ann: Surfer, tmp_path: Path
) -> None:
    waits = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "to_retry": V, "next": f"service job retry {V}"}
    tree = reviewed(service, tmp_path, task=waits, a={"decision": "changes_requested"})
    tree.write(2, a={"decision": "changes_requested"}, v={"state": JobState.BLOCKED, "decision": None})
    clash = {"branch": f"service/{B}-b", "against": [f"service/{A}-a"], "files": ["a.txt"]}
    with service.store.begin() as connection:
        values = {"given": None, "diagnostics": {"conflict": clash}}
        connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == V).values(**values))
    seal(service.store)
    shown = await ann.open("/ui/")
    refused = await ann.send(shown.form(f"/ui/jobs/{A}/merge"))
    assert (refused.status, "is not approved" in refused.words) == (409, True)
    shown = await ann.send(refused.form(f"/ui/jobs/{A}/merge"), anyway="yes")
    assert f"{A} : is merged into {TASK_BRANCH}" in shown.words
