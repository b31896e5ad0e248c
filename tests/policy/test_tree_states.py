"""The state of a tree in one word."""

import pytest

from workflows.model.states import TaskState, WaitsFor
from workflows.policy.tree_states import TreeGroup, TreeState, tree_group, tree_state


@pytest.mark.parametrize(
    ("task", "waits_for", "running", "state"),
    [
        (TaskState.OPEN, WaitsFor.NOTHING, True, TreeState.RUNNING),
        (TaskState.OPEN, WaitsFor.NOTHING, False, TreeState.QUEUED),
        (TaskState.OPEN, WaitsFor.RUNS, True, TreeState.ENDING),
        (TaskState.AWAITING_HUMAN, WaitsFor.RESUME, True, TreeState.WAITING),
        (TaskState.BLOCKED, WaitsFor.RETRY, False, TreeState.BLOCKED),
        (TaskState.BLOCKED, WaitsFor.RUNS, True, TreeState.ENDING),
        (TaskState.BLOCKED, WaitsFor.DISMISS, False, TreeState.FAILED),
        (TaskState.CANCELLED, WaitsFor.START, False, TreeState.FAILED),
        (TaskState.CANCELLED, WaitsFor.NOTHING, False, TreeState.CANCELLED),
        (TaskState.DONE, WaitsFor.NOTHING, False, TreeState.DONE),
        (TaskState.DONE, WaitsFor.START, False, TreeState.CUT_SHORT),
    ],
)
def test_a_tree_has_one_word(task: TaskState, waits_for: WaitsFor, running: bool, state: TreeState) -> None:
    assert tree_state(task, waits_for, running=running) is state


def test_only_a_person_s_turn_and_a_cut_are_said_in_more_than_a_word() -> None:
    assert [state.words for state in TreeState if state.words != state] == ["needs you", "cut short"]


@pytest.mark.parametrize(
    ("task", "waits_for", "group"),
    [
        (TaskState.AWAITING_HUMAN, WaitsFor.RESUME, TreeGroup.NEEDS_YOU),
        (TaskState.BLOCKED, WaitsFor.RETRY, TreeGroup.NEEDS_YOU),
        (TaskState.BLOCKED, WaitsFor.DISMISS, TreeGroup.NEEDS_YOU),
        (TaskState.BLOCKED, WaitsFor.RUNS, TreeGroup.ACTIVE),
        (TaskState.OPEN, WaitsFor.NOTHING, TreeGroup.ACTIVE),
        (TaskState.DONE, WaitsFor.START, TreeGroup.ENDED),
        (TaskState.CANCELLED, WaitsFor.NOTHING, TreeGroup.ENDED),
    ],
)
def test_a_tree_is_in_one_group(task: TaskState, waits_for: WaitsFor, group: TreeGroup) -> None:
    assert tree_group(task, waits_for) is group


def test_groups_have_headings() -> None:
    assert [group.words for group in TreeGroup] == ["Needs you", "Running", "Ready to merge", "Ended"]
