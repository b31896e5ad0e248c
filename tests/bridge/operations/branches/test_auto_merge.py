"""Automatic merges of ended trees, where settings say so (ruling O6)."""

import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from activities.settings.home import Home
from activities.store import branch_rows
from bridge.operations.branches import auto_merge, drops, merge_gate
from bridge.operations.branches.auto_merge import ACTOR, EndWatcher
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, run_git
from tests.bridge import seeds
from tests.bridge.grown import CODE, FILE, FIX, RECHECK, REPLAN, TASK_BRANCH, Grown, grown
from tests.bridge.seeds import ROOT
from tests.waiting import wait_for
from workflows.github.merge_gate import GateState, GateVerdict
from workflows.model.errors import UnreachableError
from workflows.model.event_kinds import BranchEventKind
from workflows.model.event_payloads import BranchEvent
from workflows.model.states import TaskState, WaitsFor

pytestmark = pytest.mark.ruling("O6")


@pytest.fixture
def tree(home: Home, tmp_path: Path) -> Grown:
    home.config.write_text('[orchestrate]\nmerge = "line"\n')
    return ended(grown(Service(home), tmp_path))


def ended(tree: Grown, state: TaskState = TaskState.DONE, revision: int = 2) -> Grown:
    seeds.write(tree.service, seeds.task(state=state, revision=revision, ended_at=time.time()))
    return tree


def test_the_task_branch_is_moved_to_the_line_once(tree: Grown) -> None:
    watcher = EndWatcher()
    assert watcher.look(tree.service) == [ROOT]
    assert run_git(tree.repo, "rev-parse", TASK_BRANCH) == tree.line
    assert tree.files()[FILE] == "code, mended"
    merged = [(job_id, event.actor) for _, job_id, event in branch_rows.events_of(tree.service.store, ROOT)]
    assert merged == [(CODE, ACTOR), (FIX, ACTOR)]
    assert watcher.look(tree.service) == EndWatcher().look(tree.service) == []
    assert run_git(tree.repo, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert not (tree.repo / FILE).exists()


def test_a_process_killed_before_the_record_makes_up_for_it(tree: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(branch_rows, "record", killed)
        with pytest.raises(KilledError):
            EndWatcher().look(tree.service)
    assert run_git(tree.repo, "rev-parse", TASK_BRANCH) == tree.line
    assert branch_rows.events_of(tree.service.store, ROOT) == []
    assert EndWatcher().look(tree.service) == [ROOT]
    assert len(branch_rows.events_of(tree.service.store, ROOT)) == 2
    assert run_git(tree.repo, "rev-parse", TASK_BRANCH) == tree.line


@pytest.mark.ruling("G1.cut")
def test_a_tree_that_was_cut_short_is_left_to_a_person(tree: Grown) -> None:
    cut = seeds.task(state=TaskState.DONE, waits_for=WaitsFor.START, revision=3, ended_at=time.time())
    seeds.write(tree.service, cut)
    assert EndWatcher().look(tree.service) == []
    assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""


def test_what_people_put_on_the_branch_is_kept(tree: Grown) -> None:
    run_git(tree.repo, "checkout", "-q", "-b", TASK_BRANCH, tree.base)
    commit_file(tree.repo, "mine.txt", "mine")
    run_git(tree.repo, "checkout", "-q", "main")
    assert EndWatcher().look(tree.service) == [ROOT]
    assert {"mine.txt", FILE} <= set(tree.files())


def test_what_does_not_pass_is_left_to_people(tree: Grown) -> None:
    tree.looked(RECHECK, "changes_requested", "fix", parent=REPLAN, revision=2)
    assert EndWatcher().look(tree.service) == []
    assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""


@pytest.mark.parametrize("state", [TaskState.OPEN, TaskState.BLOCKED, TaskState.CANCELLED])
def test_no_other_tree_is(tree: Grown, state: TaskState) -> None:
    ended(tree, state, 3)
    assert EndWatcher().look(tree.service) == []


@pytest.mark.parametrize(
    "judged",
    [
        {"side_effect": UnreachableError("git could not be started")},
        {"return_value": GateVerdict(GateState.PENDING, (), None)},
        {"return_value": GateVerdict(GateState.UNKNOWN, (), None)},
    ],
)
def test_what_cannot_be_judged_now_is_judged_again(
    tree: Grown, monkeypatch: pytest.MonkeyPatch, judged: dict[str, Any]
) -> None:
    monkeypatch.setattr(auto_merge, "AGAIN_SECONDS", 0.0)
    watcher = EndWatcher()
    with monkeypatch.context() as patch:
        patch.setattr(merge_gate, "of_tree", Mock(**judged))
        assert watcher.look(tree.service) == []
    wait_for(lambda: watcher.look(tree.service) == [ROOT])


def test_after_a_start_the_last_ends_come_first_and_later_ones_do_not_wait_for_all(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A soak whose bridge was killed every minute: it judged 300 trees from the first, and came to the last never."""
    home.config.write_text('[orchestrate]\nmerge = "line"\n')
    service, begun = Service(home), time.time()
    seeds.repo(service, host=service.settings.host)
    for root in (roots := [f"job-{number:012}" for number in range(5)]):
        seeds.begun(service, "", root)
        seeds.write(service, seeds.task(root, state=TaskState.DONE, ended_at=begun + roots.index(root)))
    monkeypatch.setattr(auto_merge, "AT_ONCE", 2)
    monkeypatch.setattr(auto_merge, "_merge_if_ready", lambda *_: True)
    watcher = EndWatcher()
    assert [watcher.look(service) for _ in range(3)] == [[roots[4], roots[3]], [roots[2], roots[1]], [roots[0]]]


def test_what_was_dropped_stays_dropped(tree: Grown) -> None:
    EndWatcher().look(tree.service)
    drops.drop(tree.service, ROOT, actor="ann", force=True)
    assert EndWatcher().look(tree.service) == []
    assert run_git(tree.repo, "branch", "--list", "service/*") == ""


def test_what_was_dropped_before_is_merged_by_nobody(tree: Grown) -> None:
    drops.drop(tree.service, CODE, actor="ann", force=True)
    assert EndWatcher().look(tree.service) == []
    assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""


def test_a_leg_dropped_beside_the_line_leaves_the_tree_to_people(tree: Grown) -> None:
    beside = BranchEvent(actor="ann", branch="service/beside", head_sha="0" * 40, task_branch=TASK_BRANCH, merged=False)
    branch_rows.record(tree.service.store, BranchEventKind.DROPPED, RECHECK, beside, "dropped")
    assert EndWatcher().look(tree.service) == []
    assert run_git(tree.repo, "branch", "--list", TASK_BRANCH) == ""


def test_a_conflict_with_what_people_put_there_is_left_to_them(tree: Grown) -> None:
    run_git(tree.repo, "checkout", "-q", "-b", TASK_BRANCH, tree.base)
    head = commit_file(tree.repo, FILE, "mine")
    run_git(tree.repo, "checkout", "-q", "main")
    assert EndWatcher().look(tree.service) == []
    assert run_git(tree.repo, "rev-parse", TASK_BRANCH) == head


def test_without_the_setting_nothing_is(home: Home, tmp_path: Path) -> None:
    made = ended(grown(Service(home), tmp_path))
    assert EndWatcher().look(made.service) == []
    assert run_git(made.repo, "branch", "--list", TASK_BRANCH) == ""
