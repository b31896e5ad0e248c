"""The work that a leg gets."""

import random

import pytest

from tests.depth import cases
from tests.tree.simulator import ROOT, World, delegation, tree_input
from workflows.contract.models import Delegation, HumanQuestion
from workflows.model.jobs import Work
from workflows.model.states import Continuation


def tree(*legs: Delegation) -> World:
    world = World(tree_input(branch_deps=("task",))).begin()
    world.coordinator("approved", *legs)
    return world


@pytest.mark.ruling("I1", "I2", "engine:nested")
def test_a_leg_that_delegated_hands_on_the_work_of_its_whole_chain() -> None:
    """Two generations, one with a further level; readers, failures and legs without success pass on nothing."""
    world = tree(delegation("lead", "lead"), delegation("check", "reader", "review", deps=("lead",)))
    gone = delegation("gone", failure_policy="continue")
    world.leg("lead", "approved", delegation("y", deps=("x",)), delegation("x"), delegation("r", action="review"), gone)
    world.leg("gone", "failed", branch="b-gone")
    world.leg("r", branch="b-reader")
    world.leg("x", branch="b-x")
    world.leg("y", branch="b-y")
    world.end(world.last.job_id, "approved", delegation("deep", "lead", "review"), branch="b-lead-again")
    world.leg("deep", "approved", delegation("z"))
    world.leg("z", branch="b-z")
    world.end(world.last.job_id, "approved")
    world.end(world.last.job_id, "implemented")
    assert world.last.delegation_id == "check"
    assert world.last.branch_deps == ("task", "b-x", "b-y", "b-lead-again", "b-z")


@pytest.mark.ruling("I1", "engine:nested")
def test_a_nested_leg_sees_what_its_coordinator_was_given() -> None:
    world = tree(delegation("base"), delegation("lead", "lead", deps=("base",)))
    world.leg("base", branch="b-base")
    world.leg("lead", "approved", delegation("x"), branch="b-lead")
    assert world.last.branch_deps == ("task", "b-base")


@pytest.mark.ruling("I1", "D3", "D4")
@pytest.mark.parametrize("by", ["retry", "operator", "person"])
def test_a_failed_attempt_s_branch_never_stands_for_one_that_changed_nothing(by: str) -> None:
    first = delegation("a", retry=int(by == "retry"), failure_policy="escalate_human" if by == "person" else None)
    world = tree(first, delegation("b", deps=("a",)))
    world.leg("a", "failed", branch="half-done", head_sha="abc")
    if by == "retry":
        world.fire()
    elif by == "operator":
        world.retry(f"{ROOT}.1")
    else:
        world.resume("retry")
    assert (world.jobs[f"{ROOT}.1"].branch, world.jobs[f"{ROOT}.1"].head_sha) == (None, None)
    world.leg("a", "approved")
    assert world.last.branch_deps == ("task",)


@pytest.mark.ruling("I1", "D3", "engine:nested")
def test_a_chain_that_ran_again_hands_on_nothing_of_the_chain_before() -> None:
    world = tree(delegation("lead", "lead", retry=1), delegation("b", deps=("lead",)))
    world.leg("lead", "approved", delegation("x"))
    world.leg("x", branch="b-x-first")
    world.end(world.last.job_id, "failed", branch="b-lead-first")
    world.fire()
    world.leg("lead", "approved", delegation("x"))
    world.leg("x", branch="b-x")
    world.end(world.last.job_id, "implemented")
    assert world.last.branch_deps == ("task", "b-x")


@pytest.mark.ruling("D4", "I1")
def test_a_coordinator_that_is_run_again_starts_without_its_old_branch() -> None:
    world = World(tree_input()).begin()
    world.coordinator("failed", branch="half-done")
    world.retry(ROOT)
    world.coordinator("implemented")
    assert world.jobs[ROOT].branch is None
    assert world.close is not None
    assert world.close.branches == ()


def names(work: tuple[Work, ...]) -> list[tuple[str, str]]:
    return [(each.leg, each.branch) for each in work]


@pytest.mark.ruling("O2")
def test_a_generation_begins_from_what_those_before_it_made() -> None:
    """A failed leg is not on the line, and legs of one generation do not see each other."""
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"), delegation("bad", failure_policy="continue"), delegation("b"))
    assert [names(run.line) for run in world.runs] == [[], [], [], []]
    world.leg("a", branch="b-a", head_sha="1")
    world.leg("bad", "failed", branch="b-bad", head_sha="2")
    world.leg("b", branch="b-b", head_sha="3")
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b")]
    world.end(world.last.job_id, "approved", delegation("fix"), delegation("check", action="review", deps=("fix",)))
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b")]
    world.leg("fix", branch="b-fix", head_sha="4")
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b")]
    assert names(world.last.deps) == [("fix", "b-fix")]
    world.leg("check")
    assert names(world.last.line) == [("a", "b-a"), ("b", "b-b"), ("fix", "b-fix")]
    assert [each.head for each in world.last.line] == ["1", "3", "4"]


@pytest.mark.ruling("O2", "engine:nested")
def test_a_nested_chain_begins_from_what_its_leg_began_from() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a", branch="b-a")
    world.end(world.last.job_id, "approved", delegation("near"), delegation("lead", "lead", deps=("near",)))
    world.leg("near", branch="b-near")
    world.leg("lead", "approved", delegation("x"), branch="b-lead")
    assert names(world.last.line) == [("a", "b-a"), ("near", "b-near"), ("", "b-lead")]
    world.leg("x", branch="b-x")
    assert names(world.last.line)[3:] == [("x", "b-x")]
    assert world.last.own_branch == "b-lead"
    world.end(world.last.job_id, "implemented", branch="b-lead")
    assert names(world.last.line) == [("a", "b-a"), ("near", "b-near"), ("lead", "b-lead"), ("lead", "b-x")]


@pytest.mark.ruling("O2")
def test_a_leg_asks_for_the_base() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a", branch="b-a")
    world.end(world.last.job_id, "approved", delegation("fresh", worktree="@base"))
    assert (world.last.at_base, world.last.line, world.last.shared_worktree) == (True, (), None)


@pytest.mark.ruling("O6")
def test_a_leg_asks_for_the_merge_of_another() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a", branch="b-a")
    world.end(world.last.job_id, "approved", delegation("fresh", worktree="@merge:a"))
    assert (world.last.merges, world.last.shared_worktree, world.last.at_base) == (("a",), None, False)
    assert names(world.last.line) == [("a", "b-a")]


@pytest.mark.ruling("C6", "O6")
def test_a_merge_of_a_leg_that_is_unknown_comes_back_with_the_known_ones() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"), delegation("b", "reader", "review"))
    world.leg("a", branch="b-a")
    world.leg("b")
    world.end(world.last.job_id, "approved", delegation("fresh", worktree="@merge:b"))
    assert world.last.brief is not None
    (note,) = world.last.brief.notes
    assert note.endswith('worktree "@merge:b" names no leg of this task with work to merge; there are: a')
    world.end(world.last.job_id, "approved", delegation("fresh", worktree="@merge:a"))
    assert world.last.merges == ("a",)


@pytest.mark.ruling("O2", "engine:nested")
def test_what_a_chain_was_given_is_on_the_line_once_however_deep_below_it() -> None:
    """It is there as the leg's work at its commit; a leg that begins at the base sees none of it."""
    world = World(tree_input(branch_deps=("task",))).begin()
    world.coordinator("approved", delegation("near"), delegation("lead", "lead", deps=("near",)))
    world.leg("near", branch="b-near", head_sha="1")
    world.leg("lead", "approved", delegation("below", "lead"), delegation("fresh", "lead", worktree="@base"))
    world.leg("below", "approved", delegation("deepest"))
    assert world.last.delegation_id == "deepest"
    assert names(world.last.line) == [("", "task"), ("near", "b-near")]
    assert list(world.last.branch_deps) == ["task", "b-near"]
    world.leg("fresh", "approved", delegation("fresher"))
    assert world.last.delegation_id == "fresher"
    assert names(world.last.line) == [("", "task")]
    assert list(world.last.branch_deps) == ["task"]


@pytest.mark.ruling("O2", "I1", "engine:nested")
@pytest.mark.parametrize("seed", range(cases(60, 2_000)))
def test_every_job_of_a_deep_tree_begins_from_what_was_made_before_it(seed: int) -> None:
    """Coordinators below coordinators, legs that fail or begin from the base: `World` compares them with a model."""
    chance = random.Random(seed)
    world = World(tree_input(branch_deps=("task",) if seed % 2 else ())).begin()
    while not world.state.closed:
        if world.flying:
            _end_one(world, chance)
        else:
            world.fire()


def _end_one(world: World, chance: random.Random) -> None:
    run = chance.choice(list(world.flying.values()))
    again = run.continuation is not Continuation.NONE or run.delegation_depth > 2
    more = chance.randint(1, 4) if run.parent_job_id is None or chance.random() < (0.2 if again else 0.6) else 0
    legs = [_a_leg(f"{run.job_id}-{number}", number, chance) for number in range(more)]
    chance.shuffle(legs)
    ends_well = run.parent_job_id is None or chance.random() < 0.8
    made = (
        {"branch": f"service/{run.job_id}", "head_sha": f"{run.job_id}-{run.attempt}"} if chance.random() < 0.8 else {}
    )
    world.end(run.job_id, "implemented" if ends_well else "failed", *legs, progress=run.job_id, **made)


def _a_leg(prompt: str, number: int, chance: random.Random) -> Delegation:
    deps = tuple(f"l{before}" for before in range(number) if chance.random() < 0.4)
    return delegation(
        f"l{number}",
        "lead",
        chance.choice(("implement", "implement", "review")),
        prompt=prompt,
        deps=deps,
        retry=chance.randint(0, 1),
        failure_policy="continue",
        worktree=chance.choice((None, None, None, "@base")),
    )


@pytest.mark.ruling("O5", "F2")
def test_a_job_that_asked_goes_on_on_its_branch() -> None:
    world = World(tree_input()).begin()
    question = (HumanQuestion(id="q", prompt="which?"),)
    world.coordinator("blocked", branch="b-root", head_sha="1", human_questions=question)
    world.resume("answer", "that")
    assert (world.last.continuation, world.last.own_branch) == (Continuation.ANSWERED, "b-root")
