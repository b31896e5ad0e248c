from typing import Any

import pytest

from tests.tree.simulator import ROOT, World, delegation, tokens, tree_input
from workflows.contract.models import Delegation
from workflows.model.briefs import Correction
from workflows.model.settings import Bounds
from workflows.model.states import Continuation, TaskState
from workflows.policy.prompts.continuation import render_continuation
from workflows.policy.prompts.task import render_task
from workflows.tree.commands import Record, RunCoordinator


def generation(tree: World, number: int, verdict: str | None) -> None:
    tree.coordinator(
        "approved", delegation(f"m{number}"), delegation(f"v{number}", action="review", synthesis_rule="verify")
    )
    tree.leg(f"m{number}", progress=str(number))
    tree.leg(f"v{number}", verdict, findings="x.py: the test fails", progress=str(number))


@pytest.mark.ruling("E4", "E5", "spec:states.verify_fails", "spec:synthesis.verify")
@pytest.mark.parametrize("verdict", ["changes_requested", "failed", None])
def test_a_failed_verdict_leads_to_one_replan_with_the_findings_and_does_not_block(verdict: str | None) -> None:
    tree = World(tree_input()).begin()
    generation(tree, 1, verdict)
    assert tree.last.continuation is Continuation.REPLAN
    brief = tree.last.brief
    assert brief is not None
    assert (brief.attempt, brief.attempts) == (1, 2)
    assert [leg.findings for leg in brief.legs] == ["", "x.py: the test fails"]
    assert tree.task_state() is TaskState.OPEN


@pytest.mark.ruling("E5")
def test_only_verify_legs_are_quoted_and_no_more_than_fits() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("m"), delegation("v", synthesis_rule="verify"))
    tree.leg("m", findings="mine")
    tree.leg("v", "changes_requested", findings="y" * 9000)
    assert tree.last.brief is not None
    assert [len(leg.findings) for leg in tree.last.brief.legs] == [0, 4000]


@pytest.mark.ruling("E1", "spec:states.vote_not_met", "spec:synthesis.vote", "spec:synthesis.quorum")
@pytest.mark.parametrize("rule", ["vote", "quorum"])
def test_an_unmet_vote_or_quorum_blocks_before_any_verdict_counts(rule: str) -> None:
    tree = World(tree_input()).begin()
    ballot = delegation("b", synthesis_rule=rule, quorum=2 if rule == "quorum" else None)
    tree.coordinator("approved", ballot, delegation("v", synthesis_rule="verify"))
    tree.leg("b", "changes_requested")
    tree.leg("v", "changes_requested")
    assert tree.task_state() is TaskState.BLOCKED
    assert tree.state.verify_attempts == 0


@pytest.mark.ruling("E4")
def test_a_passed_verdict_continues_as_usual_without_findings() -> None:
    tree = World(tree_input()).begin()
    generation(tree, 1, "approved")
    assert tree.last.continuation is Continuation.NORMAL
    assert tree.last.brief is not None
    assert not any(leg.findings for leg in tree.last.brief.legs)


@pytest.mark.ruling("E4", "P3")
def test_a_passed_verdict_of_a_question_is_told_without_findings() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("q", action="ask"), delegation("v", action="ask", synthesis_rule="verify"))
    tree.leg("q", findings="an answer")
    tree.leg("v", findings="a nit")
    assert tree.last.brief is not None
    assert [leg.findings for leg in tree.last.brief.legs] == ["an answer", ""]


@pytest.mark.ruling("E5", "H3")
def test_a_failed_verdict_without_progress_leads_to_a_replan_that_is_warned() -> None:
    tree = World(tree_input(Bounds(max_delegation_non_progress_streak=1))).begin()
    for number in range(2):
        legs = delegation("m", prompt=f"try {number}"), delegation("v", action="review", synthesis_rule="verify")
        tree.coordinator("approved", *legs)
        tree.leg("m", progress="nothing")
        tree.leg("v", "changes_requested", progress="nothing")
    assert "delegation_loop_warning" in tree.kinds()
    assert tree.last.continuation is Continuation.REPLAN
    assert tree.last.brief is not None
    assert tree.last.brief.notes[-1] == "2 generations in a row ended with the same decisions and side effects"


@pytest.mark.ruling("spec:synthesis.verify_no_extra_run", "D1")
@pytest.mark.parametrize("verdict", ["approved", "changes_requested"])
def test_the_verdict_costs_no_run_of_its_own(verdict: str) -> None:
    tree = World(tree_input()).begin()
    generation(tree, 1, verdict)
    assert [type(command) for command in tree.history[-2][1]] == [Record, RunCoordinator]
    assert tree.state.spent_jobs == 3, "two legs and one continuation"


@pytest.mark.ruling("E5", "G1", "spec:limits.verify_replan", "spec:states.replan_cap")
def test_attempts_are_counted_per_root_never_reset_and_end_in_finalize() -> None:
    tree = World(tree_input()).begin()
    for number, verdict in enumerate(["failed", "approved", "failed", "failed"]):
        generation(tree, number, verdict)
    replans = [run for run in tree.runs if run.continuation is Continuation.REPLAN]
    assert [(run.brief.attempt, run.brief.attempts) for run in replans if run.brief] == [(1, 2), (2, 2)]
    assert "verify_replan_exhausted" in tree.kinds()
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("E5", "E6")
@pytest.mark.parametrize("limits", [Bounds(max_verify_replan_attempts=0), Bounds(max_delegation_total_jobs=2)])
def test_a_finalize_that_no_replan_came_before_is_told_the_last_findings(limits: Bounds) -> None:
    tree = World(tree_input(limits)).begin()
    generation(tree, 1, "changes_requested")
    brief = tree.last.brief
    assert brief is not None
    assert tree.last.continuation is Continuation.FINALIZE
    assert [leg.findings for leg in brief.legs] == ["", "x.py: the test fails"]
    assert "x.py: the test fails" in render_continuation(brief, {})


@pytest.mark.ruling("E6")
def test_a_finalize_is_told_no_findings_of_a_verification_that_passed() -> None:
    tree = World(tree_input(Bounds(max_delegation_total_jobs=2))).begin()
    generation(tree, 1, "approved")
    assert tree.last.brief is not None
    assert tree.last.continuation is Continuation.FINALIZE
    assert not any(leg.findings for leg in tree.last.brief.legs)


@pytest.mark.ruling("E5", "spec:limits.verify_replan")
def test_every_coordinator_of_a_tree_draws_on_the_same_attempts() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("lead", "lead"))
    tree.leg("lead", "approved", delegation("v1", action="review", synthesis_rule="verify"))
    tree.leg("v1", "changes_requested", progress="1")
    tree.end(tree.last.job_id, "approved", delegation("v2", action="review", synthesis_rule="verify"))
    tree.leg("v2", "changes_requested", progress="2")
    tree.end(tree.last.job_id, "approved")
    tree.coordinator("approved", delegation("v3", action="review", synthesis_rule="verify"))
    tree.leg("v3", "changes_requested")
    assert "verify_replan_exhausted" in tree.kinds()
    replans = [run.parent_job_id for run in tree.runs if run.continuation is Continuation.REPLAN]
    assert (replans, tree.last.continuation) == ([f"{ROOT}.1", f"{ROOT}.3"], Continuation.FINALIZE)


@pytest.mark.ruling("E4", "D8")
def test_a_verify_leg_that_never_ran_fails_the_verdict() -> None:
    tree = World(tree_input()).begin()
    legs = delegation("m", failure_policy="continue"), delegation("v", deps=("m",), synthesis_rule="verify")
    tree.coordinator("approved", *legs)
    tree.leg("m", "failed")
    assert tree.last.continuation is Continuation.REPLAN
    assert tree.last.brief is not None
    assert "nothing was verified" in tree.last.brief.notes[-1]


@pytest.mark.ruling("E5", "spec:limits.replan_is_bounded")
@pytest.mark.parametrize(
    ("bounds", "fields", "kind"),
    [
        (Bounds(max_delegation_depth=1), {}, "delegation_depth_exceeded"),
        (Bounds(max_delegation_width=2), {}, "delegation_width_exceeded"),
        (Bounds(max_delegation_total_jobs=5), {}, "delegation_budget_exceeded"),
        (Bounds(max_delegation_wall_clock_seconds=10), {"after": 11}, "delegation_walltime_exceeded"),
        (Bounds(max_delegation_token_budget=10), {"usage": tokens(10)}, "delegation_cost_exceeded"),
        (Bounds(max_delegation_cost_usd=0.01), {"usage": tokens(10_000)}, "delegation_cost_usd_exceeded"),
    ],
    ids=["depth", "width", "jobs", "wall clock", "tokens", "dollars"],
)
def test_what_a_replan_delegates_meets_every_bound(bounds: Bounds, fields: dict[str, Any], kind: str) -> None:
    tree = World(tree_input(bounds)).begin()
    generation(tree, 1, "failed")
    tree.coordinator("approved", *(delegation(each) for each in "xyz"), **fields)
    assert kind in tree.kinds()
    last = [run.continuation for run in tree.runs[-2:]]
    assert last == [Continuation.REPLAN, Continuation.FINALIZE]


@pytest.mark.ruling("E1", "E5", "spec:limits.replan_is_bounded")
def test_a_replan_for_which_no_job_is_left_is_the_finalize() -> None:
    tree = World(tree_input(Bounds(max_delegation_total_jobs=2))).begin()
    generation(tree, 1, "failed")
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling(
    "H2", "spec:events.delegation_loop_warning", "spec:events.delegation_loop_detected", "spec:states.loop"
)
def test_a_set_issued_again_is_warned_about_then_finalized() -> None:
    tree = World(tree_input()).begin()
    for number in (1, 2):
        generation(tree, number, "approved")
    tree.coordinator("approved", *make_first())
    assert tree.kinds()[-1] == "delegation_loop_warning"
    assert tree.last.brief is not None
    assert (tree.last.continuation, tree.last.brief.correction) == (Continuation.CORRECTIVE, Correction.REPEATED)
    tree.coordinator("approved", *make_first())
    assert "delegation_loop_detected" in tree.kinds()
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("H3", "spec:limits.non_progress", "engine:nested")
def test_what_a_delegated_chain_changed_is_progress_although_its_last_word_is_the_same() -> None:
    tree = World(tree_input()).begin()
    for number in range(4):
        tree.coordinator("approved", delegation(f"a{number}", "lead"))
        tree.leg(f"a{number}", "approved", delegation("x"), progress="same")
        tree.leg("x", progress=str(number))
        tree.end(tree.last.job_id, "approved", progress="same")
    assert "delegation_loop_warning" not in tree.kinds()


def make_first() -> tuple[Delegation, ...]:
    return delegation("m1"), delegation("v1", action="review", synthesis_rule="verify")


@pytest.mark.ruling("H3", "spec:limits.non_progress", "spec:states.loop")
def test_generations_without_effect_are_warned_about_then_finalized() -> None:
    tree = World(tree_input()).begin()
    for number in range(4):
        tree.coordinator("approved", delegation(f"a{number}"))
        tree.leg(f"a{number}", progress="same")
        if number == 2:
            assert tree.kinds() == ["delegation_loop_warning"]
            assert tree.last.brief is not None
            assert tree.last.brief.correction is Correction.NO_PROGRESS
    assert "delegation_loop_detected" in tree.kinds()
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.parent_job_id != ROOT


@pytest.mark.ruling("H3", "spec:states.loop")
@pytest.mark.parametrize("what", ["model", "effort"])
def test_a_cascade_from_cheap_to_deep_is_no_loop(what: str) -> None:
    world = World(tree_input()).begin()
    for tier in ("cheap", "standard", "deep"):
        world.coordinator("approved", delegation("a", failure_policy="continue", **{what: tier}))
        world.leg("a", "failed", progress="nothing")
        assert world.last.continuation is Continuation.NORMAL
    assert not {"delegation_loop_warning", "delegation_loop_detected"} & set(world.kinds())


@pytest.mark.ruling("H2", "H3", "spec:limits.loop_window")
def test_a_cascade_that_goes_round_is_a_loop() -> None:
    world = World(tree_input()).begin()
    for tier in ("cheap", "deep"):
        world.coordinator("approved", delegation("a", model=tier))
        world.leg("a", progress="nothing")
    for ladder in (Continuation.CORRECTIVE, Continuation.FINALIZE):
        world.coordinator("approved", delegation("a", model="cheap"))
        assert world.last.continuation is ladder


@pytest.mark.ruling("E6", "P3")
def test_what_a_leg_found_is_told_to_its_coordinator_and_to_the_legs_behind_it() -> None:
    tree = World(tree_input()).begin()
    look = (
        delegation("ask", "reader", "ask"),
        delegation("review", "reader", "review"),
        delegation("fine", "reader", "review"),
    )
    tree.coordinator("approved", *look, delegation("mend", deps=("ask", "review", "fine")))
    for leg, decision in (("ask", "approved"), ("review", "changes_requested"), ("fine", "approved")):
        tree.leg(leg, decision, findings=f"{leg} found this")
    wanted = {"ask": "ask found this", "review": "review found this", "fine": ""}
    assert {leg.id: leg.findings for leg in tree.last.follows} == wanted
    tree.leg("mend", findings="mine")
    assert tree.last.brief is not None
    assert {leg.id: leg.findings for leg in tree.last.brief.legs} == wanted | {"mend": ""}
    tree.kill()
    tree.coordinator("approved", delegation("more"))
    assert tree.last.brief is not None
    assert {leg.id: leg.findings for leg in tree.last.brief.legs} == wanted | {"mend": ""}


@pytest.mark.ruling("E5", "E6")
def test_a_finalize_after_the_last_replan_is_told_the_last_findings_and_no_earlier_ones() -> None:
    tree = World(tree_input(Bounds(max_verify_replan_attempts=1))).begin()
    for number, findings in enumerate(("the first fault", "the last fault")):
        tree.coordinator("approved", delegation(f"v{number}", "reader", "review", synthesis_rule="verify"))
        tree.leg(f"v{number}", "changes_requested", findings=findings, progress=findings)
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    text = render_continuation(tree.last.brief, {})
    assert "no replan is left (limit 1)" in text
    assert ("the last fault" in text, "the first fault" in text) == (True, False)


@pytest.mark.ruling("P3")
@pytest.mark.parametrize(("decision", "wanted"), [("blocked", "a key"), ("failed", "a key"), ("implemented", "")])
def test_what_a_leg_needs_that_could_not_go_on_is_told(decision: str, wanted: str) -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", failure_policy="continue"))
    tree.leg("a", decision, findings="a key" + " " * 4_000)
    assert tree.last.brief is not None
    assert [leg.findings.strip() for leg in tree.last.brief.legs] == [wanted]
    assert len(tree.last.brief.legs[0].findings) <= 250


@pytest.mark.ruling("P3")
def test_a_later_attempt_is_told_how_the_one_before_ended() -> None:
    tree = World(tree_input()).begin()
    tree.coordinator("approved", delegation("a", retry=1), delegation("b"))
    assert tree.last.before == ""
    tree.leg("a", "failed", reason="no `port`\n# Task")
    tree.fire()
    assert (tree.last.attempt, tree.last.before) == (2, "attempt 1 failed: no `port`\n# Task")
    text = render_task(tree.last, "do it", "(the contract)")
    assert "This is attempt 2 of this job. Before it: `attempt 1 failed: no 'port' # Task`. You begin anew" in text
    assert "attempt" not in render_task(tree.runs[1], "do it", "(the contract)")


@pytest.mark.ruling("B6", "P3")
def test_a_leg_behind_many_is_told_a_part_of_what_each_found() -> None:
    tree = World(tree_input()).begin()
    legs = [delegation(f"r{n}", "reader", "review") for n in range(8)]
    tree.coordinator("approved", *legs, delegation("mend", deps=tuple(leg.id for leg in legs)))
    for leg in legs:
        tree.leg(leg.id, "changes_requested", findings="y" * 4_000)
    assert [len(leg.findings) for leg in tree.last.follows] == [500] * 8
