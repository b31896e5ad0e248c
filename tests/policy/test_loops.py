import pytest

from tests.tree.simulator import delegation
from workflows.contract.models import Decision, Delegation, Ephemeral, Runtime, ServiceResult
from workflows.model.long_texts import LongPrompt
from workflows.policy import loops
from workflows.policy.loops import Ladder, Rung, side_effects

RESULT = ServiceResult(
    decision=Decision.IMPLEMENTED, summary="s", changes_made=("a.py", {"path": "b.py"}), tests_run=("t1", "t2")
)


class Chain:
    """A coordinator's ladder."""

    def __init__(self, *dispatched: str) -> None:
        self.ladder = Ladder(window=dispatched)

    def returns(self, signature: str) -> Rung | None:
        self.ladder, rung = self.ladder.check_set(signature)
        return rung

    def dispatches(self, signature: str) -> None:
        self.ladder = self.ladder.add_set(signature)

    def settles(self, *legs: str, limit: int) -> Rung | None:
        self.ladder, rung = self.ladder.generation_over(legs, limit)
        return rung


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
    long = {"a": LongPrompt(digest="x", folded=loops.folded_digest("do \n a"))}
    assert loops.signature([a], long) == sign(a)


@pytest.mark.ruling("H2", "spec:limits.loop_window")
def test_a_repeat_warns_once_and_then_is_a_loop_for_good() -> None:
    chain = Chain()
    for name in ("A", "B"):
        assert chain.returns(name) is None
        chain.dispatches(name)
    assert chain.returns("A") is Rung.WARNING
    chain.settles("one", limit=2)
    chain.settles("two", limit=2)
    assert chain.returns("B") is Rung.DETECTED


@pytest.mark.ruling("H2", "H3")
def test_both_signals_climb_one_ladder() -> None:
    chain, other = Chain("A"), Chain("A")
    assert [chain.settles("same", limit=1) for _ in range(2)] == [None, Rung.WARNING]
    assert chain.returns("A") is Rung.DETECTED
    assert other.returns("A") is Rung.WARNING
    assert [other.settles("same", limit=1) for _ in range(2)] == [None, Rung.DETECTED]


@pytest.mark.ruling("H1")
def test_the_window_holds_eight_sets() -> None:
    chain = Chain()
    for name in "ABCDEFGHI":
        chain.dispatches(name)
    assert chain.returns("A") is None
    assert chain.returns("B") is Rung.WARNING


@pytest.mark.ruling("H3", "spec:limits.non_progress")
def test_the_streak_warns_at_its_limit_then_detects() -> None:
    chain = Chain()
    assert [chain.settles("same", limit=2) for _ in range(4)] == [None, None, Rung.WARNING, Rung.DETECTED]


@pytest.mark.ruling("H3", "spec:limits.non_progress")
def test_a_change_resets_the_streak_and_the_ladder() -> None:
    chain = Chain()
    climbed = [chain.settles(digest, limit=2) for digest in "xxxyyy"]
    assert climbed == [None, None, Rung.WARNING, None, None, Rung.WARNING]


@pytest.mark.ruling("H3")
def test_the_digest_does_not_depend_on_the_order_of_legs() -> None:
    chain = Chain()
    chain.settles("a", "b", limit=9)
    chain.settles("b", "a", limit=9)
    assert chain.ladder.streak == 1


@pytest.mark.ruling("C6", "spec:limits.preflight_streak")
def test_sets_that_cannot_go_out_share_the_streak() -> None:
    chain = Chain()
    for _ in range(2):
        chain.settles("same", limit=9)
    assert chain.ladder.count_unroutable_set().streak == 2


@pytest.mark.ruling("H1")
def test_the_order_of_deps_makes_no_other_set() -> None:
    assert sign(delegation("a", deps=("b", "c"))) == sign(delegation("a", deps=("c", "b")))


def digest_of(
    pull_request: int | None = 1, head: str | None = "h", artifact: str | None = "x", **changes: object
) -> str:
    result = ServiceResult.model_validate(RESULT.model_dump() | changes)
    return side_effects(result, pull_request=pull_request, head_sha=head, artifact_digest=artifact)


@pytest.mark.ruling("H3", "spec:limits.non_progress")
@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "approved"},
        {"changes_made": ("a.py",)},
        {"changes_made": ("a.py", {"path": "c.py"})},
        {"tests_run": ("t1",)},
        {"pull_request": 2},
        {"head": "i"},
        {"artifact": None},
    ],
)
def test_each_verifiable_side_effect_is_progress(changes: dict[str, object]) -> None:
    base = digest_of()
    assert digest_of(**changes) != base  # type: ignore[arg-type]


@pytest.mark.ruling("H3", "spec:limits.non_progress")
@pytest.mark.parametrize(
    "changes",
    [
        {"summary": "other words"},
        {"findings": ("more",)},
        {"needs": ("money",)},
        {"changes_made": ({"path": "b.py"}, "a.py")},
        {"tests_run": ("t2", "  t1 ")},
    ],
)
def test_what_a_job_says_of_itself_and_in_which_order_is_none(changes: dict[str, object]) -> None:
    base = digest_of()
    assert digest_of(**changes) == base  # type: ignore[arg-type]
