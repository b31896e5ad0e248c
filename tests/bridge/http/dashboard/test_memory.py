"""Memory on a page: deciding agents' proposals, finding confirmed entries, adding one's own (ruling M4)."""

import pytest

from activities.store.registry import agent_rows
from bridge.operations.registry import memory
from bridge.operations.registry.memory import MemoryFilter, NewEntry, Proposal
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import ANN, Surfer
from workflows.model.workers import Worker
from workflows.policy.memory import MemoryState

pytestmark = pytest.mark.ruling("M4", "K2")
DECIDE, ADD = "/ui/memory/decide", "/ui/memory/add"


@pytest.fixture(autouse=True)
def people_decide(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    monkeypatch.delenv("SERVICE_JOB_ID", raising=False)
    seeds.repo(service)
    agent_rows.add(service.store, Worker(name="scout", runtime="shell", command=("cat",)), ("acme/shop",))
    seeds.write(service, seeds.job())


def propose(service: Service, key: str, content: str = "c") -> str:
    return memory.propose(service, Proposal(seeds.ROOT, key, content)).id


def states(service: Service) -> dict[str, str]:
    return {entry.id: entry.state for entry in memory.find(service, MemoryFilter())}


async def test_what_is_proposed_says_by_whom_and_from_which_job(service: Service, ann: Surfer) -> None:
    propose(service, "deploy", "make deploy")
    shown = await ann.open("/ui/memory")
    assert "1 to decide" in shown.words
    for words in ("deploy", "make deploy", "proposed by scout", "on acme/shop"):
        assert words in shown.words
    assert f"/ui/trees/{seeds.ROOT}" in shown.read.links
    assert shown.html.index('id="pending"') < shown.html.index('id="confirmed"')


async def test_several_are_confirmed_at_once_and_each_is_told(service: Service, ann: Surfer) -> None:
    one, two, three = (propose(service, key) for key in ("a", "b", "c"))
    form = (await ann.open("/ui/memory")).form(DECIDE, seen="pending")
    shown = await ann.send(form, "Confirm the ticked ones", entry=[one, three])
    assert states(service) == {one: "confirmed", two: "pending", three: "confirmed"}
    assert f"{one} : confirmed by {ANN}" in shown.words
    assert f"{three} : confirmed by {ANN}" in shown.words
    assert {memory.get(service, one).decided_by, memory.get(service, three).decided_by} == {ANN}


async def test_what_somebody_else_has_decided_meanwhile_stays_and_is_told(service: Service, ann: Surfer) -> None:
    one, two = propose(service, "a"), propose(service, "b")
    form = (await ann.open("/ui/memory")).form(DECIDE, seen="pending")
    memory.retire(service, one, "bob@desk")
    shown = await ann.send(form, "Confirm the ticked ones", entry=[one, two])
    assert states(service) == {one: "retired", two: "confirmed"}
    assert f"{one} was retired by bob@desk meanwhile" in shown.words
    assert shown.status == 200
    alone = await ann.send(form, "Confirm the ticked ones", entry=[one])
    assert (alone.status, states(service)[one]) == (409, "retired")


async def test_with_nothing_ticked_nothing_is_done(service: Service, ann: Surfer) -> None:
    one = propose(service, "a")
    form = (await ann.open("/ui/memory")).form(DECIDE, seen="pending")
    shown = await ann.send(form, "Retire the ticked ones")
    assert (shown.status, states(service)) == (400, {one: "pending"})
    assert "tick the entries first" in shown.words


async def test_what_is_confirmed_is_searched_as_agents_recall_it_and_retired(service: Service, ann: Surfer) -> None:
    memory.add(service, NewEntry("deploy", "make deploy, never on Fridays"), "bob")
    lint = memory.add(service, NewEntry("lint", "run ruff"), "bob")
    page = await ann.open("/ui/memory?q=ruff")
    assert "run ruff" in page.words
    assert "never on Fridays" not in page.html
    assert "No confirmed memory matches" in (await ann.open("/ui/memory?q=nothing")).words
    shown = await ann.send(page.form(DECIDE, seen="confirmed"), "Retire the ticked ones", entry=[lint.id])
    assert memory.get(service, lint.id).state is MemoryState.RETIRED
    assert shown.address.startswith("http://127.0.0.1:8791/ui/memory?q=ruff"), "the search is kept"


async def test_a_person_adds_an_entry(service: Service, ann: Surfer) -> None:
    form = (await ann.open("/ui/memory")).form(ADD)
    shown = await ann.send(form, key="deploy", content="make\r\ndeploy", agent="scout", repo="acme/shop")
    [entry] = memory.find(service, MemoryFilter())
    assert (entry.key, entry.content, entry.agent, entry.repo) == ("deploy", "make\ndeploy", "scout", "acme/shop")
    assert (entry.state, entry.author) == (MemoryState.CONFIRMED, ANN)
    assert f"{entry.id} is confirmed" in shown.words


async def test_what_was_refused_keeps_what_was_typed(service: Service, ann: Surfer) -> None:
    form = (await ann.open("/ui/memory")).form(ADD)
    shown = await ann.send(form, key="two\nlines", content="what I know", repo="acme/shop")
    assert (shown.status, states(service)) == (400, {})
    assert "what I know" in shown.form(ADD).fields["content"]
    assert "more than one line" in shown.words


async def test_what_agents_wrote_is_text(service: Service, ann: Surfer) -> None:
    hostile = "</p><script>alert(1)</script>{{ 7*7 }} \u202e \x1b[2J"
    propose(service, "<b>key</b>", hostile)
    html = (await ann.open("/ui/memory")).html
    assert "<b>key" not in html
    assert "<script>alert" not in html
    assert not set(html) & set("\u202e\x1b")
    assert "{{ 7*7 }}" in html


async def test_an_empty_memory_says_what_to_do(ann: Surfer) -> None:
    words = (await ann.open("/ui/memory")).words
    assert "service memory propose" in words
    assert "write down what every agent should know. Add an entry" in words


@pytest.mark.parametrize(("query", "status"), [("q=x&repo=no/where", 404), ("q=x&agent=nobody", 404)])
async def test_a_search_in_what_is_not_there_is_answered_by_a_sentence(ann: Surfer, query: str, status: int) -> None:
    assert (await ann.open(f"/ui/memory?{query}")).status == status
