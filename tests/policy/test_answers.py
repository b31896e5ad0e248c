import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workflows.policy.answers import MOST_UNMATCHED, Answers, parse


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
    found = parse(body, ids)
    assert (found.by_id, found.guidance) == (wanted, guidance)


@pytest.mark.ruling("F5", "spec:states.resume_answer")
def test_what_stands_in_an_ids_place_is_named_wherever_it_stands() -> None:
    found = parse("stroe: x\na: 1\nlimt: 2\nhttps://x: y\nat 12:30\nlimt: 3\nb: 2", ["a", "b"])
    assert found.unmatched == ("stroe", "limt")
    assert found.by_id["a"] == "1\nlimt: 2\nhttps://x: y\nat 12:30\nlimt: 3", "text runs on until the next known id"
    assert found.guidance == "stroe: x"
    assert len(parse("\n".join(f"x{n}: y" for n in range(99)), ["a", "b"]).unmatched) == MOST_UNMATCHED


_IDS = st.lists(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,5}", fullmatch=True), min_size=1, max_size=5, unique=True)
_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40)


@pytest.mark.ruling("F5")
@given(ids=_IDS, body=st.lists(st.one_of(_TEXT, st.sampled_from(["a: x", "b:", "'", '"'])), max_size=5).map("\n".join))
@example(ids=["a"], body='"')
def test_every_word_is_kept_and_only_known_ids_are_answered(ids: list[str], body: str) -> None:
    found = parse(body, ids)
    assert set(found.by_id) <= set(ids)
    assert all(text.strip() for text in found.by_id.values())
    kept = " ".join([*found.by_id, *found.by_id.values(), found.guidance])
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
