"""Model, effort and timeout of every kind of job, resolved in one place when the job is created."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.pipeline.plans import SCOUT, an_input
from tests.tree.simulator import AGENTS, CODER, LEAD, ROOT, World, delegation, tree_input
from workflows.contract.models import Action, Ephemeral, Runtime
from workflows.model.jobs import JobRun
from workflows.model.long_texts import Text
from workflows.model.rows import JobRecord
from workflows.model.settings import RuntimeDefaults, Timeouts, TreeSettings
from workflows.model.states import Continuation
from workflows.model.workers import Assignment, Worker
from workflows.pipeline.commands import RunTree
from workflows.pipeline.events import RunStarted
from workflows.pipeline.plan import PlannedAgent
from workflows.pipeline.reducer import reduce
from workflows.pipeline.state import new_run
from workflows.policy.assignments import ephemeral_worker
from workflows.policy.recipes import Recipe, expand
from workflows.tree.reducer import new_tree, root_run

RUNTIMES = ("runtime_a", "runtime_b", "runtime_c", "shell")
SETTINGS = TreeSettings(
    runtimes={name: RuntimeDefaults(default_model="usual", default_effort="low") for name in RUNTIMES},
    timeouts=Timeouts(default_implement_timeout=60.0, default_delegation_timeout=90.0),
)
OWN, WORKERS = "own", "worker"

Job = tuple[JobRun, JobRecord]
Kind = Callable[[str | None, str | None, TreeSettings], Job]


def having(worker: Worker, means: str | None) -> Worker:
    return worker.model_copy(update={"model": means, "effort": means})


def grown(settings: TreeSettings, worker: Worker, own: str | None = None, **fields: Any) -> World:
    """Return a tree with this worker at its root."""
    return World(tree_input(settings=settings, worker=worker, model=own, effort=own, **fields)).begin()


def last(world: World) -> Job:
    return world.last, world.jobs[world.last.job_id]


def root(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    return last(grown(settings, having(LEAD, workers), own))


def leg(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    world = grown(settings, LEAD)
    agents = (having(CODER, workers), *AGENTS[1:])
    world.coordinator("approved", delegation("a", model=own, effort=own), agents=agents)
    return last(world)


def ephemeral_leg(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    world = grown(settings, LEAD)
    worker = Ephemeral(runtime=Runtime.RUNTIME_C, model=workers, effort=workers)
    asked = delegation("a", None, "review", model=own, effort=own).model_copy(update={"ephemeral": worker})
    world.coordinator("approved", asked)
    return last(world)


def continuation(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    """Return the root's continuation, after a leg with its own model and effort."""
    world = grown(settings, having(LEAD, workers), own)
    world.coordinator("approved", delegation("a", model="a leg's", effort="a leg's", timeout="5m"))
    world.leg("a", model="what the leg used")
    assert world.last.continuation is Continuation.NORMAL
    return last(world)


def continuation_of_a_leg(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    """Return the continuation of a delegated coordinator."""
    world = grown(settings, LEAD)
    agents = (CODER, having(LEAD, workers))
    world.coordinator("approved", delegation("a", "lead", model=own, effort=own), agents=agents)
    world.leg("a", "approved", delegation("x", model="a leg's", effort="a leg's"))
    world.leg("x")
    assert world.last.continuation is Continuation.NORMAL
    return last(world)


def finalize(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    world = grown(settings, having(LEAD, workers), own)
    world.coordinator("approved", delegation("a", model="a leg's", effort="a leg's"))
    world.kill()
    world.leg("a")
    assert world.last.continuation is Continuation.FINALIZE
    return last(world)


def run_again(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    """Return a blocked leg that an operator ran again, after its agent was changed."""
    world = grown(settings, LEAD)
    agents = (having(CODER, workers), *AGENTS[1:])
    world.coordinator("approved", delegation("a", model=own, effort=own), agents=agents)
    world.leg("a", "blocked")
    world.retry(f"{ROOT}.1")
    assert world.last.attempt == 2
    return last(world)


def asking(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    """A root that is asked: it hands out work and puts it together."""
    return last(grown(settings, having(LEAD, workers), own, action="ask"))


def asking_continuation(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    world = grown(settings, having(LEAD, workers), own, action="ask")
    world.coordinator("approved", delegation("a"))
    world.leg("a")
    return last(world)


def recipe_leg(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    """Return a leg of a recipe, which has no model and effort unless the recipe sets them."""
    (first, *others) = expand(Recipe.VERIFIER, "a goal", ("runtime_a",))
    assert first.ephemeral is not None
    worker = first.ephemeral.model_copy(update={"model": workers, "effort": workers})
    first = first.model_copy(update={"model": own, "effort": own, "ephemeral": worker})
    return last(grown(settings, LEAD, legs=(first, *others)))


def recipe_continuation(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    """Return the job that sums up a recipe, and that has not run before."""
    world = grown(settings, having(LEAD, workers), own, legs=expand(Recipe.REVIEW_PANEL, "a goal", ("runtime_a",), 1))
    world.end(f"{ROOT}.1")
    assert world.last.continuation is Continuation.NORMAL
    return last(world)


def staged(worker: Worker, own: str | None, settings: TreeSettings) -> Job:
    plan = PlannedAgent(
        id="a",
        assignment=Assignment(
            worker=worker, action=Action.REVIEW, prompt=Text(inline="do"), model=own, effort=own, timeout_seconds=7
        ),
    )
    start = an_input(plan).model_copy(update={"settings": settings})
    (tree,) = (each.tree for each in reduce(new_run(start), RunStarted(now=1000.0)) if isinstance(each, RunTree))
    return root_run(tree), new_tree(tree).jobs[tree.root_job_id]


def pipeline_stage(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    return staged(having(SCOUT, workers), own, settings)


def ephemeral_stage(own: str | None, workers: str | None, settings: TreeSettings) -> Job:
    spec = Ephemeral(runtime=Runtime.RUNTIME_B, model=workers, effort=workers)
    return staged(ephemeral_worker("a", spec), own, settings)


KINDS = (
    *(root, leg, ephemeral_leg, continuation, continuation_of_a_leg, finalize, run_again),
    *(recipe_leg, recipe_continuation, pipeline_stage, ephemeral_stage),
)


@pytest.mark.ruling("spec:delegation.model", "spec:delegation.effort")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_job_has_its_own_the_workers_or_the_runtimes_default(kind: Kind) -> None:
    unset = TreeSettings()
    for job, means in (
        (kind(OWN, WORKERS, SETTINGS), (OWN, OWN)),
        (kind(None, WORKERS, SETTINGS), (WORKERS, WORKERS)),
        (kind("", WORKERS, SETTINGS), (WORKERS, WORKERS)),
        (kind(None, None, SETTINGS), ("usual", "low")),
        (kind(None, None, unset), (None, None)),
    ):
        run, row = job
        assert (run.assignment.model, run.assignment.effort) == means, "what its program is started with"
        assert (row.model, row.effort) == means, "what its row says"


@pytest.mark.ruling("spec:timeouts.precedence")
@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        (root, None),
        (continuation, None),
        (finalize, None),
        (recipe_continuation, None),
        (pipeline_stage, 7.0),
        (leg, 60.0),
        (recipe_leg, 60.0),
        (ephemeral_leg, 90.0),
        (run_again, 60.0),
        (continuation_of_a_leg, 60.0),
    ],
    ids=lambda kind: getattr(kind, "__name__", ""),
)
def test_defaults_of_time_are_those_of_child_jobs_and_a_continuation_has_its_coordinators(
    kind: Kind, seconds: float | None
) -> None:
    run, _ = kind(None, None, SETTINGS)
    assert run.assignment.timeout_seconds == seconds


@pytest.mark.ruling("A10")
@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        (root, None),
        (asking, 30.0),
        (asking_continuation, 30.0),
        (recipe_continuation, None),
        (ephemeral_stage, 7.0),
        (finalize, 20.0),
        (leg, 60.0),
    ],
    ids=lambda kind: getattr(kind, "__name__", ""),
)
def test_a_root_that_is_asked_has_the_time_of_plans_and_the_finalize_that_of_gates(
    kind: Kind, seconds: float | None
) -> None:
    limits = SETTINGS.timeouts.model_copy(update={"default_plan_timeout": 30.0, "default_gate_timeout": 20.0})
    run, _ = kind(None, None, SETTINGS.model_copy(update={"timeouts": limits}))
    assert run.assignment.timeout_seconds == seconds


@pytest.mark.ruling("A10")
@pytest.mark.parametrize(("gate", "seconds"), [(20.0, 20.0), (None, 7.0)])
def test_a_root_s_own_time_goes_before_and_holds_for_a_finalize_that_has_none(
    gate: float | None, seconds: float
) -> None:
    limits = Timeouts(default_plan_timeout=30.0, default_gate_timeout=gate)
    world = grown(TreeSettings(timeouts=limits), LEAD, action="ask", timeout_seconds=7.0)
    assert world.last.assignment.timeout_seconds == 7.0
    world.coordinator("approved", delegation("a"))
    world.kill()
    world.leg("a")
    assert world.last.continuation is Continuation.FINALIZE
    assert world.last.assignment.timeout_seconds == seconds


@pytest.mark.ruling("spec:timeouts.precedence")
def test_a_root_s_own_time_is_its_own_and_its_continuations() -> None:
    world = grown(SETTINGS, LEAD, timeout_seconds=7.0)
    assert world.last.assignment.timeout_seconds == 7.0
    world.coordinator("approved", delegation("a"))
    world.leg("a")
    assert (world.last.continuation, world.last.assignment.timeout_seconds) == (Continuation.NORMAL, 7.0)
