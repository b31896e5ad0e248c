import pytest

from tests.tree.simulator import LEAD, ROOT, World, delegation, done, outcome, play, tokens, tree_input
from workflows.contract.models import Decision
from workflows.model.long_texts import LongPrompt
from workflows.model.rows import JobRecord
from workflows.model.settings import Bounds, TreeSettings
from workflows.model.spend import Usage
from workflows.model.states import Continuation, JobState, TaskState


def world(bounds: Bounds | None = None, **fields: object) -> World:
    return World(tree_input(bounds, **fields)).begin()


def states(tree: World) -> dict[str, str]:
    return {job.delegation_id or job.continuation.value: job.state.value for job in tree.jobs.values()}


@pytest.mark.ruling("E7", "B2")
def test_a_root_that_delegates_nothing_is_the_whole_tree() -> None:
    tree = world()
    tree.coordinator("implemented")
    assert done(tree)
    assert tree.close is not None
    assert (tree.close.decision, tree.close.jobs) == (Decision.IMPLEMENTED, 1)


@pytest.mark.ruling("E7")
@pytest.mark.parametrize("decision", ["blocked", "failed", None])
def test_a_coordinator_that_fails_blocks_the_task(decision: str | None) -> None:
    tree = world()
    tree.coordinator(decision)
    assert tree.task_state() is TaskState.BLOCKED
    assert tree.state.task.next == f"service job retry {ROOT}"


@pytest.mark.ruling(
    "B1", "C2", "D1", "spec:run_order.1", "spec:run_order.2", "spec:run_order.4", "spec:linkage", "spec:delegation.deps"
)
def test_legs_run_in_order_and_one_continuation_follows() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a"), delegation("b"), delegation("c", deps=("a", "b")))
    assert [run.job_id for run in tree.runs] == [ROOT, f"{ROOT}.1", f"{ROOT}.2"]
    tree.leg("a")
    assert tree.runs[-1].delegation_id == "b", "c waits for both"
    tree.leg("b")
    assert (tree.last.delegation_id, tree.last.job_id) == ("c", f"{ROOT}.3")
    assert (tree.last.parent_job_id, tree.last.root_job_id, tree.last.delegation_depth) == (ROOT, ROOT, 1)
    tree.leg("c")
    assert tree.last.continuation is Continuation.NORMAL
    assert (tree.last.job_id, tree.last.delegation_depth, tree.last.assignment.worker) == (f"{ROOT}.4", 1, LEAD)
    tree.coordinator("implemented")
    assert done(tree)


@pytest.mark.ruling("I1", "I2", "spec:run_order.3")
def test_a_dependent_is_given_the_branches_it_must_see() -> None:
    tree = world()
    tree.coordinator(
        "approved", delegation("a"), delegation("b", deps=("a",)), delegation("c", action="review", deps=("b",))
    )
    tree.leg("a", branch="branch-a")
    tree.leg("b", branch="branch-b")
    assert tree.last.branch_deps == ("branch-a", "branch-b")


@pytest.mark.ruling("C5", "spec:delegation.fingerprint")
def test_a_duplicate_is_never_run_and_has_its_twin_s_outcome() -> None:
    tree = world()
    same = delegation("a", fingerprint="x"), delegation("b", fingerprint="x"), delegation("c", deps=("b",))
    tree.coordinator("approved", *same)
    assert tree.state.spent_jobs == 2
    tree.leg("a", "implemented")
    assert tree.last.delegation_id == "c"
    tree.leg("c")
    assert tree.last.brief is not None
    shown = {leg.id: (leg.job_id, leg.decision, leg.twin_of) for leg in tree.last.brief.legs}
    assert shown["b"] == (f"{ROOT}.1", Decision.IMPLEMENTED, "a")
    assert [run.delegation_id for run in tree.runs] == [None, "a", "c", None]


@pytest.mark.ruling("C5", "spec:delegation.fingerprint")
def test_a_fingerprint_is_of_one_result_and_a_later_one_may_have_it_again() -> None:
    tree = world()
    for leg in "ab":
        tree.coordinator("approved", delegation(leg, fingerprint="x"), delegation(f"{leg}2", fingerprint="y"))
        assert [run.delegation_id for run in tree.flying.values()] == [leg, f"{leg}2"]
        tree.leg(leg, progress=leg)
        tree.leg(f"{leg}2")


@pytest.mark.ruling("C3", "C5", "spec:limits.job_budget")
def test_a_duplicate_is_no_new_job() -> None:
    tree = world(Bounds(max_delegation_total_jobs=2))
    tree.coordinator("approved", delegation("a", fingerprint="x"), delegation("b", fingerprint="x"), delegation("c"))
    assert len(tree.flying) == 2


@pytest.mark.ruling("I3", "spec:delegation.worktree")
def test_legs_that_share_a_worktree_run_one_after_another() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a", worktree="w"), delegation("b", worktree="w"), delegation("c"))
    assert [run.delegation_id for run in tree.flying.values()] == ["a", "c"]
    tree.leg("a")
    assert tree.last.delegation_id == "b"


@pytest.mark.ruling("C1", "spec:ephemeral.leaf_only")
def test_an_ephemeral_worker_s_delegations_are_ignored() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a", ephemeral=True))
    tree.leg("a", "approved", delegation("x"))
    assert "delegation_ignored_ephemeral" in tree.kinds()
    assert tree.last.continuation is Continuation.NORMAL


@pytest.mark.ruling("A11")
@pytest.mark.parametrize("decision", ["blocked", "failed"])
def test_a_result_that_did_not_succeed_does_not_delegate_and_that_is_said(decision: str) -> None:
    tree = world()
    tree.coordinator(decision, delegation("a"))
    assert tree.kinds().count("delegation_dropped") == 1
    assert len(tree.runs) == 1
    for reason in (tree.jobs[ROOT].reason, tree.state.task.reason):
        assert reason.endswith("(its delegations were not run: a)")


TRIPS = [
    (Bounds(max_delegation_width=1), {}, "delegation_width_exceeded"),
    (Bounds(max_delegation_total_jobs=1), {}, "delegation_budget_exceeded"),
    (Bounds(max_delegation_wall_clock_seconds=10), {"after": 11}, "delegation_walltime_exceeded"),
    (Bounds(max_delegation_token_budget=10), {"usage": tokens(10)}, "delegation_cost_exceeded"),
    (Bounds(max_delegation_cost_usd=0.01), {"usage": tokens(10_000)}, "delegation_cost_usd_exceeded"),
]


@pytest.mark.ruling("C1", "G1", "spec:states.bound_trips", "spec:events.delegation_finalize_enqueued")
@pytest.mark.ruling("spec:events.delegation_walltime_exceeded", "spec:events.delegation_cost_exceeded")
@pytest.mark.ruling("spec:events.delegation_cost_usd_exceeded", "spec:events.delegation_width_exceeded")
@pytest.mark.parametrize(("bounds", "fields", "kind"), TRIPS, ids=[kind for _, _, kind in TRIPS])
def test_a_bound_that_trips_drops_the_set_with_one_event_and_one_finalize(
    bounds: Bounds, fields: dict[str, object], kind: str
) -> None:
    tree = world(bounds)
    tree.coordinator("approved", delegation("a"), delegation("b"), **fields)
    assert [each for each in tree.kinds() if each != "delegation_budget_warning"] == [
        kind,
        "delegation_finalize_enqueued",
    ]
    assert tree.last.continuation is Continuation.FINALIZE
    assert [job.delegation_id for job in tree.jobs.values()] == [None, None], "nothing of the set was dispatched"
    tree.coordinator("implemented")
    assert done(tree)


@pytest.mark.ruling("C2", "spec:limits.depth", "B4", "spec:states.bound_trips")
def test_depth_counts_continuations_and_the_finalize_is_never_refused() -> None:
    tree = world(Bounds(max_delegation_depth=2))
    for generation in "ab":
        tree.coordinator("approved", delegation(generation))
        tree.leg(generation)
    assert tree.last.delegation_depth == 2
    tree.coordinator("approved", delegation("c"))
    assert "delegation_depth_exceeded" in tree.kinds()
    assert (tree.last.continuation, tree.last.delegation_depth) == (Continuation.FINALIZE, 3)


@pytest.mark.ruling("C3", "D1", "G1", "C2")
def test_a_continuation_for_which_no_job_is_left_becomes_the_finalize() -> None:
    tree = world(Bounds(max_delegation_total_jobs=2))
    tree.coordinator("approved", delegation("a"), delegation("b"))
    tree.leg("a")
    tree.leg("b")
    assert tree.last.continuation is Continuation.FINALIZE
    assert tree.last.brief is not None
    assert [leg.id for leg in tree.last.brief.legs] == ["a", "b"], "a finalize prompt carries the outcomes"


@pytest.mark.ruling("C4", "spec:limits.tokens")
def test_budgets_are_looked_at_again_before_a_deferred_leg_starts() -> None:
    tree = world(Bounds(max_delegation_token_budget=100))
    tree.coordinator("approved", delegation("a"), delegation("b", deps=("a",)), delegation("c"))
    tree.leg("a", usage=tokens(100))
    assert "delegation_cost_exceeded" in tree.kinds()
    assert states(tree)["b"] == "skipped"
    assert tree.last.delegation_id == "c", "running siblings finish first"
    tree.leg("c")
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("C4")
def test_one_warning_per_budget_at_four_fifths_and_a_line_in_the_next_prompt() -> None:
    tree = world(Bounds(max_delegation_token_budget=100))
    tree.coordinator("approved", delegation("a"), usage=tokens(80))
    tree.leg("a", usage=tokens(5))
    assert tree.kinds().count("delegation_budget_warning") == 1
    assert tree.last.brief is not None
    assert tree.last.brief.budget.warned == ("tokens",)


@pytest.mark.ruling("C4")
def test_the_prompt_that_makes_a_budget_used_to_80_percent_says_so() -> None:
    tree = world(Bounds(max_delegation_total_jobs=5))
    tree.coordinator("approved", delegation("a"), delegation("b"), delegation("c"))
    for leg in ("a", "b", "c"):
        tree.leg(leg)
    assert tree.last.brief is not None
    assert (tree.last.brief.budget.jobs, tree.last.brief.budget.warned) == (4, ("jobs",))


@pytest.mark.ruling("P1")
def test_who_may_delegate_is_handed_the_tree_s_limits_as_they_are_now() -> None:
    tree = world(Bounds(max_delegation_total_jobs=9, max_delegation_width=3))
    root = tree.last.budget
    assert root is not None
    assert (root.width, root.jobs, root.jobs_cap, root.depth) == (3, 0, 9, 0)
    tree.coordinator("approved", delegation("a"), delegation("b", ephemeral=True))
    leg, throwaway = (run.budget for run in tree.flying.values())
    assert leg is not None
    assert (leg.jobs, leg.depth, throwaway) == (2, 1, None)


@pytest.mark.ruling("C6", "spec:states.preflight", "spec:events.delegation_preflight_failed")
def test_an_unroutable_set_is_refused_whole_and_can_be_corrected() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a"), delegation("b", "ghost"), delegation("c", "runtime_a"))
    assert tree.kinds() == ["delegation_preflight_failed"]
    event = tree.said[0].data
    assert event["valid_agents"] == ["coder", "lead", "reader"]
    assert [fault.partition("): ")[2] for fault in event["faults"]] == [  # type: ignore[union-attr]
        'agent "ghost" is unknown or not allowed on this repository',
        '"runtime_a" is the name of a runtime, not of an agent: name a registered agent, or an ephemeral worker',
    ]
    assert '"ephemeral": {"runtime": ...}' in str(event["alternative"])
    root = tree.jobs[ROOT]
    assert (root.state, bool(root.preflight_failed)) == (JobState.SUCCEEDED, True)
    brief = tree.last.brief
    assert brief is not None
    assert (tree.last.continuation, brief.valid_agents) == (Continuation.CORRECTIVE, ("coder", "lead", "reader"))
    assert [leg.id for each in brief.refused for leg in each.delegations] == ["a", "b", "c"]
    tree.coordinator("approved", delegation("a"), delegation("b"), delegation("c"))
    assert len(tree.flying) == 3, "the corrected set is no repetition: the refused one never entered the window"


@pytest.mark.ruling("C6", "spec:limits.preflight_streak")
def test_a_coordinator_that_keeps_naming_strangers_is_finalized() -> None:
    tree = world()
    for _ in range(3):
        tree.coordinator("approved", delegation("a", "ghost"))
    assert tree.kinds().count("delegation_preflight_failed") == 3
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("spec:delegation.artifacts", "H1")
def test_artifacts_and_long_prompts_travel_by_digest() -> None:
    tree = world()
    long = {"a": LongPrompt(digest="d1", folded="f1")}
    legs = delegation("a", artifacts=("brief",)), delegation("b")
    tree.coordinator("approved", *legs, artifact_digest="body", long_prompts=long)
    a, b = (run for run in tree.flying.values())
    assert (a.assignment.prompt.digest, a.artifact_digest, a.artifacts) == ("d1", "body", ("brief",))
    assert (b.assignment.prompt.inline, b.artifact_digest) == ("do b", None)


@pytest.mark.ruling("spec:orchestrate.recipes")
def test_a_recipe_s_legs_go_out_at_once_and_the_root_continues_from_them() -> None:
    tree = world(legs=(delegation("a", ephemeral=True), delegation("b", ephemeral=True, deps=("a",))))
    assert [run.delegation_id for run in tree.runs] == ["a"]
    assert tree.jobs[ROOT].state is JobState.SUCCEEDED
    play(tree, lambda run: outcome(run, "implemented"))
    assert done(tree)
    assert [run.delegation_id for run in tree.runs] == ["a", "b", None]


@pytest.mark.ruling("spec:orchestrate.verifier")
def test_what_a_result_must_be_read_with_is_an_event_a_note_to_who_sums_up_and_part_of_the_end() -> None:
    caveat = "the check is not independent"
    tree = world(legs=(delegation("a", ephemeral=True),), caveat=caveat)
    assert [event.message for event in tree.events if event.kind == "tree_caveat"] == [caveat]
    tree.leg("a", "implemented")
    assert tree.last.brief is not None
    assert tree.last.brief.notes == (f"{caveat}: say so in your summary",)
    play(tree, lambda run: outcome(run, "implemented"))
    assert done(tree)
    assert tree.state.task.reason == f"the lead reports the work as implemented; {caveat}"


@pytest.mark.ruling("B2", "B3")
def test_rows_say_why_and_what_comes_next() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a", retry=1), delegation("b", deps=("a",)))
    assert tree.jobs[f"{ROOT}.2"].reason == "waits for a"
    tree.leg("a", None, reason="the process died")
    waiting: JobRecord = tree.jobs[f"{ROOT}.1"]
    assert (waiting.state, waiting.attempt) == (JobState.QUEUED, 2)
    assert waiting.reason == "attempt 1 failed: the process died"
    assert waiting.next == "attempt 2 starts 5 s after it"


@pytest.mark.ruling("K5")
def test_spend_is_summed_over_attempts_and_a_guessed_price_is_flagged() -> None:
    tree = world(settings=TreeSettings(prices={"known": (1.0, 0.0)}))
    tree.coordinator("approved", delegation("a", retry=1, model="known"), usage=tokens(1_000_000))
    tree.leg("a", None, usage=tokens(1_000_000))
    tree.fire()
    tree.leg("a", "approved", usage=tokens(1_000_000))
    leg = tree.jobs[f"{ROOT}.1"]
    assert (leg.cost_usd, leg.usage.total, leg.price_assumed) == (2.0, 2_000_000, False)
    assert tree.jobs[ROOT].price_assumed
    assert tree.state.cost_usd == pytest.approx(5.0)


@pytest.mark.ruling("B4")
def test_events_carry_ids_of_the_tree_in_order() -> None:
    tree = world(Bounds(max_delegation_width=1))
    tree.coordinator("approved", delegation("a"), delegation("b"), after=7)
    for job_id in tree.state.jobs:
        ids = [event.event_id for event in tree.events if event.job_id == job_id]
        assert ids == [f"{job_id}-e{number}" for number in range(1, len(ids) + 1)]
    assert [event.job_id for event in tree.said] == [ROOT, f"{ROOT}.1"]
    assert all(event.root_job_id == ROOT and event.message and event.at == 1007 for event in tree.said)


@pytest.mark.ruling("spec:ephemeral.limits")
@pytest.mark.parametrize(("bounds", "fields", "kind"), TRIPS, ids=[kind for _, _, kind in TRIPS])
def test_ephemeral_legs_obey_every_limit(bounds: Bounds, fields: dict[str, object], kind: str) -> None:
    tree = world(bounds)
    tree.coordinator("approved", delegation("a", ephemeral=True), delegation("b", ephemeral=True), **fields)
    assert kind in tree.kinds()
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("spec:ephemeral.limits")
def test_a_coordinator_at_the_depth_cap_delegates_to_no_ephemeral_worker_either() -> None:
    tree = world(Bounds(max_delegation_depth=1))
    tree.coordinator("approved", delegation("a", "lead"))
    tree.leg("a", "approved", delegation("x", ephemeral=True))
    assert "delegation_depth_exceeded" in tree.kinds()
    assert tree.last.continuation is Continuation.FINALIZE


@pytest.mark.ruling("spec:ephemeral.limits", "H2")
def test_a_set_of_ephemeral_legs_issued_again_is_a_loop() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a", ephemeral=True))
    tree.leg("a")
    tree.coordinator("approved", delegation("a", ephemeral=True))
    assert tree.kinds() == ["delegation_loop_warning"]


@pytest.mark.ruling("spec:limits.token_capture")
def test_captured_tokens_are_summed_over_the_tree_and_never_taken_back() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a"), usage=tokens(10))
    tree.leg("a", usage=Usage(input_tokens=-4, output_tokens=7))
    tree.coordinator("implemented")
    assert tree.close is not None
    assert tree.close.usage == Usage(input_tokens=10, output_tokens=7)


@pytest.mark.ruling("spec:states.child_skipped", "A11")
def test_a_child_that_had_nothing_to_do_succeeded() -> None:
    tree = world()
    tree.coordinator("approved", delegation("a"), delegation("b", deps=("a",)))
    tree.leg("a", "skipped")
    assert tree.last.delegation_id == "b"
    assert tree.jobs[f"{ROOT}.1"].state is JobState.SUCCEEDED
