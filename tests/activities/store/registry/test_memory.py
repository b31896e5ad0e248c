"""Memory on every database: one entry however often it is written, found by its words, only while it is confirmed."""

import threading
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, text, update

from activities.store import schema
from activities.store.queries import insert_new
from activities.store.registry import memory_rows
from activities.store.registry.memory_rows import NewMemory, Sought
from tests.depth import cases
from workflows.policy.memory import MemoryState, Recalled, wanted_words, words

pytestmark = pytest.mark.ruling("K2")

PERSON = "ann@desk"
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=cases(20, 60))
WORDS = ("limiter", "deploy", "redis", "queue")


def written(
    key: str = "k", content: str = "c", agent: str | None = None, repo: str | None = None, job: str | None = None
) -> NewMemory:
    return NewMemory(agent, repo, key, content, author=agent or PERSON, job_id=job)


def recall(
    store: Engine,
    query: str,
    agent: str | None = None,
    shared: bool = False,
    repo: str | None = None,
    limit: int = 100,
) -> list[Recalled]:
    return memory_rows.recall(store, query, agent=agent, shared=shared, repo=repo, limit=limit)


def keys(entries: Sequence[Recalled]) -> list[str]:
    return [entry.key for entry in entries]


def number(entry_id: str) -> int:
    return int(entry_id.removeprefix("mem-"))


def test_an_entry_is_read_back_as_it_was_written_with_who_and_when(store: Engine) -> None:
    entry = memory_rows.write(store, written("Key: 'é'", "Line\nline % :x", "scout", "acme/shop", "job-0123456789ab"))
    assert (entry.key, entry.content, entry.agent, entry.repo) == ("Key: 'é'", "Line\nline % :x", "scout", "acme/shop")
    assert (entry.author, entry.job_id, entry.state) == ("scout", "job-0123456789ab", MemoryState.PENDING)
    assert (entry.decided_by, entry.decided_at) == (None, None)
    assert memory_rows.get(store, number(entry.id)) == entry
    assert memory_rows.get(store, 999) is None


def test_only_what_is_confirmed_is_recalled(store: Engine) -> None:
    entry = memory_rows.write(store, written("deploy", "make deploy"))
    assert recall(store, "deploy") == []
    confirmed = memory_rows.decide(store, number(entry.id), MemoryState.CONFIRMED, PERSON)
    assert confirmed is not None
    [recalled] = recall(store, "deploy")
    assert recalled.model_dump(exclude={"score"}) == confirmed.model_dump()
    assert recalled.score > 0
    memory_rows.decide(store, number(entry.id), MemoryState.RETIRED, PERSON)
    assert recall(store, "deploy") == []


def test_a_decision_said_again_changes_nothing(store: Engine) -> None:
    first = memory_rows.write(store, written(), confirmed_by="ann")
    assert memory_rows.decide(store, number(first.id), MemoryState.CONFIRMED, "bob") == first
    assert memory_rows.decide(store, 999, MemoryState.RETIRED, PERSON) is None


def test_a_proposal_that_is_there_is_the_same_entry_and_keeps_what_was_decided(store: Engine) -> None:
    first = memory_rows.write(store, written(agent="scout"))
    assert memory_rows.write(store, written(agent="scout", job="job-0123456789ab")) == first
    retired = memory_rows.decide(store, number(first.id), MemoryState.RETIRED, PERSON)
    assert memory_rows.write(store, written(agent="scout")) == retired
    again = memory_rows.write(store, written(agent="scout"), confirmed_by=PERSON)
    assert (again.id, again.state, again.author) == (first.id, MemoryState.CONFIRMED, "scout")


def test_another_owner_scope_key_or_content_is_another_entry(store: Engine) -> None:
    variants = [
        written(), written(agent="scout"), written(repo="acme/shop"), written("k2"), written(content="c2"),
        written("kc", ""), written("", "kc"),
    ]  # fmt: skip
    assert len({memory_rows.write(store, each).id for each in variants}) == len(variants)


def test_writers_at_once_make_one_entry(store: Engine) -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(memory_rows.write(store, written()).id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_entries_are_listed_newest_first_by_what_people_filter_by(store: Engine) -> None:
    first = memory_rows.write(store, written("1", agent="scout", repo="acme/shop"))
    second = memory_rows.write(store, written("2"), confirmed_by=PERSON)
    assert memory_rows.find(store, Sought(), 10) == [second, first]
    assert memory_rows.find(store, Sought(), 1) == [second]
    assert memory_rows.find(store, Sought(agent="scout"), 10) == [first]
    assert memory_rows.find(store, Sought(shared=True), 10) == [second]
    assert memory_rows.find(store, Sought(repo="acme/shop", state=MemoryState.PENDING), 10) == [first]
    assert memory_rows.find(store, Sought(repo="acme/shop", state=MemoryState.CONFIRMED), 10) == []


def test_the_best_match_is_first(store: Engine) -> None:
    for key, content in (
        ("one", "the limiter stands alone among other notes"),
        ("two", "the limiter needs redis among other notes"),
        ("limiter redis", "the two stand in the key of these notes"),
        ("none", "nothing of the kind"),
    ):
        memory_rows.write(store, written(key, content), confirmed_by=PERSON)
    entries = recall(store, "Which REDIS for the limiter?")
    assert keys(entries) == ["limiter redis", "two", "one"]
    assert [entry.score for entry in entries] == sorted((entry.score for entry in entries), reverse=True)


def test_alike_matches_are_own_first_then_newer_and_always_in_that_order(store: Engine) -> None:
    for agent, repo in (("scout", "a/1"), (None, "a/1"), ("scout", "a/2"), (None, "a/2")):
        memory_rows.write(store, written("deploy", "make deploy", agent, repo), confirmed_by=PERSON)
    for _ in range(3):
        assert [(entry.agent, entry.repo) for entry in recall(store, "deploy", agent="scout")] == [
            ("scout", "a/2"),
            ("scout", "a/1"),
            (None, "a/2"),
            (None, "a/1"),
        ]
    assert len(recall(store, "deploy", limit=3)) == 3


def test_relevance_comes_before_ownership(store: Engine) -> None:
    memory_rows.write(
        store, written("own", "redis once in a longer note about something else", "scout"), confirmed_by="x"
    )
    memory_rows.write(store, written("redis", "redis"), confirmed_by="x")
    assert keys(recall(store, "redis", agent="scout")) == ["redis", "own"]


@pytest.mark.ruling("J8")
def test_whose_and_where_is_what_was_asked_for(store: Engine) -> None:
    for agent in ("scout", "builder", None):
        for repo in ("a/1", "a/2", None):
            memory_rows.write(store, written(f"{agent} {repo}", "deploy", agent, repo), confirmed_by=PERSON)
    assert len(recall(store, "deploy")) == 9
    assert set(keys(recall(store, "deploy", shared=True))) == {"None a/1", "None a/2", "None None"}
    assert set(keys(recall(store, "deploy", agent="scout", repo="a/1"))) == {
        "scout a/1",
        "scout None",
        "None a/1",
        "None None",
    }


AS_PEOPLE_WRITE = (
    ("See src/rate_limiter.py.", "limiter"),
    ("See src/rate_limiter.py.", "rate-limiter"),
    ("Das Café", "CAFE"),
    ("Das Cafe\u0301", "café"),
    ("Straße", "STRASSE"),
    ("запуск миграций", "Миграций"),
    ("数据库迁移", "迁移"),
    ("running the migrations", "migration run"),
    ("port 8791", "8791?"),
    ("what it is", "what is it"),
)


def test_words_are_found_as_people_write_them(store: Engine) -> None:
    for content, query in AS_PEOPLE_WRITE:
        empty(store)
        memory_rows.write(store, written(content=content), confirmed_by=PERSON)
        assert len(recall(store, query)) == 1, f"{query!r} in {content!r}"


HOSTILE = (
    "", " ", "\"", "'", "\"\"\"", "a\"b", "NEAR(", "NEAR(a b, 2)", "a AND", "OR OR", "NOT", "key_words:", "k : x",
    "{key_words} : a", "^a", "-a", "a*", "*", "(", ")", "((", "a + b", "\0", "x\0y", "\\", "%s %(x)s", ":x", "?", "!&|",
    "<->", ":*", "'; DROP TABLE memory; --", "\ud800", "a\udfffb", "\U0001f680", "\u200b", "\u0301", "²①Ⅷ", "...,;!?",
    "a " * 51_200, "x" * 102_400, "\"" * 102_400, "(" * 102_400, " ".join(f"word{n}" for n in range(12_000)),
)  # fmt: skip


def test_hostile_text_is_only_words(store: Engine) -> None:
    memory_rows.write(store, written("note", "limiter"), confirmed_by=PERSON)
    for query in HOSTILE:
        assert recall(store, query) == [], query[:40]
        assert len(recall(store, f"limiter {query}")) == 1, query[:40]


def empty(store: Engine) -> None:
    with store.begin() as connection:
        connection.execute(delete(schema.memory))


@pytest.fixture
def with_limiter(store: Engine) -> Engine:
    memory_rows.write(store, written("k", "limiter"), confirmed_by=PERSON)
    return store


@SLOW
@given(query=st.text(max_size=300))
@example(query='" OR key_words : "')
def test_any_text_is_a_query(with_limiter: Engine, query: str) -> None:
    assert len(recall(with_limiter, f"limiter {query}")) == 1
    assert len(recall(with_limiter, query)) <= bool(wanted_words(query))


@SLOW
@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80))
@example(content="\N{OLD NORTH ARABIAN NUMBER ONE}")
@example(content="\N{KATAKANA MIDDLE DOT}")
def test_what_has_words_is_found_by_its_own_text(store: Engine, content: str) -> None:
    empty(store)
    memory_rows.write(store, written("", f"{content} x1"), confirmed_by=PERSON)
    assert len(recall(store, f"x1 {content}")) == 1
    assert bool(recall(store, content)) == bool(words(content))


NUMBERS = st.integers(0, 5)
SAID = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), SAID, SAID),
        st.tuples(st.just("propose"), SAID, SAID),
        st.tuples(st.just("import"), SAID, SAID),
        st.tuples(st.just("confirm"), NUMBERS, st.none()),
        st.tuples(st.just("retire"), NUMBERS, st.none()),
        st.tuples(st.just("edit"), NUMBERS, SAID),
        st.tuples(st.just("delete"), NUMBERS, st.none()),
    ),
    max_size=12,
)


@SLOW
@given(steps=STEPS)
def test_the_index_is_in_step_with_the_rows_after_whatever_happened(
    store: Engine, steps: list[tuple[str, str | int, str | None]]
) -> None:
    empty(store)
    for step in steps:
        take(store, *step)
    confirmed = memory_rows.find(store, Sought(state=MemoryState.CONFIRMED), 100)
    for word in WORDS:
        expected = {entry.id for entry in confirmed if word in f"{entry.key} {entry.content}".split()}
        assert {entry.id for entry in recall(store, word)} == expected
    if store.dialect.name == "sqlite":
        with store.begin() as connection:  # raises if the index differs from the rows
            connection.execute(text("INSERT INTO memory_search (memory_search, rank) VALUES ('integrity-check', 1)"))


def take(store: Engine, verb: str, what: str | int, content: str | None) -> None:
    if isinstance(what, str):
        if verb == "import":
            row = memory_rows._row(written(what, content or "")) | {"state": MemoryState.CONFIRMED}
            with store.begin() as connection:
                insert_new(connection, schema.memory, row)
            return
        memory_rows.write(store, written(what, content or ""), confirmed_by=PERSON if verb == "add" else None)
        return
    ids = [number(entry.id) for entry in memory_rows.find(store, Sought(), 100)]
    if what >= len(ids):
        return
    match verb:
        case "confirm" | "retire":
            state = MemoryState.CONFIRMED if verb == "confirm" else MemoryState.RETIRED
            memory_rows.decide(store, ids[what], state, PERSON)
        case "edit":
            change = update(schema.memory).values(content=content, content_words=content, digest=f"edited {ids[what]}")
            with store.begin() as connection:
                connection.execute(change.where(schema.memory.c.number == ids[what]))
        case _:
            with store.begin() as connection:
                connection.execute(delete(schema.memory).where(schema.memory.c.number == ids[what]))
