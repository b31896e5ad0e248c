"""Cost of a tree: by the models really used, with estimates marked beside all dollars (ruling K5)."""

from typing import Any

import pytest

from tests.pipeline.plans import Player, agent
from tests.tree.simulator import CODER, LEAD, ROOT, World, delegation, tokens, tree_input
from workflows.model.settings import Bounds, TreeSettings
from workflows.model.states import Continuation
from workflows.pipeline.view import details as details_of_run
from workflows.policy.bounds import ledger_of
from workflows.policy.prompts.continuation import render_continuation
from workflows.tree.details import details

pytestmark = pytest.mark.ruling("K5")

KNOWN = TreeSettings(prices={"known": (1.0, 0.0), "big": (2.0, 0.0)})
MILLION = tokens(1_000_000)


def begun(settings: TreeSettings = KNOWN, **fields: Any) -> World:
    return World(tree_input(settings=settings, **fields)).begin()


def told(world: World) -> tuple[str, str]:
    """Return the prompt of the last dispatched job, and the text of the Temporal web UI unfolded."""
    assert world.last.brief is not None
    return render_continuation(world.last.brief, {}), " ".join(details(world.state).replace("│", " ").split())


@pytest.mark.parametrize("kind", list(Continuation))
def test_every_kind_of_job_is_priced_by_the_model_it_used(kind: Continuation) -> None:
    """The job was to use `known`, and used `big`."""
    world = begun(worker=LEAD.model_copy(update={"model": "known"}))
    match kind:
        case Continuation.NORMAL | Continuation.FINALIZE:
            world.coordinator("approved", delegation("a"))
            if kind is Continuation.FINALIZE:
                world.kill()
            world.leg("a")
        case Continuation.CORRECTIVE:
            world.coordinator("approved", delegation("a", "nobody"))
        case Continuation.REPLAN:
            world.coordinator("approved", delegation("a", action="review", synthesis_rule="verify"))
            world.leg("a", "changes_requested")
        case Continuation.ANSWERED:
            world.coordinator("approved", human_questions=({"id": "q", "prompt": "which?"},))
            world.resume("answer", "q: this")
        case Continuation.NONE:
            pass
    assert world.last.continuation is kind
    job = world.last.job_id
    world.end(job, model="big", usage=MILLION)
    assert (world.jobs[job].cost_usd, world.jobs[job].model, world.jobs[job].price_assumed) == (2.0, "big", False)
    assert (world.state.cost_usd, world.state.price_assumed) == (2.0, False)


def test_a_guess_marks_the_job_the_tree_the_prompt_and_the_end() -> None:
    world = begun()
    world.coordinator("approved", delegation("a", model="known"), usage=MILLION)
    world.leg("a", usage=MILLION)
    prompt, shown = told(world)
    assert "cost ~$4.00." in prompt
    assert "cost ~$4.00" in shown
    assert "[1,000,000 tokens, ~$3.00]" in shown
    assert "[1,000,000 tokens, $1.00]" in shown
    world.coordinator("implemented")
    assert world.close is not None
    assert (world.close.cost_usd, world.close.price_assumed) == (4.0, True)


def test_what_is_known_is_not_marked() -> None:
    world = begun()
    world.coordinator("approved", delegation("a"), usage=MILLION, model="known")
    world.leg("a", usage=MILLION, model="big")
    prompt, shown = told(world)
    assert "cost $3.00." in prompt
    assert "~" not in shown
    world.coordinator("implemented")
    assert world.close is not None
    assert not world.close.price_assumed


def test_a_guess_of_an_attempt_stays_in_the_job() -> None:
    world = begun()
    world.coordinator("approved", delegation("a", retry=1))
    world.leg("a", None, usage=MILLION, model="nobody knows it")
    world.fire()
    world.leg("a", usage=MILLION, model="known")
    row = world.jobs[f"{ROOT}.1"]
    assert (row.cost_usd, row.price_assumed, row.model) == (4.0, True, "known")


def test_a_budget_that_trips_on_a_guess_says_so() -> None:
    settings = KNOWN.model_copy(update={"bounds": Bounds(max_delegation_cost_usd=3.5)})
    world = begun(settings)
    world.coordinator("approved", delegation("a"), usage=MILLION)
    assert "cost_usd: ~3 of 3.5 used" in [event.message for event in world.events]
    world.leg("a", "approved", delegation("x"), usage=MILLION)
    (tripped,) = [event for event in world.events if event.kind == "delegation_cost_usd_exceeded"]
    assert tripped.message == "the task has cost ~$6.00 of its $3.50"
    assert tripped.data == {"cost_usd": 6.0, "budget": 3.5, "price_assumed": True}


def test_a_shell_agents_tokens_cost_what_its_model_costs_and_trip_the_budget() -> None:
    shell = CODER.model_copy(update={"runtime": "shell"})
    settings = KNOWN.model_copy(update={"bounds": Bounds(max_delegation_cost_usd=1.5)})
    world = begun(settings, worker=LEAD.model_copy(update={"runtime": "shell"}), model="known")
    world.coordinator("approved", delegation("a"), usage=MILLION, agents=(shell,))
    assert (world.state.cost_usd, world.state.price_assumed) == (1.0, False), "the model it was asked to use"
    world.leg("a", usage=MILLION)
    assert (world.state.cost_usd, world.state.price_assumed) == (4.0, True), "the mid tier, as a guess"
    world.coordinator("approved", delegation("b"), agents=(shell,))
    assert "delegation_cost_usd_exceeded" in world.kinds()


def test_a_shell_agent_that_reports_no_tokens_costs_nothing() -> None:
    world = begun(worker=LEAD.model_copy(update={"runtime": "shell"}), model="known")
    world.coordinator("implemented")
    assert (world.state.cost_usd, world.state.price_assumed) == (0.0, False)


def test_a_runs_guess_is_its_stages_and_stays() -> None:
    player = Player(agent("a"), agent("b", "a"))
    player.end("a", usage=MILLION, cost_usd=3.0, price_assumed=True)
    assert "1,000,000 tokens, ~$3.00" in details_of_run(player.run)
    player.end("b", usage=MILLION, cost_usd=1.0)
    assert player.row is not None
    assert (player.row.price_assumed, player.closed[0].price_assumed) == (True, True)


def test_a_run_that_knows_its_prices_is_not_marked() -> None:
    player = Player(agent("a"))
    player.end("a", usage=MILLION, cost_usd=3.0)
    assert "1,000,000 tokens, $3.00" in details_of_run(player.run)
    assert not player.closed[0].price_assumed


@pytest.mark.ruling("C3", "C4")
def test_the_rows_tell_what_is_used_as_the_tree_itself_counts_it() -> None:
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a", retry=1), delegation("b"))
    world.leg("a", "failed")
    world.fire()
    world.leg("a")
    world.kill()
    world.leg("b")
    world.end(world.last.job_id)
    own, counted = world.state.ledger(), ledger_of(world.state.task, list(world.state.jobs.values()), world.now)
    assert world.last.continuation is Continuation.FINALIZE
    assert (
        (counted.jobs, counted.tokens, counted.cost_usd)
        == (own.jobs, own.tokens, own.cost_usd)
        == (3, own.tokens, own.cost_usd)
    )
