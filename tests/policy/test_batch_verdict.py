import pytest

from tests.tree.legs import leg
from workflows.contract.models import Decision, FailurePolicy, SynthesisRule
from workflows.model.states import JobState
from workflows.policy.backoff import retry_backoff
from workflows.policy.batch_verdict import Ballot, Result, judge
from workflows.policy.decisions import state_of


def ballots(*words: str, rule: str | None = None, quorum: int | None = None) -> list[Ballot]:
    """Return a ballot per word; the first is tagged with the rule, all for a vote. `crash` and `unrun` are states."""
    made = []
    for index, word in enumerate(words):
        tag = SynthesisRule(rule) if rule and (index == 0 or rule == "vote") else None
        crashed = {"crash": JobState.FAILED, "unrun": JobState.SKIPPED}.get(word)
        decision = None if crashed else Decision(word)
        state = crashed or state_of(Decision(word))
        made.append(Ballot(f"l{index}", state, decision, frozenset({tag} if tag else ()), quorum if tag else None))
    return made


@pytest.mark.ruling("E2", "spec:synthesis.vote")
@pytest.mark.parametrize(
    ("words", "result"),
    [
        (("approved", "implemented"), Result.PROCEED),
        (("approved", "skipped"), Result.PROCEED),
        (("approved", "changes_requested"), Result.BLOCK),
        (("approved", "failed"), Result.BLOCK),
        (("approved", "unrun"), Result.BLOCK),
    ],
)
def test_vote(words: tuple[str, ...], result: Result) -> None:
    assert judge(ballots(*words, rule="vote")).result is result


@pytest.mark.ruling("E3", "spec:synthesis.quorum", "spec:states.child_skipped")
@pytest.mark.parametrize(
    ("words", "result"),
    [
        (("approved", "implemented", "failed"), Result.PROCEED),
        (("changes_requested", "approved", "approved"), Result.PROCEED),
        (("approved", "skipped", "changes_requested"), Result.BLOCK),
        (("approved", "crash", "unrun"), Result.BLOCK),
    ],
)
def test_two_of_three_for_a_quorum_of_two(words: tuple[str, ...], result: Result) -> None:
    assert judge(ballots(*words, rule="quorum", quorum=2)).result is result


@pytest.mark.ruling("E3", "spec:synthesis.quorum")
def test_the_largest_quorum_of_the_tagged_legs_counts() -> None:
    tagged = [
        Ballot("a", JobState.SUCCEEDED, Decision.APPROVED, frozenset({SynthesisRule.QUORUM}), 1),
        Ballot("b", JobState.SUCCEEDED, Decision.SKIPPED, frozenset({SynthesisRule.QUORUM}), 2),
    ]
    assert judge(tagged).reason == "the quorum was not met: 1 of the 2 approvals needed"


@pytest.mark.ruling("E4", "spec:synthesis.verify")
@pytest.mark.parametrize(
    ("word", "result"),
    [
        ("approved", Result.PROCEED),
        ("implemented", Result.PROCEED),
        ("changes_requested", Result.REPLAN),
        ("failed", Result.REPLAN),
        ("crash", Result.REPLAN),
        ("skipped", Result.REPLAN),
        ("unrun", Result.REPLAN),
    ],
)
def test_verify_looks_at_the_tagged_legs_only(word: str, result: Result) -> None:
    assert judge(ballots(word, "changes_requested", rule="verify")).result is result


@pytest.mark.ruling("E4", "spec:states.child_skipped")
@pytest.mark.parametrize(
    ("other", "reason"), [("approved", ""), ("skipped", "nothing was verified"), ("unrun", "nothing was verified")]
)
def test_skipped_abstains_and_leaves_the_verdict_to_the_others(other: str, reason: str) -> None:
    both = [*ballots("skipped", rule="verify"), *ballots(other, rule="verify")]
    assert judge(both).reason == reason


@pytest.mark.ruling("E1")
def test_vote_then_quorum_then_verify() -> None:
    verify = ballots("changes_requested", rule="verify")
    quorum = ballots("skipped", rule="quorum", quorum=3)
    vote = ballots("approved", rule="vote")
    assert judge([*verify, *quorum, *vote]).reason.startswith("the vote failed")
    assert judge([*verify, *quorum]).reason.startswith("the quorum")
    assert judge(verify).result is Result.REPLAN


@pytest.mark.ruling("D6")
def test_an_escalation_overrules_vote_and_quorum_and_not_verify() -> None:
    assert judge(ballots("failed", rule="vote"), overruled=True).result is Result.PROCEED
    assert judge(ballots("failed", rule="quorum", quorum=1), overruled=True).result is Result.PROCEED
    assert judge(ballots("failed", rule="verify"), overruled=True).result is Result.REPLAN


@pytest.mark.ruling("E1", "spec:synthesis.summary")
def test_without_a_rule_that_blocks_the_batch_proceeds() -> None:
    assert judge(ballots("failed", "changes_requested", rule="summary")).result is Result.PROCEED


@pytest.mark.ruling("D8", "D4")
@pytest.mark.parametrize(
    ("rule", "given", "policy"),
    [
        (None, None, "block_parent"),
        ("summary", None, "block_parent"),
        ("quorum", None, "continue"),
        ("vote", None, "continue"),
        ("verify", None, "continue"),
        ("verify", "block_parent", "block_parent"),
        ("quorum", "escalate", "escalate"),
    ],
)
def test_an_omitted_policy_on_a_ballot_is_an_input_to_its_rule(
    rule: str | None, given: str | None, policy: str
) -> None:
    assert leg("a", rules=(rule,) if rule else (), failure_policy=given).policy is FailurePolicy(policy)


@pytest.mark.ruling("D3")
def test_the_pause_doubles_from_five_seconds_to_five_minutes() -> None:
    assert [retry_backoff(used) for used in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert retry_backoff(10**6) == 300


@pytest.mark.ruling("A11", "spec:states.child_skipped")
def test_states_of_decisions() -> None:
    assert {each.value: state_of(each).value for each in Decision} == {
        "approved": "succeeded",
        "changes_requested": "succeeded",
        "implemented": "succeeded",
        "skipped": "succeeded",
        "blocked": "blocked",
        "failed": "failed",
    }
