"""The state of a tree in one word."""

import pytest

from workflows.model.states import TaskState, WaitsFor
from workflows.policy.tree_states import TreeGroup, TreeState, tree_state


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


def test_each_state_is_in_one_group_and_a_result_in_two() -> None:
    groups = {state: [group.value for group in TreeGroup if state in group.states] for state in TreeState}
    assert {state.value for state, names in groups.items() if len(names) != 1} == {"done", "cut_short"}
    assert groups[TreeState.DONE] == groups[TreeState.CUT_SHORT] == ["ready", "ended"]
    assert [group.words for group in TreeGroup] == ["Needs you", "Running", "Ready to merge", "Ended"]
