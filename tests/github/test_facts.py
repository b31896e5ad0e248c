"""The comments a tree should have: one for each fact, each with a stable id."""

import pytest

from tests.github.bound_trees import ROOT, ask, event, job, tree
from workflows.github.bound_tree import last_job
from workflows.github.facts import (
    Fact,
    FactKind,
    check_id,
    comment_fact_id,
    due,
    fact_in,
    marker,
    pause_id,
    publish_id,
    status_id,
)
from workflows.model.event_kinds import EventKind
from workflows.model.rows import EventRecord
from workflows.model.states import Continuation, TaskState

STATUS = Fact(f"{ROOT}-status", FactKind.STATUS)


def reminder(number: int, round_number: int = 1) -> EventRecord:
    return event(number, EventKind.ROUND_REMINDER, message="12h left: x", round=round_number)


def refused(number: int, channel: str, message: str = "no") -> EventRecord:
    return event(number, EventKind.RESUME_REFUSED, message=message, actor="jo", channel=channel)


@pytest.mark.ruling("L3")
def test_a_tree_has_its_status_from_the_start_and_only_one() -> None:
    assert due(tree(jobs=())) == (STATUS,)
    assert due(tree()) == (STATUS,)


@pytest.mark.ruling("L3")
def test_a_pause_is_one_fact_however_often_it_is_joined_and_over_it_is_only_edited() -> None:
    rounds = (ask(1, end="answered", closed="answered"), ask(2))
    assert due(tree(TaskState.AWAITING_HUMAN, rounds=rounds)) == (
        STATUS,
        Fact(f"{ROOT}-r1-pause", FactKind.PAUSE, f"{ROOT}-r1", only_edit=True),
        Fact(f"{ROOT}-r2-pause", FactKind.PAUSE, f"{ROOT}-r2"),
    )


@pytest.mark.ruling("L3", "F8")
def test_the_latest_reminder_of_an_open_round_is_told() -> None:
    events = (reminder(3), reminder(5), reminder(7, 2))
    facts = due(tree(rounds=(ask(1), ask(2, end="expired", closed="expired")), events=events))
    assert [(each.about, each.only_edit) for each in facts if each.kind is FactKind.REMINDER] == [
        (f"{ROOT}-e3", True),
        (f"{ROOT}-e5", False),
        (f"{ROOT}-e7", True),
    ]


class TestEnd:
    def ends(self, state: TaskState, *kinds: EventKind) -> list[str]:
        events = tuple(event(number, kind) for number, kind in enumerate(kinds, 1))
        return [each.fact_id for each in due(tree(state, events=events)) if each.kind is FactKind.END]

    @pytest.mark.ruling("L3")
    def test_what_goes_on_has_none(self) -> None:
        assert self.ends(TaskState.OPEN, EventKind.TREE_STARTED) == []
        assert self.ends(TaskState.AWAITING_HUMAN, EventKind.TREE_ENDED, EventKind.RETRY_REQUESTED) == []

    @pytest.mark.ruling("L3")
    def test_what_ended_after_its_events_were_read_has_none_yet(self) -> None:
        assert self.ends(TaskState.DONE, EventKind.TREE_STARTED) == []
        assert self.ends(TaskState.DONE, EventKind.TREE_ENDED, EventKind.RETRY_REQUESTED) == []

    @pytest.mark.ruling("L3")
    def test_the_first_event_that_ended_it_names_it(self) -> None:
        assert self.ends(TaskState.DONE, EventKind.TREE_STARTED, EventKind.TREE_ENDED) == [f"{ROOT}-e2-end"]
        blocked = (EventKind.TASK_BLOCKED, EventKind.JOB_ENDED, EventKind.TREE_ENDED)
        assert self.ends(TaskState.BLOCKED, *blocked) == [f"{ROOT}-e1-end"]
        assert self.ends(TaskState.CANCELLED, *blocked, EventKind.TASK_DISMISSED) == [f"{ROOT}-e1-end"]

    @pytest.mark.ruling("L3")
    @pytest.mark.parametrize("again", [EventKind.RETRY_REQUESTED, EventKind.TREE_TAKEN_UP])
    def test_after_it_was_opened_again_it_is_another(self, again: EventKind) -> None:
        assert self.ends(TaskState.DONE, EventKind.TASK_BLOCKED, again, EventKind.TREE_ENDED) == [f"{ROOT}-e3-end"]

    def test_without_its_events_it_still_has_one(self) -> None:
        assert self.ends(TaskState.CANCELLED) == [f"{ROOT}-end"]


@pytest.mark.ruling("L3", "L6")
def test_refused_comments_are_answered_once_and_other_channels_not_at_all() -> None:
    events = (refused(1, "cli"), refused(2, "comment"), refused(3, "comment", "said before"))
    facts = due(tree(events=events, answered=frozenset({"said before"})))
    assert [each.about for each in facts if each.kind is FactKind.REFUSAL] == [f"{ROOT}-e2"]


@pytest.mark.ruling("L3")
def test_all_ids_differ_and_can_be_marks() -> None:
    events = (reminder(3), refused(4, "comment"), event(5, EventKind.TREE_ENDED))
    facts = due(tree(TaskState.DONE, rounds=(ask(1), ask(2)), events=events))
    ids = [each.fact_id for each in facts]
    ids += [comment_fact_id(kind, 12) for kind in (FactKind.REFUSAL, FactKind.REPORT, FactKind.TAKEN)]
    ids += [publish_id(f"{ROOT}.2"), check_id(ROOT, "0" * 40)]
    assert len(set(ids)) == len(ids)
    assert [fact_in(marker(each)) for each in ids] == ids
    assert (status_id(ROOT), pause_id(f"{ROOT}-r1")) == (f"{ROOT}-status", f"{ROOT}-r1-pause")
    assert comment_fact_id(FactKind.REFUSAL, 12) == "comment-12-refusal"


@pytest.mark.ruling("L3", "G1")
def test_the_job_whose_result_counts_is_the_finalize_else_the_coordinators_latest() -> None:
    goes_on = job(3, delegation_id=None, continuation=Continuation.NORMAL)
    finalize = job(4, delegation_id=None, continuation=Continuation.FINALIZE)
    lasts = [last_job(tree(jobs=jobs)) for jobs in ((), (job(), job(1), goes_on), (job(), finalize, goes_on))]
    assert [each and each.job_id for each in lasts] == [None, f"{ROOT}.3", f"{ROOT}.4"]
