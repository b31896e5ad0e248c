import pytest

from tests.tree.simulator import CODER, delegation
from workflows.contract.models import Action, AutonomyPolicy, Ephemeral, Runtime
from workflows.model.long_texts import Text
from workflows.model.settings import RuntimeDefaults, Timeouts, TreeSettings
from workflows.model.workers import Assignment, Worker
from workflows.policy.assignments import leg_assignment, resolve, seconds, timeout_of, worker_of

SETTINGS = TreeSettings(runtimes={"runtime_a": RuntimeDefaults(default_model="from-runtime", default_effort="low")})


@pytest.mark.ruling("spec:delegation.model", "spec:delegation.effort")
@pytest.mark.parametrize(
    ("own", "workers", "runtime", "model"),
    [
        ("own", "worker", True, "own"),
        (None, "worker", True, "worker"),
        (None, None, True, "from-runtime"),
        (None, None, False, None),
    ],
)
def test_model_and_effort_go_from_the_leg_to_the_worker_to_the_runtime(
    own: str | None, workers: str | None, runtime: bool, model: str | None
) -> None:
    settings = SETTINGS if runtime else TreeSettings()
    worker = CODER.model_copy(update={"model": workers, "effort": workers})
    leg = delegation("a", model=own, effort=own)
    parent = Assignment(worker=CODER, action=Action.IMPLEMENT, prompt=Text())
    agents = (worker,)
    means = leg_assignment(leg, agents, parent, settings, Text())
    assert (means.model, means.effort) == (model, "low" if model == "from-runtime" else model)


@pytest.mark.ruling("spec:ephemeral.disposed")
def test_an_ephemeral_worker_is_made_from_its_spec_and_inherits_nothing() -> None:
    spec = Ephemeral(
        runtime=Runtime.RUNTIME_B,
        model="m",
        effort="e",
        template="careful",
        role="judge",
        capabilities=("review",),
        autonomy_policy=AutonomyPolicy.WORKSPACE_WRITE,
    )
    leg = delegation("a", None, "review").model_copy(update={"ephemeral": spec})
    assert worker_of(leg, (CODER,)) == Worker(name="judge", ephemeral=True, **spec.model_dump())
    plain = worker_of(delegation("a", ephemeral=True), (CODER,))
    full = AutonomyPolicy.DANGER_FULL_ACCESS
    assert plain == Worker(name="a", runtime="runtime_c", ephemeral=True, autonomy_policy=full)


@pytest.mark.ruling("spec:ephemeral.read_only")
def test_without_a_policy_an_ephemeral_worker_only_reads() -> None:
    leg = delegation("a", None, "review").model_copy(update={"ephemeral": Ephemeral(runtime=Runtime.RUNTIME_B)})
    assert worker_of(leg, ()).autonomy_policy is AutonomyPolicy.READ_ONLY


TABLE = Timeouts(
    default_plan_timeout=1,
    default_implement_timeout=2,
    default_review_timeout=3,
    default_gate_timeout=4,
    default_repair_timeout=5,
    default_delegation_timeout=6,
)


@pytest.mark.ruling("spec:timeouts.precedence")
@pytest.mark.parametrize(
    ("phase", "action", "expected"),
    [
        ("plan", "ask", 1),
        ("implement", "ask", 2),
        ("review-prep", "implement", 3),
        ("review-dispatch", "implement", 3),
        ("gate", "review", 4),
        ("repair", "implement", 5),
        ("continue", "implement", 5),
        ("something", "review", 3),
        (None, "implement", 2),
        (None, "ask", 6),
    ],
)
def test_phase_then_action_then_the_default(phase: str | None, action: str, expected: float) -> None:
    assert timeout_of(delegation("a", action=action, phase=phase), TABLE) == expected


@pytest.mark.ruling("spec:timeouts.precedence")
def test_a_leg_s_own_timeout_wins_and_nothing_set_is_unbounded() -> None:
    assert timeout_of(delegation("a", timeout="1h30m", phase="plan"), TABLE) == 5400
    assert timeout_of(delegation("a"), Timeouts()) is None
    assert timeout_of(delegation("a", phase="plan"), Timeouts(default_delegation_timeout=9)) == 9


@pytest.mark.ruling("spec:timeouts.precedence")
@pytest.mark.parametrize("phase", ["plan", "review", "review-prep", "review-dispatch", "gate", "repair", "continue"])
def test_a_recognised_phase_whose_key_is_empty_falls_to_the_action_then_to_the_default(phase: str) -> None:
    timeouts = Timeouts(default_implement_timeout=2, default_delegation_timeout=9)
    assert timeout_of(delegation("a", action="implement", phase=phase), timeouts) == 2
    assert timeout_of(delegation("a", action="ask", phase=phase), timeouts) == 9
    assert timeout_of(delegation("a", action="ask", phase=phase), Timeouts(default_implement_timeout=2)) is None


@pytest.mark.ruling("A10")
@pytest.mark.parametrize(("text", "value"), [("250ms", 0.25), ("30m", 1800), ("1d", 86400), ("0s", None), (None, None)])
def test_durations(text: str | None, value: float | None) -> None:
    assert seconds(text) == value


@pytest.mark.ruling("P1.tiers", "spec:delegation.tiers")
@pytest.mark.parametrize(
    ("named", "model"),
    [("cheap", "small"), ("deep", "deep"), ("standard", "usual"), (None, "usual"), ("cheapest", "cheapest")],
)
def test_a_word_for_a_tier_stands_for_its_model_where_one_is_known(named: str | None, model: str) -> None:
    settings = TreeSettings(runtimes={"runtime_a": RuntimeDefaults(default_model="usual", tiers={"cheap": "small"})})
    asked = Assignment(
        worker=Worker(name="coder", runtime="runtime_a"), action=Action.ASK, prompt=Text(inline="x"), model=named
    )
    assert resolve(asked, settings).model == model
