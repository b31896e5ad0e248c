import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.contract.faults import nearest
from workflows.model.errors import ResumeFault
from workflows.policy.answers import parse
from workflows.policy.whole_answers import ASKS_BACK, Asks, Meant, refuse

ONE: Asks = {"store": ()}
TWO: Asks = {"store": ("redis", "memory"), "limit": ()}
JOB = "job-1"


def refused(text: str, asks: Asks = TWO, *, partial: bool = False, other: bool = False) -> tuple[str, list[str]]:
    """Return the faults, and the suggested lines."""
    found = refuse(text, asks, Meant(partial, other), JOB, "round 1 of job-1")
    assert found is not None
    assert found.kind is ResumeFault.NOT_WHOLE
    faults, _, rest = found.message.removeprefix("nothing is recorded: ").rpartition(". ")
    assert rest.startswith("round 1 of job-1 asks store")
    lines = found.data["commands"]
    assert isinstance(lines, list)
    return faults, lines


def taken(text: str, asks: Asks = TWO, *, partial: bool = False, other: bool = False) -> bool:
    return refuse(text, asks, Meant(partial, other), JOB, "round 1 of job-1") is None


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
    assert faults.startswith(f"`{slip}` is no question, did you mean `store`?")
    assert lines == [f"service resume {JOB} answer 'store: redis' 'limit: 5'"]
    faults, lines = refused(f"{slip}: redis", ONE, partial=partial)
    assert faults == f"`{slip}` is no question, did you mean `store`?"
    assert lines == [f"service resume {JOB} answer 'store: redis'"]


@pytest.mark.ruling("F5.whole")
def test_an_id_of_nothing_is_refused_unless_it_is_meant_as_text() -> None:
    faults, _ = refused("store: redis\nlimit: 5\ncolour: red")
    assert faults.startswith("`colour` is no question (a line that belongs to the answer above it begins with a blank)")
    assert taken("store: redis\nlimit: 5\ncolour: red", partial=True)
    assert taken("red\ncolour: red", ONE), "a bare body is one answer"


@pytest.mark.ruling("F5", "F5.whole")
@pytest.mark.parametrize("said", ["Note: keep it small", "colour: red", "Note:\n- keep it small\n- todo: later"])
def test_a_bare_answer_to_the_only_question_may_begin_with_a_word_and_a_colon(said: str) -> None:
    assert taken(said, ONE)
    assert parse(said, list(ONE)).by_id == {"store": said}
    assert refused(f"store: redis\n{said}", ONE)[0].startswith(f"`{said.partition(':')[0]}` is no question")


@pytest.mark.ruling("F5.whole")
def test_a_text_outside_the_choices_names_them_and_the_nearest() -> None:
    faults, lines = refused("store: reddis\nlimit: it's 5")
    assert faults == "`reddis` is none of the choices of `store`, did you mean `redis`?"
    typed = "'limit: it'\"'\"'s 5'"
    assert lines == [
        f'service resume {JOB} answer "store: <text>" {typed}',
        f"service resume {JOB} answer {typed} --partial",
        f"service resume {JOB} answer 'store: reddis' {typed} --other",
    ]
    found = refuse("store: x\nlimit: 5", TWO, Meant(), JOB, "round 1 of job-1")
    assert found is not None
    assert found.message.endswith("round 1 of job-1 asks store (redis | memory); limit")
    assert taken("store: reddis\nlimit: 5", other=True)
    assert not taken("store: reddis", other=True), "what is missing is another matter"
    assert taken("store: reddis", other=True, partial=True)


@pytest.mark.ruling("F5.whole")
def test_every_fault_is_told_at_once() -> None:
    faults, _ = refused("store: big\nlimits: 5")
    assert "`limits` is no question, did you mean `limit`?" in faults
    assert "nothing answers `limit`" in faults
    assert "`big\nlimits: 5`".replace("\n", " ") in faults


@pytest.mark.ruling("F5.whole")
def test_the_nearest_is_found_whatever_its_case_and_nothing_where_nothing_is_near() -> None:
    assert nearest("LIMIT", ["Limit", "store"]) == "Limit"
    assert nearest("colour", ["store", "limit"]) is None
    assert nearest("x", []) is None


_IDS = st.lists(st.from_regex(r"[a-z][a-z0-9._-]{0,5}", fullmatch=True), min_size=1, max_size=4, unique=True)


@pytest.mark.ruling("F5.whole")
@given(ids=_IDS, body=st.text(max_size=60), partial=st.booleans(), other=st.booleans())
def test_what_is_taken_answers_everything_and_what_is_refused_says_what_to_type(
    ids: list[str], body: str, partial: bool, other: bool
) -> None:
    asks: Asks = {each: ("a", "b") if number % 2 else () for number, each in enumerate(ids)}
    found = refuse(body, asks, Meant(partial, other), JOB, "it")
    said = parse(body, ids).by_id
    if found is None:
        assert partial or set(said) == set(ids)
        assert other or all(text in asks[each] for each, text in said.items() if asks[each])
        return
    lines = found.data["commands"]
    assert isinstance(lines, list)
    for line in lines:
        assert shlex.split(line)[:4] == ["service", "resume", JOB, "answer"]
    for flags, line in (((True, False), " --partial"), ((True, True), " --other")):
        for each in (each.removesuffix(line) for each in lines if each.endswith(line)):
            assert refuse("\n".join(shlex.split(each)[4:]), asks, Meant(*flags), JOB, "it") is None


@pytest.mark.ruling("F5.whole")
@pytest.mark.parametrize("channel", ["cli", "bridge", "dashboard"])
def test_who_is_shown_a_refusal_is_asked_for_a_whole_answer(channel: str) -> None:
    assert channel in ASKS_BACK
