import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workflows.contract.faults import nearest
from workflows.model.refusals import ResumeFault
from workflows.model.rounds import RoundKind
from workflows.policy.answers import (
    ASKS_BACK,
    MOST_UNMATCHED,
    TAKES,
    TEXT_LIMIT,
    Answers,
    Asks,
    Meant,
    Verb,
    commands,
    parse,
    refuse_incomplete,
    refuse_verb,
)

ASK, FAILURE = RoundKind.ASK, RoundKind.FAILURE
ONE: Asks = {"store": ()}
TWO: Asks = {"store": ("redis", "memory"), "limit": ()}
JOB = "job-1"


@pytest.mark.ruling("F5", "spec:states.resume_answer")
@pytest.mark.parametrize(
    ("body", "ids", "answers", "guidance"),
    [
        ("store: memory", ["store", "limit"], {"store": "memory"}, ""),
        ("store: memory\nlimit: 10", ["store", "limit"], {"store": "memory", "limit": "10"}, ""),
        ("store: memory\r\nlimit: 10\r\n", ["store", "limit"], {"store": "memory", "limit": "10"}, ""),
        ("limit: 10\rstore: memory", ["store", "limit"], {"store": "memory", "limit": "10"}, ""),
        ("store: memory\n\nand no\nother: thing\nlimit: 1", ["store", "limit"], None, ""),
        ('"store: memory"', ["store", "limit"], {"store": "memory"}, ""),
        ('"store: memory\nlimit: 10"', ["store", "limit"], {"store": "memory", "limit": "10"}, ""),
        ('"store: memory" "limit: 10"', ["store", "limit"], {"store": "memory", "limit": "10"}, ""),
        ('"store: memory"\n"limit: 10"', ["store", "limit"], {"store": "memory", "limit": "10"}, ""),
        ("store: \"in memory\"\nlimit: 'ten'", ["store", "limit"], {"store": "in memory", "limit": "ten"}, ""),
        ('store: "a" or "b"', ["store", "limit"], {"store": '"a" or "b"'}, ""),
        ("store: it's fine", ["store", "limit"], {"store": "it's fine"}, ""),
        ("a: 1\na.b: 2\na-b: 3", ["a", "a.b", "a-b"], {"a": "1", "a.b": "2", "a-b": "3"}, ""),
        ("a.b: 2", ["a", "a.b"], {"a.b": "2"}, ""),
        ("ab: 2", ["a", "b"], {}, "ab: 2"),
        ("A: 2", ["a", "b"], {}, "A: 2"),
        ("see https://x.y: it is there\na: b:c:d", ["a", "b"], {"a": "b:c:d"}, "see https://x.y: it is there"),
        ("  a  :  1  ", ["a", "b"], {"a": "1"}, ""),
        ("a:\nb: 2", ["a", "b"], {"b": "2"}, ""),
        ("a: one\nb: 2\na: two", ["a", "b"], {"a": "one\ntwo", "b": "2"}, ""),
        ("Do it.\na: 1", ["a", "b"], {"a": "1"}, "Do it."),
        ("just do it", ["a", "b"], {}, "just do it"),
        ("just do it", ["a"], {"a": "just do it"}, ""),
        ('"just\ndo: it"', ["a"], {"a": "just\ndo: it"}, ""),
        ("Hello,\na: yes", ["a"], {"a": "yes"}, "Hello,"),
        ("", ["a"], {}, ""),
        (' " " ', ["a"], {}, ""),
        ("a:", ["a"], {}, ""),
    ],
)
def test_what_a_person_writes_is_read_as_answers(
    body: str, ids: list[str], answers: dict[str, str] | None, guidance: str
) -> None:
    wanted = answers if answers is not None else {"store": "memory\n\nand no\nother: thing", "limit": "1"}
    read = parse(body, ids)
    assert (read.by_id, read.guidance) == (wanted, guidance)


@pytest.mark.ruling("F5", "spec:states.resume_answer")
def test_what_stands_in_an_ids_place_is_named_wherever_it_stands() -> None:
    answers = parse("stroe: x\na: 1\nlimt: 2\nhttps://x: y\nat 12:30\nlimt: 3\nb: 2", ["a", "b"])
    assert answers.unmatched == ("stroe", "limt")
    assert answers.by_id["a"] == "1\nlimt: 2\nhttps://x: y\nat 12:30\nlimt: 3", "text runs on until the next known id"
    assert answers.guidance == "stroe: x"
    assert len(parse("\n".join(f"x{n}: y" for n in range(99)), ["a", "b"]).unmatched) == MOST_UNMATCHED


_IDS = st.lists(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,5}", fullmatch=True), min_size=1, max_size=5, unique=True)
_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40)


@pytest.mark.ruling("F5")
@given(ids=_IDS, body=st.lists(st.one_of(_TEXT, st.sampled_from(["a: x", "b:", "'", '"'])), max_size=5).map("\n".join))
@example(ids=["a"], body='"')
def test_every_word_is_kept_and_only_known_ids_are_answered(ids: list[str], body: str) -> None:
    answers = parse(body, ids)
    assert set(answers.by_id) <= set(ids)
    assert all(text.strip() for text in answers.by_id.values())
    kept = " ".join([*answers.by_id, *answers.by_id.values(), answers.guidance])
    for word in body.split():
        if word.isalnum() and word.isascii() and word not in ids:
            assert word in kept
    kept.encode()


@pytest.mark.ruling("F5")
@given(
    data=st.dictionaries(
        st.from_regex(r"[a-z][a-z._-]{0,4}", fullmatch=True),
        st.from_regex(r"[A-Z0-9][A-Z0-9 \n]{0,20}[A-Z0-9]", fullmatch=True),
        min_size=1,
        max_size=5,
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quote=st.sampled_from(["", '"', "'"]),
)
def test_what_is_written_by_the_rule_comes_back_as_it_was(data: dict[str, str], end: str, quote: str) -> None:
    lines = [f"{each}: {quote}{text}{quote}".replace("\n", end) for each, text in data.items()]
    assert parse(end.join(lines), list(data)) == Answers(data)


def fault_of(kind: RoundKind, verb: str, text: str = "1h") -> str | None:
    refusal = refuse_verb(verb, text, kind, ["q"], "round 1 of job-x")
    return refusal.kind if refusal else None


@pytest.mark.ruling("F4", "spec:states.wrong_verb")
@pytest.mark.parametrize("kind", RoundKind)
@pytest.mark.parametrize("verb", [*Verb, "", "Answer", "answer ", "x" * 500])
def test_a_round_takes_its_verbs_and_no_others(kind: RoundKind, verb: str) -> None:
    assert (fault_of(kind, verb) is None) == (verb in TAKES[kind])


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
    assert fault_of(ASK, "answer", text) is ResumeFault.EMPTY_ANSWER


@pytest.mark.ruling("F4")
def test_instructions_may_be_empty_and_nothing_may_be_endless() -> None:
    assert fault_of(FAILURE, "retry", "") is None
    assert fault_of(FAILURE, "retry", "x" * TEXT_LIMIT) is None
    assert fault_of(FAILURE, "retry", "x" * (TEXT_LIMIT + 1)) is ResumeFault.TOO_LONG


@pytest.mark.ruling("B3", "F4")
def test_the_commands_are_the_ones_to_type() -> None:
    assert commands("job-x", TAKES[ASK], ["a", "b"]) == (
        'service resume job-x answer "a: <text>" "b: <text>"',
        "service resume job-x extend <duration>",
    )
    assert commands("job-x", TAKES[FAILURE], [])[0] == "service resume job-x retry"


@pytest.mark.ruling("F4")
def test_a_round_is_extended_by_a_year_at_most() -> None:
    assert fault_of(ASK, "extend", "365d") is None
    assert fault_of(ASK, "extend", "365d1ms") == ResumeFault.BAD_DURATION


def refused(text: str, asks: Asks = TWO, *, partial: bool = False, other: bool = False) -> tuple[str, list[str]]:
    """Return the faults, and the suggested lines."""
    refusal = refuse_incomplete(text, asks, Meant(partial, other), JOB, "round 1 of job-1")
    assert refusal is not None
    assert refusal.kind is ResumeFault.NOT_WHOLE
    faults, _, rest = refusal.message.removeprefix("nothing is recorded: ").rpartition(". ")
    assert rest.startswith("round 1 of job-1 asks store")
    lines = refusal.data["commands"]
    assert isinstance(lines, list)
    return faults, lines


def taken(text: str, asks: Asks = TWO, *, partial: bool = False, other: bool = False) -> bool:
    return refuse_incomplete(text, asks, Meant(partial, other), JOB, "round 1 of job-1") is None


@pytest.mark.ruling("F5.whole")
def test_a_whole_answer_is_taken() -> None:
    assert taken("store: redis\nlimit: 5")
    assert taken("limit: 5\nstore:  redis ")
    assert taken("Do it soon.\nstore: redis\nlimit: 5"), "more than was asked is no fault"
    assert taken("store: redis\nlimit: so\n  note: indented\n  and more")
    assert taken("in memory", ONE)
    assert taken("store: in memory", ONE)
    assert taken("see https://x.invalid: at 12:30", ONE)


@pytest.mark.ruling("F5.whole")
def test_what_is_missing_is_named_with_the_line_to_type() -> None:
    faults, lines = refused("store: redis")
    assert faults == "nothing answers `limit`"
    assert lines == [
        f"service resume {JOB} answer 'store: redis' \"limit: <text>\"",
        f"service resume {JOB} answer 'store: redis' --partial",
    ]
    assert taken("store: redis", partial=True)
    assert taken("decide yourselves", partial=True)


@pytest.mark.ruling("F5.whole")
def test_a_bare_body_is_taken_only_where_one_question_is_open() -> None:
    faults, lines = refused("redis")
    assert faults == "nothing answers `store`, `limit` (several questions are open: each answer needs its id)"
    assert lines == [f'service resume {JOB} answer "store: <text>" "limit: <text>"']


@pytest.mark.ruling("F5.whole")
@pytest.mark.parametrize("slip", ["stroe", "Store", "STORE", "stor", "store1"])
@pytest.mark.parametrize("partial", [False, True])
def test_a_slip_of_an_id_names_the_nearest_and_is_never_meant(slip: str, partial: bool) -> None:
    faults, lines = refused(f"{slip}: redis\nlimit: 5", partial=partial)
    assert faults.startswith(f"`{slip}` is not a question, did you mean `store`?")
    assert lines == [f"service resume {JOB} answer 'store: redis' 'limit: 5'"]
    faults, lines = refused(f"{slip}: redis", ONE, partial=partial)
    assert faults == f"`{slip}` is not a question, did you mean `store`?"
    assert lines == [f"service resume {JOB} answer 'store: redis'"]


@pytest.mark.ruling("F5.whole")
def test_an_id_of_nothing_is_refused_unless_it_is_meant_as_text() -> None:
    faults, _ = refused("store: redis\nlimit: 5\ncolour: red")
    assert faults.startswith(
        "`colour` is not a question (a line that belongs to the answer above it begins with a blank)"
    )
    assert taken("store: redis\nlimit: 5\ncolour: red", partial=True)
    assert taken("red\ncolour: red", ONE), "a bare body is one answer"


@pytest.mark.ruling("F5", "F5.whole")
@pytest.mark.parametrize("text", ["Note: keep it small", "colour: red", "Note:\n- keep it small\n- todo: later"])
def test_a_bare_answer_to_the_only_question_may_begin_with_a_word_and_a_colon(text: str) -> None:
    assert taken(text, ONE)
    assert parse(text, list(ONE)).by_id == {"store": text}
    assert refused(f"store: redis\n{text}", ONE)[0].startswith(f"`{text.partition(':')[0]}` is not a question")


@pytest.mark.ruling("F5.whole")
def test_a_text_outside_the_choices_names_them_and_the_nearest() -> None:
    faults, lines = refused("store: reddis\nlimit: it's 5")
    assert faults == "`reddis` is not one of the choices of `store`, did you mean `redis`?"
    typed = "'limit: it'\"'\"'s 5'"
    assert lines == [
        f'service resume {JOB} answer "store: <text>" {typed}',
        f"service resume {JOB} answer {typed} --partial",
        f"service resume {JOB} answer 'store: reddis' {typed} --other",
    ]
    refusal = refuse_incomplete("store: x\nlimit: 5", TWO, Meant(), JOB, "round 1 of job-1")
    assert refusal is not None
    assert refusal.message.endswith("round 1 of job-1 asks store (redis | memory); limit")
    assert taken("store: reddis\nlimit: 5", other=True)
    assert not taken("store: reddis", other=True), "what is missing is another matter"
    assert taken("store: reddis", other=True, partial=True)


@pytest.mark.ruling("F5.whole")
def test_every_fault_is_told_at_once() -> None:
    faults, _ = refused("store: big\nlimits: 5")
    assert "`limits` is not a question, did you mean `limit`?" in faults
    assert "nothing answers `limit`" in faults
    assert "`big\nlimits: 5`".replace("\n", " ") in faults


@pytest.mark.ruling("F5.whole")
def test_the_nearest_is_found_whatever_its_case_and_nothing_where_nothing_is_near() -> None:
    assert nearest("LIMIT", ["Limit", "store"]) == "Limit"
    assert nearest("colour", ["store", "limit"]) is None
    assert nearest("x", []) is None


_LOWER_IDS = st.lists(st.from_regex(r"[a-z][a-z0-9._-]{0,5}", fullmatch=True), min_size=1, max_size=4, unique=True)


@pytest.mark.ruling("F5.whole")
@given(ids=_LOWER_IDS, body=st.text(max_size=60), partial=st.booleans(), other=st.booleans())
def test_what_is_taken_answers_everything_and_what_is_refused_says_what_to_type(
    ids: list[str], body: str, partial: bool, other: bool
) -> None:
    asks: Asks = {name: ("a", "b") if number % 2 else () for number, name in enumerate(ids)}
    refusal = refuse_incomplete(body, asks, Meant(partial, other), JOB, "it")
    answers = parse(body, ids).by_id
    if refusal is None:
        assert partial or set(answers) == set(ids)
        assert other or all(text in asks[name] for name, text in answers.items() if asks[name])
        return
    lines = refusal.data["commands"]
    assert isinstance(lines, list)
    for line in lines:
        assert shlex.split(line)[:4] == ["service", "resume", JOB, "answer"]
    for flags, line in (((True, False), " --partial"), ((True, True), " --other")):
        for typed in (typed.removesuffix(line) for typed in lines if typed.endswith(line)):
            assert refuse_incomplete("\n".join(shlex.split(typed)[4:]), asks, Meant(*flags), JOB, "it") is None


@pytest.mark.ruling("F5.whole")
@pytest.mark.parametrize("channel", ["cli", "bridge", "dashboard"])
def test_who_is_shown_a_refusal_is_asked_for_a_whole_answer(channel: str) -> None:
    assert channel in ASKS_BACK
