import pytest

from workflows.model.errors import ResumeFault
from workflows.model.rounds import RoundKind
from workflows.policy.verbs import TAKES, TEXT_LIMIT, Verb, commands, refuse_verb

ASK, FAILURE = RoundKind.ASK, RoundKind.FAILURE


def refused(kind: RoundKind, verb: str, text: str = "1h") -> str | None:
    refusal = refuse_verb(verb, text, kind, ["q"], "round 1 of job-x")
    return refusal.kind if refusal else None


@pytest.mark.ruling("F4", "spec:states.wrong_verb")
@pytest.mark.parametrize("kind", RoundKind)
@pytest.mark.parametrize("verb", [*Verb, "", "Answer", "answer ", "x" * 500])
def test_a_round_takes_its_verbs_and_no_others(kind: RoundKind, verb: str) -> None:
    assert (refused(kind, verb) is None) == (verb in TAKES[kind])


@pytest.mark.ruling("F4")
def test_every_verb_is_taken_by_some_round() -> None:
    assert {verb for takes in TAKES.values() for verb in takes} == set(Verb)


@pytest.mark.ruling("F4")
def test_a_wrong_verb_is_told_the_kind_and_what_it_takes() -> None:
    refusal = refuse_verb("answer", "yes", FAILURE, [], "round 2 of job-x")
    assert refusal is not None
    assert refusal.message == (
        "round 2 of job-x is a failure round: it takes `retry`, `continue`, `abort`, `extend`, not `answer`"
    )


@pytest.mark.ruling("F4", "A10")
@pytest.mark.parametrize(
    ("text", "word"), [("2", "unit"), ("", "duration"), ("-1h", "positive"), ("0s", "positive"), ("9000d", "at most")]
)
def test_a_bad_duration_is_refused_with_the_right_form(text: str, word: str) -> None:
    refusal = refuse_verb("extend", text, ASK, ["q"], "round 1")
    assert refusal is not None
    assert refusal.kind is ResumeFault.BAD_DURATION
    assert word in refusal.message


@pytest.mark.ruling("F4", "F5")
@pytest.mark.parametrize("text", ["", " \n", '""', "q:", "q: ''"])
def test_an_answer_that_says_nothing_is_refused(text: str) -> None:
    assert refused(ASK, "answer", text) is ResumeFault.EMPTY_ANSWER


@pytest.mark.ruling("F4")
def test_instructions_may_be_empty_and_nothing_may_be_endless() -> None:
    assert refused(FAILURE, "retry", "") is None
    assert refused(FAILURE, "retry", "x" * TEXT_LIMIT) is None
    assert refused(FAILURE, "retry", "x" * (TEXT_LIMIT + 1)) is ResumeFault.TOO_LONG


@pytest.mark.ruling("B3", "F4")
def test_the_commands_are_the_ones_to_type() -> None:
    assert commands("job-x", TAKES[ASK], ["a", "b"]) == (
        'service resume job-x answer "a: <text>" "b: <text>"',
        "service resume job-x extend <duration>",
    )
    assert commands("job-x", TAKES[FAILURE], [])[0] == "service resume job-x retry"


@pytest.mark.ruling("F4")
def test_a_round_is_extended_by_a_year_at_most() -> None:
    assert refused(ASK, "extend", "365d") is None
    assert refused(ASK, "extend", "365d1ms") == ResumeFault.BAD_DURATION
