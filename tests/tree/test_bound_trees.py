"""A tree of a pull request or an issue: all its jobs, rows and prompts have the binding."""

from typing import Any

import pytest

from tests.pipeline.plans import Player, agent, an_input, shell
from tests.tree.simulator import World, delegation, tree_input
from workflows.model.jobs import JobRun
from workflows.model.states import Continuation
from workflows.pipeline.commands import RunShell, RunTree
from workflows.pipeline.events import RunStarted
from workflows.pipeline.plan import PlannedAgent
from workflows.pipeline.reducer import reduce
from workflows.pipeline.state import new_run
from workflows.pipeline.view import details as run_details
from workflows.policy.prompts.continuation import render_continuation
from workflows.policy.prompts.task import render_task
from workflows.temporal import search
from workflows.tree.details import details
from workflows.tree.reducer import root_run

pytestmark = pytest.mark.ruling("L1")
PULL_REQUEST: dict[str, Any] = {"pull_request": 7, "github": "acme/shop", "base": "c0ffee"}
ISSUE: dict[str, Any] = {"issue": 3, "github": "acme/shop"}
SAID = "This work belongs to pull request #7 of acme/shop."


def numbers(run: JobRun) -> tuple[int | None, int | None, str, str]:
    asked = run.assignment
    return asked.pull_request, asked.issue, asked.github, asked.base


def world(**fields: Any) -> World:
    return World(tree_input(**fields)).begin()


@pytest.mark.parametrize("what", [PULL_REQUEST, ISSUE])
def test_root_legs_and_continuations_carry_it_and_so_do_their_rows(what: dict[str, Any]) -> None:
    tree = world(**what)
    wanted = numbers(tree.last)
    tree.coordinator("approved", delegation("a"), delegation("b", deps=("a",)))
    assert numbers(tree.last) == wanted
    tree.leg("a", "implemented")
    assert (tree.last.delegation_id, numbers(tree.last)) == ("b", wanted)
    tree.leg("b", "implemented")
    assert (tree.last.continuation, numbers(tree.last)) == (Continuation.NORMAL, wanted)
    assert {(job.pull_request, job.issue) for job in tree.jobs.values()} == {wanted[:2]}


def test_every_prompt_says_it_once() -> None:
    tree = world(**PULL_REQUEST)
    assert render_task(tree.last, "do it", "contract").count(SAID) == 1
    tree.coordinator("approved", delegation("a"))
    assert render_task(tree.last, "do it", "contract").count(SAID) == 1
    tree.leg("a", "implemented")
    assert tree.last.brief is not None
    assert render_continuation(tree.last.brief, {}).count(SAID) == 1


def test_only_a_pull_request_that_a_leg_made_itself_is_told_with_it() -> None:
    tree = world(**PULL_REQUEST)
    tree.coordinator("approved", delegation("a"), delegation("b"))
    tree.leg("a", "implemented")
    tree.leg("b", "implemented", pull_request=9)
    assert tree.last.brief is not None
    assert [leg.pull_request for leg in tree.last.brief.legs] == [None, 9]


def test_a_prompt_of_an_issue_names_the_issue() -> None:
    assert "This work belongs to issue #3 of acme/shop." in render_task(world(**ISSUE).last, "do it", "contract")


def test_a_tree_that_belongs_to_nothing_says_nothing() -> None:
    tree = world()
    assert "belongs to" not in render_task(tree.last, "do it", "contract")
    tree.coordinator("approved", delegation("a"))
    tree.leg("a")
    assert tree.last.brief is not None
    assert "belongs to" not in render_continuation(tree.last.brief, {})
    assert "pull request" not in details(tree.state)


def test_the_web_ui_shows_it_and_finds_it() -> None:
    tree = world(**PULL_REQUEST)
    assert "pull request #7 of acme/shop" in details(tree.state)
    attributes = search.attributes(tree.last, "running")
    assert (attributes.get(search.PULL_REQUEST), attributes.get(search.ISSUE)) == (7, None)
    other = search.attributes(root_run(tree_input(**ISSUE)), "running")
    assert (other.get(search.PULL_REQUEST), other.get(search.ISSUE)) == (None, 3)
    assert search.NAMES["SvcIssue"] == "Int"


def bound(stage: PlannedAgent, **fields: object) -> PlannedAgent:
    return stage.model_copy(update={"assignment": stage.assignment.model_copy(update=fields)})


def test_a_run_hands_its_binding_to_its_stages_and_all_start_from_one_commit() -> None:
    stages = (shell("look"), bound(agent("change"), **PULL_REQUEST), bound(agent("other"), pull_request=8, base="beef"))
    start = an_input(*stages, bound(agent("note"), **ISSUE)).model_copy(update=PULL_REQUEST)
    run = new_run(start)
    commands = reduce(run, RunStarted(now=1000.0))
    [script] = (each.run for each in commands if isinstance(each, RunShell))
    trees = {each.stage_id: each.tree for each in commands if isinstance(each, RunTree)}
    assert (script.pull_request, script.issue, script.base) == (7, None, "c0ffee")
    started = {name: (*numbers(root_run(tree))[:2], tree.assignment.base) for name, tree in trees.items()}
    assert started == {"change": (7, None, "c0ffee"), "other": (8, None, "beef"), "note": (None, 3, "c0ffee")}
    assert search.stage_attributes(trees["change"], "nightly").get(search.PULL_REQUEST) == 7
    assert search.stage_attributes(trees["note"], "nightly").get(search.ISSUE) == 3
    assert search.run_attributes(start).get(search.PULL_REQUEST) == 7
    assert "pull request #7 of acme/shop" in run_details(run)


def test_a_run_that_belongs_to_nothing_is_as_it_was() -> None:
    player = Player(shell("look"), agent("change"))
    assert "pull request" not in run_details(player.run)
    assert search.run_attributes(player.run.input).get(search.PULL_REQUEST) is None
    assert player.run.input.pull_request is None
