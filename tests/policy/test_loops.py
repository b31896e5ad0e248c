import pytest

from tests.tree.simulator import LEAD, ROOT, delegation, tree_input
from workflows.contract.models import Delegation, Ephemeral, Runtime
from workflows.model.texts import LongPrompt
from workflows.policy import loops
from workflows.policy.loops import Rung
from workflows.tree.chains import Coordinator
from workflows.tree.ladder import Ladder
from workflows.tree.reducer import new_tree


@pytest.fixture
def chain() -> Coordinator:
    return new_tree(tree_input()).root


def sign(*delegations: Delegation) -> str:
    return loops.signature(delegations, {})


BASE = delegation("a", deps=("b",), model="m", effort="e")


@pytest.mark.ruling("H1", "spec:delegation.phase")
@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "do   a\n"},
        {"phase": "plan"},
        {"timeout": "5m"},
        {"retry": 3},
        {"failure_policy": "continue"},
        {"synthesis_rule": "vote"},
    ],
)
def test_labels_white_space_and_policies_do_not_make_another_set(change: dict[str, object]) -> None:
    assert sign(BASE) == sign(Delegation.model_validate(BASE.model_dump() | change))


@pytest.mark.ruling("H1")
@pytest.mark.parametrize(
    "change",
    [
        {"id": "z"},
        {"agent": "lead"},
        {"action": "ask"},
        {"prompt": "else"},
        {"deps": ()},
        {"model": "deep"},
        {"effort": "x"},
    ],
)
def test_what_makes_another_set(change: dict[str, object]) -> None:
    assert sign(BASE) != sign(Delegation.model_validate(BASE.model_dump() | change))


WORKER = Ephemeral(runtime=Runtime.RUNTIME_A, template="t", role="r", capabilities=("ask", "review"))


def sign_worker(**changes: object) -> str:
    return sign(delegation("a", None).model_copy(update={"ephemeral": WORKER.model_copy(update=changes)}))


@pytest.mark.ruling("H1")
@pytest.mark.parametrize(
    "change",
    [
        {"runtime": Runtime.RUNTIME_B},
        {"template": "u"},
        {"role": "s"},
        {"capabilities": ("ask",)},
        {"model": "deep"},
        {"effort": "high"},
    ],
)
def test_another_worker_makes_another_set(change: dict[str, object]) -> None:
    assert sign_worker(**change) != sign_worker()
    assert sign_worker(capabilities=("review", "ask")) == sign_worker()


@pytest.mark.ruling("H1")
def test_the_order_of_legs_does_not_count_and_long_prompts_count_by_their_digest() -> None:
    a, b = delegation("a"), delegation("b")
    assert sign(a, b) == sign(b, a)
    long = {"a": LongPrompt(digest="x", folded=loops.folded("do \n a"))}
    assert loops.signature([a], long) == sign(a)


@pytest.mark.ruling("H2", "spec:limits.loop_window")
def test_a_repeat_warns_once_and_then_is_a_loop_for_good(chain: Coordinator) -> None:
    for each in ("A", "B"):
        assert chain.ladder.repeats(each) is None
        chain.ladder.dispatched(each)
    assert chain.ladder.repeats("A") is Rung.WARNING
    chain.ladder.generation(["one"], 2)
    chain.ladder.generation(["two"], 2)
    assert chain.ladder.repeats("B") is Rung.DETECTED


@pytest.mark.ruling("H2", "H3")
def test_both_signals_climb_one_ladder(chain: Coordinator) -> None:
    chain.ladder.dispatched("A")
    assert [chain.ladder.generation(["same"], 1) for _ in range(2)] == [None, Rung.WARNING]
    assert chain.ladder.repeats("A") is Rung.DETECTED
    other = Ladder(window=["A"])
    assert other.repeats("A") is Rung.WARNING
    assert [other.generation(["same"], 1) for _ in range(2)] == [None, Rung.DETECTED]


@pytest.mark.ruling("H1")
def test_the_window_holds_eight_sets(chain: Coordinator) -> None:
    for each in "ABCDEFGHI":
        chain.ladder.dispatched(each)
    assert chain.ladder.repeats("A") is None
    assert chain.ladder.repeats("B") is Rung.WARNING


@pytest.mark.ruling("H3", "spec:limits.non_progress")
def test_the_streak_warns_at_its_limit_then_detects(chain: Coordinator) -> None:
    assert [chain.ladder.generation(["same"], 2) for _ in range(4)] == [None, None, Rung.WARNING, Rung.DETECTED]


@pytest.mark.ruling("H3", "spec:limits.non_progress")
def test_a_change_resets_the_streak_and_the_ladder(chain: Coordinator) -> None:
    climbed = [chain.ladder.generation([digest], 2) for digest in "xxxyyy"]
    assert climbed == [None, None, Rung.WARNING, None, None, Rung.WARNING]


@pytest.mark.ruling("H3")
def test_the_digest_does_not_depend_on_the_order_of_legs(chain: Coordinator) -> None:
    chain.ladder.generation(["a", "b"], 9)
    chain.ladder.generation(["b", "a"], 9)
    assert chain.ladder.streak == 1


@pytest.mark.ruling("C6", "spec:limits.preflight_streak")
def test_preflight_failures_share_the_streak(chain: Coordinator) -> None:
    assert [chain.ladder.unroutable(2) for _ in range(3)] == [True, True, False]
    assert (chain.coordinator_id, chain.run.assignment.worker) == (ROOT, LEAD)
