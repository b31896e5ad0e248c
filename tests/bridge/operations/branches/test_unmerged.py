"""Unmerged branches of tasks that are over: found with their cost, and dropped where a person chooses them."""

import time
from pathlib import Path
from typing import Any

import pytest

from activities.settings.home import Home
from bridge.operations.branches import drops, merges
from bridge.operations.branches.drops import Choice
from bridge.operations.service import Service
from tests.activities.git.conftest import run_git
from tests.bridge import seeds
from tests.bridge.grown import TASK_BRANCH, Grown, grown
from tests.bridge.seeds import ROOT
from workflows.model.errors import RefusedError, UsageError
from workflows.model.states import TaskState, WaitsFor
from workflows.policy.tree_states import TreeState

pytestmark = pytest.mark.ruling("O6")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Grown:
    return grown(Service(home), tmp_path)


def becomes(tree: Grown, state: TaskState, revision: int, **fields: Any) -> None:
    changed: dict[str, Any] = {"state": state, "revision": revision, "ended_at": time.time()}
    seeds.write(tree.service, seeds.task(**(changed | fields)))


def branches(tree: Grown) -> list[str]:
    return run_git(tree.repo, "branch", "--format=%(refname:short)", "--list", "service/*").split()


def test_a_tree_is_measured_by_what_only_its_branches_have(tree: Grown) -> None:
    [work] = drops.find_unmerged(tree.service, Choice())
    assert (work.root_job_id, work.state, work.repo) == (ROOT, TreeState.DONE, "acme/shop")
    assert list(work.branches) == branches(tree)
    assert work.commits == int(run_git(tree.repo, "rev-list", "--count", *branches(tree), "--not", "main"))
    tree_size = int(run_git(tree.repo, "rev-list", "--disk-usage", "--objects", *branches(tree), "--not", "main"))
    assert work.bytes == tree_size > 0


def test_what_is_merged_into_a_branch_of_people_costs_nothing(tree: Grown) -> None:
    merges.merge(tree.service, [ROOT], actor="ann", anyway=False, into_mine=False)
    [work] = drops.find_unmerged(tree.service, Choice())
    assert TASK_BRANCH in work.branches, "the task's branch is the service's own"
    run_git(tree.repo, "branch", "kept", TASK_BRANCH)
    [less] = drops.find_unmerged(tree.service, Choice())
    assert 0 < less.commits < work.commits, "what was left out is merged nowhere"
    for name in branches(tree):
        run_git(tree.repo, "branch", f"kept-{name.replace('/', '-')}", name)
    assert drops.find_unmerged(tree.service, Choice()) == []


@pytest.mark.parametrize(
    ("state", "waits_for"),
    [
        (TaskState.OPEN, WaitsFor.NOTHING),
        (TaskState.AWAITING_HUMAN, WaitsFor.RESUME),
        (TaskState.BLOCKED, WaitsFor.RETRY),
    ],
)
def test_a_tree_that_may_go_on_is_neither_listed_nor_dropped(
    tree: Grown, state: TaskState, waits_for: WaitsFor
) -> None:
    works, before = drops.find_unmerged(tree.service, Choice()), branches(tree)
    becomes(tree, state, 90, waits_for=waits_for)
    assert drops.find_unmerged(tree.service, Choice()) == []
    with pytest.raises(RefusedError, match="it may still need its branches"):
        drops.find_unmerged(tree.service, Choice(trees=(ROOT,)))
    done = drops.drop_unmerged(tree.service, works, actor="ann")
    assert (done.dropped, len(done.problems)) == ((), 1)
    assert branches(tree) == before


def test_trees_are_chosen_by_id_age_and_state(tree: Grown) -> None:
    def found(**choice: object) -> bool:
        return bool(drops.find_unmerged(tree.service, Choice(**choice)))  # type: ignore[arg-type]

    becomes(tree, TaskState.DONE, 90, ended_at=time.time() - 7200)
    assert found(trees=(f"{ROOT}.1",), older_than="1h", state="done", repo="acme/shop")
    assert found(older_than="1 hour")
    assert not found(older_than="3h")
    assert not found(state="failed")
    becomes(tree, TaskState.BLOCKED, 91, waits_for=WaitsFor.DISMISS)
    assert found(state="failed")
    for choice, why in (
        ({"state": "running"}, "only of done, cut_short, failed, cancelled"),
        ({"older_than": "x"}, "older-than"),
    ):
        with pytest.raises(UsageError, match=why):
            found(**choice)


def test_dropping_removes_every_branch_of_the_tree_and_says_what_stays(tree: Grown) -> None:
    works = drops.find_unmerged(tree.service, Choice(trees=(ROOT,)))
    name = branches(tree)[0]
    run_git(tree.repo, "worktree", "add", "-q", str(tree.repo.parent / "look"), name)
    done = drops.drop_unmerged(tree.service, works, actor="ann")
    assert (done.dropped, len(done.problems)) == ((), 1)
    assert f"{name} is checked out in" in done.problems[0]
    run_git(tree.repo, "worktree", "remove", str(tree.repo.parent / "look"))
    done = drops.drop_unmerged(tree.service, works, actor="ann")
    assert {each.branch for each in done.dropped} == set(works[0].branches)
    assert branches(tree) == []
    assert drops.find_unmerged(tree.service, Choice()) == []
