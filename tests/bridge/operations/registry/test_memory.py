"""Memory: who may confirm, what is refused, which texts are kept."""

import pytest
from pydantic import ValidationError

from activities.settings.home import Home
from activities.store import job_rows
from activities.store.registry import repo_rows
from bridge.operations.registry import agents, memory
from bridge.operations.registry.agents import NewAgent
from bridge.operations.registry.memory import MemoryFilter, NewEntry, Proposal, Recall
from bridge.operations.service import Service
from tests.activities.store.rows import ROOT, job
from workflows.model.errors import NotFoundError, RefusedError, UsageError
from workflows.model.rows import Records
from workflows.policy.memory import CONTENT_LIMIT, KEY_LIMIT

pytestmark = pytest.mark.ruling("K2")
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def service(home: Home, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Return a service with the agent scout, the repository acme/shop, and a job of one on the other."""
    monkeypatch.delenv("SERVICE_JOB_ID", raising=False)
    service = Service(home)
    repo_rows.put(service.store, "acme/shop", "/shop", "here")
    agents.add(service, NewAgent("scout", "shell", "cat", repos=("acme/shop",)))
    throwaway = job(f"{ROOT}.1").model_copy(update={"agent": "runtime_a", "ephemeral": True})
    job_rows.write(service.store, Records(jobs=(job(), throwaway)))
    return service


def test_what_a_person_writes_is_confirmed_and_recalled_at_once(service: Service) -> None:
    entry = memory.add(service, NewEntry(" deploy ", " make deploy\n", "scout", "acme/shop"), "ann")
    assert (entry.key, entry.content, entry.author, entry.decided_by) == ("deploy", "make deploy", "ann", "ann")
    [recalled] = memory.recall(service, Recall(query="how to deploy?", agent="scout", repo="acme/shop")).entries
    assert recalled.id == entry.id


def test_what_a_job_proposes_is_its_agents_and_waits_for_a_person(service: Service) -> None:
    entry = memory.propose(service, Proposal(ROOT, "deploy", "make deploy"))
    assert (entry.agent, entry.repo, entry.author, entry.job_id) == ("scout", "acme/shop", "scout", ROOT)
    assert memory.recall(service, Recall(query="deploy")).entries == ()
    assert memory.find(service, MemoryFilter(state="pending")) == [entry]
    memory.confirm(service, entry.id, "ann")
    assert [found.id for found in memory.recall(service, Recall(query="deploy")).entries] == [entry.id]
    memory.retire(service, entry.id, "ann")
    assert memory.recall(service, Recall(query="deploy")).entries == ()
    assert memory.propose(service, Proposal(ROOT, "deploy", "make deploy")).state == "retired"


def test_a_proposal_may_be_for_everybody_and_a_throwaway_workers_always_is(service: Service) -> None:
    entry = memory.propose(service, Proposal(ROOT, "k", "c", shared=True, general=True))
    assert (entry.agent, entry.repo, entry.author) == (None, None, "scout")
    entry = memory.propose(service, Proposal(f"{ROOT}.1", "k", "c"))
    assert (entry.agent, entry.repo, entry.author) == (None, "acme/shop", "runtime_a")


def test_an_agents_shell_neither_writes_confirms_nor_retires(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = memory.propose(service, Proposal(ROOT, "k", "c"))
    monkeypatch.setenv("SERVICE_JOB_ID", ROOT)
    with pytest.raises(RefusedError, match=f"by people, and this is the job {ROOT}"):
        memory.add(service, NewEntry("k", "c"), "ann")
    for decide in (memory.confirm, memory.retire):
        with pytest.raises(RefusedError):
            decide(service, entry.id, "ann")
    assert memory.get(service, entry.id) == entry


@pytest.mark.ruling("A12")
def test_secrets_are_taken_out_before_anything_is_kept(service: Service) -> None:
    for entry in (
        memory.add(service, NewEntry(f"key {TOKEN}", f"use {TOKEN}"), "ann"),
        memory.propose(service, Proposal(ROOT, f"key {TOKEN}", f"use {TOKEN}")),
    ):
        assert (entry.key, entry.content) == ("key [redacted]", "use [redacted]")
    assert TOKEN.encode() not in b"".join(path.read_bytes() for path in service.home.root.glob("store.db*"))


@pytest.mark.parametrize(
    ("key", "content", "sentence"),
    [
        (" ", "c", "the key is empty"),
        ("k", "\n", "the content is empty"),
        ("k" * (KEY_LIMIT + 1), "c", "the key has 201 characters; at most 200 are kept"),
        ("k", "c" * (CONTENT_LIMIT + 1), "the content has 16,001 characters; at most 16,000 are kept"),
        ("two\nlines", "c", "the key has more than one line"),
        ("k", "a\0b", "the content contains a NUL character"),
        ("\udfff", "c", "the key contains a lone surrogate"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_a_sentence(
    service: Service, key: str, content: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        memory.add(service, NewEntry(key, content), "ann")
    with pytest.raises(UsageError, match=sentence):
        memory.propose(service, Proposal(ROOT, key, content))
    assert memory.find(service, MemoryFilter()) == []


def test_what_just_fits_is_kept_whole(service: Service) -> None:
    entry = memory.add(service, NewEntry("k" * KEY_LIMIT, "é " * (CONTENT_LIMIT // 2 - 1) + "é"), "ann")
    assert len(entry.content) == CONTENT_LIMIT - 1
    assert memory.get(service, entry.id) == entry


@pytest.mark.ruling("J8")
class TestRecall:
    def test_the_answer_is_entries_best_first_each_with_its_score(self, service: Service) -> None:
        for key in ("one", "two"):
            memory.add(service, NewEntry(key, "make deploy"), "ann")
        answer = memory.recall(service, Recall(query="deploy")).model_dump(mode="json")
        assert list(answer) == ["entries"]
        assert [entry["key"] for entry in answer["entries"]] == ["two", "one"]
        assert all(isinstance(entry["score"], float) for entry in answer["entries"])

    def test_the_limit_is_15_unless_it_is_said(self, service: Service) -> None:
        for n in range(17):
            memory.add(service, NewEntry(f"k{n}", "deploy"), "ann")
        assert len(memory.recall(service, Recall(query="deploy")).entries) == 15
        assert len(memory.recall(service, Recall(query="deploy", limit=1)).entries) == 1
        assert len(memory.recall(service, Recall(query="deploy", limit=100)).entries) == 17

    @pytest.mark.parametrize(
        "wrong",
        [{}, {"query": 1}, {"query": None}, {"query": "q", "limit": "5"}, {"query": "q", "limit": True},
         {"query": "q", "limit": 0}, {"query": "q", "limit": 101}, {"query": "q", "shared": 1},
         {"query": "q", "repo": 1}, {"query": "q", "agents": "scout"}],
    )  # fmt: skip
    def test_types_and_names_are_strict(self, wrong: dict[str, object]) -> None:
        with pytest.raises(ValidationError):
            Recall.model_validate(wrong)

    def test_shared_and_agent_exclude_each_other(self, service: Service) -> None:
        with pytest.raises(UsageError, match="agent and shared cannot be given together"):
            memory.recall(service, Recall(query="q", agent="scout", shared=True))

    def test_a_name_nobody_knows_is_no_silent_nothing(self, service: Service) -> None:
        with pytest.raises(NotFoundError, match="no repository acme/x; known: acme/shop"):
            memory.recall(service, Recall(query="q", repo="acme/x"))
        with pytest.raises(NotFoundError, match="no agent nobody; known: scout"):
            memory.recall(service, Recall(query="q", agent="nobody"))


@pytest.mark.ruling("N7")
def test_a_proposed_word_for_a_secret_is_put_back_for_nobody(service: Service) -> None:
    word = "redacted-0123456789abcdef0123"
    entry = memory.propose(service, Proposal(ROOT, f"key {word}", f"use {word}"))
    assert (entry.key, entry.content) == ("key [redacted]", "use [redacted]")
