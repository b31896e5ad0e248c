import pytest

from tests.tree.simulator import ROOT, World, delegation, done, tree_input
from workflows.contract.models import Delegation, FailurePolicy, HumanQuestion
from workflows.model.rounds import RoundEnd, RoundKind
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, TaskState
from workflows.policy.prompts.continuation import render_continuation


def asks(*ids: str, prompt: str = "which?") -> tuple[HumanQuestion, ...]:
    return tuple(HumanQuestion(id=each, prompt=prompt) for each in ids)


def batch(*legs: Delegation, bounds: Bounds | None = None) -> World:
    tree = World(tree_input(bounds)).begin()
    tree.coordinator("approved", *legs)
    return tree


@pytest.mark.ruling("F2", "B2", "B3", "spec:states.human_questions")
@pytest.mark.parametrize("decision", ["approved", "implemented", "blocked", "failed", "skipped"])
def test_a_coordinator_that_asks_pauses_the_task_whatever_it_decided(decision: str) -> None:
    tree = World(tree_input()).begin()
    legs = () if decision == "skipped" else (delegation("a"), delegation("b"))
    tree.coordinator(decision, *legs, human_questions=asks("store"))
    assert tree.task_state() is TaskState.AWAITING_HUMAN
    assert (tree.flying, len(tree.state.jobs)) == ({}, 1), "no continuation, no child"
    assert tree.state.task.next == f'service resume {ROOT} answer "store: <text>"'
    assert tree.jobs[ROOT].next == tree.state.task.next
    assert "which?" in tree.state.task.reason
    tree.resume("answer", "store: memory")
    assert (tree.task_state(), tree.last.continuation) == (TaskState.OPEN, Continuation.ANSWERED)
    assert tree.jobs[ROOT].next == ""
    assert tree.last.brief is not None
    assert [leg for each in tree.last.brief.refused for leg in each.delegations] == list(legs), (
        "the held back set comes back, complete"
    )
    assert [(each.id, each.text) for each in tree.last.brief.answers] == [("store", "memory")]
    tree.coordinator("implemented")
    assert done(tree)


@pytest.mark.ruling("F2", "C6")
def test_a_set_that_was_held_back_may_be_issued_again_as_it_is() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a"), human_questions=asks("q"))
    tree.resume("answer", "yes")
    tree.coordinator("approved", delegation("a"))
    assert tree.last.delegation_id == "a"
    assert "delegation_loop_warning" not in tree.kinds()


@pytest.mark.ruling("F2", "F8", "spec:run_order.2")
def test_questions_of_a_child_let_siblings_run_and_keep_the_rest_from_starting() -> None:
    tree = batch(delegation("a"), delegation("b"), delegation("c", deps=("b",)))
    tree.leg("a", human_questions=asks("q"))
    assert tree.task_state() is TaskState.AWAITING_HUMAN
    tree.leg("b")
    assert tree.flying == {}, "c could run but for the pause"
    assert tree.jobs[f"{ROOT}.3"].next.startswith(f"service resume {ROOT} answer")
    tree.resume("answer", "yes")
    assert tree.last.delegation_id == "c"
    tree.leg("c")
    assert tree.last.continuation is Continuation.ANSWERED
    assert tree.last.brief is not None
    assert (len(tree.last.brief.answers), len(tree.last.brief.legs)) == (1, 3)


@pytest.mark.ruling("F2")
def test_a_continuation_waits_for_the_answer_when_the_batch_is_over_first() -> None:
    tree = batch(delegation("a"), delegation("b"))
    tree.leg("a", human_questions=asks("q"))
    tree.leg("b")
    assert tree.last.delegation_id == "b"
    tree.resume("answer", "q: yes")
    assert tree.last.continuation is Continuation.ANSWERED


@pytest.mark.ruling("F1", "F2")
def test_questions_join_the_open_round_prefixed_where_they_clash() -> None:
    tree = batch(delegation("a"), delegation("b", ephemeral=True), delegation("c", failure_policy="continue"))
    tree.leg("a", human_questions=asks("q", "r"))
    seen = tree.open()[0]
    tree.leg("b", human_questions=asks("q"))
    tree.leg("c", "failed", human_questions=asks("b.q", "q", prompt="other?"))
    [joined] = tree.open()
    assert [(each.id, each.leg) for each in joined.questions] == [
        ("q", "a"),
        ("r", "a"),
        ("b.q", "b"),
        ("c.b.q", "c"),
        ("c.q", "c"),
    ]
    assert (joined.number, joined.digest == seen.digest) == (1, False)
    assert tree.kinds().count("round_joined") == 2
    tree.resume("answer", "c.q: 5\nb.q: 3\nq: 1\nr: 2\nc.b.q: 4")
    assert tree.last.brief is not None
    assert [each.text for each in tree.last.brief.answers] == ["1", "2", "3", "4", "5"]


@pytest.mark.ruling("F2", "F3", "D4")
def test_a_leg_that_asks_in_every_attempt_has_every_answer_and_every_id_is_its_own() -> None:
    tree = batch(delegation("a"), delegation("b"))
    for n, name in enumerate(("q", "a.q", "a.q.2")):
        tree.leg("a", "failed", human_questions=asks("q", prompt=f"prompt {n}?"))
        assert [each.id for each in tree.open()[0].questions] == [name]
        tree.resume("answer", f"answer {n}")
        assert list(tree.flying) == [f"{ROOT}.2"], "it is its coordinator that decides"
        tree.retry(f"{ROOT}.1")
        assert tree.last.guidance[-1] == f"You asked: prompt {n}?\nThe answer: answer {n}"
    tree.leg("a")
    tree.leg("b")
    assert tree.last.brief is not None
    assert [each.id for each in tree.last.brief.answers] == ["q", "a.q", "a.q.2"]


@pytest.mark.ruling("F2", "F1")
def test_a_child_that_asks_and_delegates_is_a_coordinator_and_waits_itself() -> None:
    tree = batch(delegation("lead", "lead"), delegation("b"))
    tree.leg("lead", "approved", delegation("x"), human_questions=asks("q"))
    assert [each.coordinator_id for each in tree.open()] == [f"{ROOT}.1"]
    tree.leg("b")
    tree.resume("answer", "yes", job_id=f"{ROOT}.1")
    assert (tree.last.continuation, tree.last.parent_job_id) == (Continuation.ANSWERED, f"{ROOT}.1")
    tree.end(tree.last.job_id, "implemented")
    assert tree.last.continuation is Continuation.NORMAL
    assert tree.state.homes[tree.last.job_id] == ROOT


@pytest.mark.ruling("F2", "C1")
def test_an_ephemeral_child_may_ask_and_its_delegations_are_still_ignored() -> None:
    tree = batch(delegation("e", ephemeral=True))
    tree.leg("e", "approved", delegation("x"), human_questions=asks("q"))
    assert "delegation_ignored_ephemeral" in tree.kinds()
    assert [each.coordinator_id for each in tree.open()] == [ROOT]


@pytest.mark.ruling("F8", "F1")
def test_delegations_that_come_in_during_a_pause_go_out_after_it_and_nothing_trips_meanwhile() -> None:
    bounds = Bounds(max_delegation_wall_clock_seconds=100)
    tree = batch(delegation("lead", "lead"), delegation("b"), bounds=bounds)
    tree.leg("b", human_questions=asks("q"))
    tree.leg("lead", "approved", delegation("x"), delegation("y"), after=50_000)
    assert tree.flying == {}
    assert tree.state.find_leg(f"{ROOT}.1") is not None
    tree.resume("answer", "yes")
    assert [run.delegation_id for run in tree.runs[-2:]] == ["x", "y"]
    assert "delegation_walltime_exceeded" not in tree.kinds()


@pytest.mark.ruling("F1", "F8")
def test_two_coordinators_wait_and_nothing_starts_before_both_are_answered() -> None:
    tree = batch(delegation("p", "lead"), delegation("q", "lead"))
    for leg in "pq":
        tree.leg(leg, "approved", delegation(f"{leg}1"), human_questions=asks("w"))
    assert len(tree.open()) == 2
    assert "1 more round" in tree.state.task.reason
    tree.resume("answer", "yes", job_id=ROOT)
    assert tree.said[-1].data["why"] == "ambiguous"
    assert f"{ROOT}.1, {ROOT}.2" in tree.said[-1].message
    tree.resume("answer", "yes", job_id=f"{ROOT}.1")
    assert (tree.flying, tree.task_state()) == ({}, TaskState.AWAITING_HUMAN)
    tree.resume("answer", "no", job_id=ROOT)
    assert [run.parent_job_id for run in tree.flying.values()] == [f"{ROOT}.1", f"{ROOT}.2"]


@pytest.mark.ruling("D4", "F2", "F8")
def test_a_block_ends_the_round_and_opening_the_batch_again_asks_again() -> None:
    tree = batch(delegation("a"), delegation("b"))
    tree.leg("a", human_questions=asks("q"))
    tree.leg("b", "failed")
    assert (tree.task_state(), tree.state.closed) == (TaskState.BLOCKED, True)
    assert tree.rounds[f"{ROOT}-r1"].end is RoundEnd.OVERTAKEN
    assert "round_closed" in tree.kinds()
    tree.retry(f"{ROOT}.2")
    [again] = tree.open()
    assert (again.number, [each.id for each in again.questions]) == (2, ["q"])
    assert not tree.flying, "a paused tree starts nothing, a leg that was ordered to run again neither"
    tree.resume("answer", "yes")
    tree.leg("b")
    assert tree.last.continuation is Continuation.ANSWERED


@pytest.mark.ruling("D4", "F8")
def test_an_operators_retry_waits_for_the_person_too() -> None:
    tree = batch(delegation("a", failure_policy="continue"), delegation("b"))
    tree.leg("a", "failed")
    tree.leg("b", human_questions=asks("q"))
    tree.retry(f"{ROOT}.1")
    assert tree.said[-1].kind == "retry_refused"
    assert f"service resume {ROOT} answer" in tree.said[-1].message


POLICIES = [None, *FailurePolicy]


@pytest.mark.ruling("F2", "D2", "spec:states.human_questions")
@pytest.mark.parametrize("decision", ["blocked", "failed"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rule", [None, "vote"])
def test_a_failing_child_that_asks_meets_no_policy_and_its_coordinator_decides(
    decision: str, policy: str | None, rule: str | None
) -> None:
    first = delegation("a", retry=2, failure_policy=policy, synthesis_rule=rule)
    tree = batch(first, delegation("b", deps=("a",)))
    tree.leg("a", decision, human_questions=asks("q"))
    assert (tree.task_state(), tree.flying, len(tree.timers)) == (TaskState.AWAITING_HUMAN, {}, 1)
    assert [(each.kind, each.number) for each in tree.open()] == [(RoundKind.ASK, 1)]
    assert tree.jobs[f"{ROOT}.1"].next == tree.state.task.next, "it says what is waited for"
    tree.resume("answer", "yes")
    assert (tree.task_state(), tree.last.continuation) == (TaskState.OPEN, Continuation.ANSWERED)
    assert tree.last.brief is not None
    assert [each.state.value for each in tree.last.brief.legs] == [decision, "skipped"]
    assert [each.text for each in tree.last.brief.answers] == ["yes"]


@pytest.mark.ruling("F2", "F8", "F9", "D4")
def test_the_round_of_a_failing_child_expires_and_is_killed_like_any_other() -> None:
    for kill in (False, True):
        tree = batch(delegation("a"))
        tree.leg("a", "blocked", human_questions=asks("q"))
        if kill:
            tree.kill()
        while tree.timers:
            tree.fire()
        assert (tree.last.continuation, tree.open()) == (Continuation.FINALIZE, [])


@pytest.mark.ruling("F2", "D4")
def test_a_sibling_s_block_defers_the_questions_of_a_failing_child() -> None:
    tree = batch(delegation("a"), delegation("b"))
    tree.leg("a", "blocked", human_questions=asks("q"))
    tree.leg("b", "failed")
    assert (tree.task_state(), tree.open(), tree.state.closed) == (TaskState.BLOCKED, [], True)
    assert tree.state.task.next == f"service job retry {ROOT}.2"
    tree.retry(f"{ROOT}.2")
    assert [each.number for each in tree.open()] == [2]
    tree.resume("answer", "yes")
    tree.leg("b")
    assert tree.last.continuation is Continuation.ANSWERED


@pytest.mark.ruling("F2", "D4")
def test_a_failing_child_that_an_operator_runs_again_has_asked_nothing_yet() -> None:
    tree = batch(delegation("a"), delegation("b", failure_policy="continue"), delegation("c"))
    tree.leg("a", "blocked", human_questions=asks("q"))
    tree.leg("c", "failed")
    tree.leg("b")
    tree.retry(f"{ROOT}.1")
    tree.retry(f"{ROOT}.3")
    tree.leg("a")
    tree.leg("c")
    assert (tree.open(), tree.last.continuation) == ([], Continuation.NORMAL)


@pytest.mark.ruling("F2", "engine:nested")
def test_a_failing_child_of_a_delegated_coordinator_asks_through_that_one() -> None:
    tree = batch(delegation("lead", "lead"))
    tree.leg("lead", "approved", delegation("x"))
    tree.leg("x", "blocked", human_questions=asks("q"))
    assert [each.coordinator_id for each in tree.open()] == [f"{ROOT}.1"]
    tree.resume("answer", "yes")
    assert (tree.last.continuation, tree.last.parent_job_id) == (Continuation.ANSWERED, f"{ROOT}.1")
    tree.end(tree.last.job_id, "implemented")
    tree.coordinator("implemented")
    assert done(tree)


@pytest.mark.ruling("D4", "F1")
def test_a_nested_coordinator_of_a_blocked_task_asks_again_when_it_is_opened() -> None:
    tree = batch(delegation("lead", "lead"), delegation("b"))
    tree.leg("lead", "approved", delegation("x"), human_questions=asks("q"))
    tree.leg("b", "failed")
    assert (tree.task_state(), tree.state.closed, tree.open()) == (TaskState.BLOCKED, True, [])
    tree.retry(f"{ROOT}.2")
    assert [(each.number, each.coordinator_id) for each in tree.open()] == [(2, f"{ROOT}.1")]
    tree.resume("answer", "yes")
    answered = next(run for run in tree.flying.values() if run.continuation is Continuation.ANSWERED)
    tree.leg("b")
    tree.end(answered.job_id, "implemented")
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("E7", "D4", "E6")
def test_a_coordinator_that_is_run_again_is_told_the_answers_again() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", human_questions=asks("q"))
    tree.resume("answer", "yes")
    tree.coordinator("failed")
    tree.retry(tree.state.root.job_id)
    assert tree.last.brief is not None
    assert [each.text for each in tree.last.brief.answers] == ["yes"]


@pytest.mark.ruling("F1")
def test_a_leg_that_runs_again_does_not_begin_its_rounds_anew() -> None:
    tree = batch(delegation("lead", "lead", retry=1))
    tree.leg("lead", "approved", delegation("x"), human_questions=asks("q"))
    tree.resume("answer", "yes")
    tree.end(tree.last.job_id, "failed")
    tree.fire()
    tree.leg("lead", "approved", delegation("x"), human_questions=asks("q"))
    [again] = tree.open()
    assert (again.coordinator_id, again.number, again.kind) == (f"{ROOT}.1", 2, RoundKind.ASK)
    tree.resume("answer", "yes", round=1)
    assert "over: answered by ann, in the terminal at 1970-01-01" in tree.said[-1].message


@pytest.mark.ruling("F2", "engine:small")
def test_endless_questions_are_cut_and_say_so() -> None:
    tree = batch(*(delegation(f"l{n}") for n in range(16)))
    for n in range(16):
        tree.leg(f"l{n}", human_questions=asks("a", "b", "c", prompt="x" * 100_000))
    assert "[cut: 100,000 characters in all]" in tree.open()[0].questions[0].prompt
    assert len(tree.state.model_dump_json()) < 256 * 1024


@pytest.mark.ruling("F2", "engine:small")
def test_more_choices_than_a_round_lists_are_told_too() -> None:
    tree = World(tree_input()).begin()
    question = HumanQuestion(id="which", prompt="which?", choices=tuple(f"choice-{n}" for n in range(33)))
    tree.coordinator("approved", human_questions=(question,))
    [shown] = tree.open()[0].questions
    assert shown.choices == question.choices[:20]
    assert "[and 13 more choices: choice-20; " in shown.prompt
    assert "choice-32]" in shown.prompt


@pytest.mark.ruling("F8", "C4")
def test_the_rows_tell_the_same_time_as_the_engine() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", human_questions=asks("q"))
    began = tree.state.task.paused_since
    assert began is not None
    assert tree.state.task.elapsed_seconds(began + 300) == began - tree.start.created_at
    tree.resume("answer", "yes", now=began + 300)
    assert (tree.state.task.paused_since, tree.state.task.paused_seconds) == (None, 300)


@pytest.mark.ruling("F2")
def test_in_a_tree_that_ends_at_a_bound_questions_are_ignored() -> None:
    tree = batch(delegation("lead", "lead"), delegation("b"), bounds=Bounds(max_delegation_width=2))
    tree.leg("lead", "approved", *(delegation(each) for each in "xyz"))
    tree.leg("b", human_questions=asks("q"))
    assert "human_questions_ignored" in tree.kinds()
    assert (tree.open(), tree.last.continuation) == ([], Continuation.FINALIZE)


@pytest.mark.ruling("E6", "F5")
def test_a_finalize_is_told_what_was_said_to_every_coordinator() -> None:
    tree = batch(delegation("one", "lead"), delegation("two", "lead"))
    tree.leg("one", "approved", delegation("x"), human_questions=asks("first"))
    tree.leg("two", "approved", delegation("y"), human_questions=asks("second"))
    tree.resume("answer", "red", job_id=f"{ROOT}.1")
    tree.kill()
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    assert [(each.id, each.text) for each in tree.last.brief.answers] == [("first", "red"), ("second", None)]
    assert "Left unanswered." in render_continuation(tree.last.brief, {})
