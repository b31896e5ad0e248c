"""Other tools that use the service by MCP: their real programs, each of the nine tools, and what they are refused."""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.mcp_clients import JOB, NO_JOB, TOOLS, Person
from tests.e2e.programs import CLIENTS, need
from tests.e2e.script import Script, git, leg, played, states
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.long, pytest.mark.ruling("S2", "S5")]
ASK = {"human_questions": [{"id": "store", "prompt": "Redis or memory?", "choices": ["redis", "memory"]}]}
LINES = 20_000
"""Lines of a change whose diff is longer than 300 KB."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="module")
def person(script: Script) -> Iterator[Person]:
    with ScriptedModel() as model:
        yield Person(script, script.service.tmp / "away", model)


@pytest.mark.parametrize("client", CLIENTS)
def test_each_tool_is_called_by_the_real_program(person: Person, client: str) -> None:
    need(client)
    script = person.script
    written = {"write": {f"{client}.txt": "1\n"}, "decision": "implemented", "changes_made": [f"{client}.txt"]}
    script.answers(none=ASK, answered={"delegations": [leg("one")]}, one=written)
    with person.with_the_service(client, "act"):
        job = JOB.search(person.play(client, lambda: person.all_nine(client), f"nine-{client}"))
    assert job is not None, person.answers
    assert sorted(person.answers) == sorted(TOOLS)
    assert f"{client}.txt +1 -0" in person.answers["changes"]
    tree = script.until_over(job[0])
    assert tree["task"]["state"] == "done"
    assert states(tree) == dict.fromkeys(("none", "answered", "one", "normal"), "succeeded")
    assert git(script.service.repo, "show", f"service/{tree['task']['task_id']}:{client}.txt") == "1\n"
    assert not git(script.service.repo, "branch", "--list", f"service/{job[0]}.*")
    [answered] = [event for event in script.service.json("job", "events", job[0]) if "mcp-" in json.dumps(event)][:1]
    assert f"mcp-{client} through " in json.dumps(answered)
    assert "through stdio" not in json.dumps(answered)


@pytest.mark.ruling("S4")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_scope_refuses_in_a_sentence_and_a_repeated_start_is_one_job(person: Person, client: str) -> None:
    need(client)
    person.script.answers()
    with person.with_the_service(client, "ask"):
        first, second = JOB.findall(person.play(client, lambda: person.twice(f"twice-{client}"), f"twice-{client}"))
        assert first == second
        person.script.until_over(first)
        person.play(client, lambda: person.one("stop", job=first, how="drop"), f"refused-{client}")
    assert "the token mcp-" in person.answers["stop"]
    assert "Traceback" not in person.answers["stop"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_long_answer_is_head_and_tail_and_begins_with_what_matters(person: Person, client: str) -> None:
    need(client)
    text = "".join(f"line number {number}\n" for number in range(LINES))
    written = {"write": {"long.txt": text}, "decision": "implemented", "changes_made": ["long.txt"]}
    person.script.answers(none={"delegations": [leg("one")]}, one=written)
    job = person.script.ask()
    person.script.until_over(job)
    with person.with_the_service(client, "read"):
        person.play(client, lambda: person.one("changes", job=job), f"long-{client}")
    answer = person.answers["changes"]
    assert f"long.txt +{LINES} -0" in answer[:2048]
    assert "bytes left out" in answer
    assert f"service job diff {job}" in answer
    assert len(answer) < 60_000


@pytest.mark.ruling("J9", "S2", "S8")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_slow_start_is_waited_for_and_one_cut_off_is_repeated_as_one_job(person: Person, client: str) -> None:
    need(client)
    service = person.script.service
    person.script.answers()
    before = len(service.json("job", "list"))
    with person.with_the_service(client, "ask"):
        output = person.play(client, lambda: person.slow_and_cut(f"cut-{client}"), f"cut-{client}")
    slow, cut, again = JOB.findall(output)[-3:]
    assert cut in (NO_JOB, again)  # Claude repeats the call by itself
    assert NO_JOB not in (slow, again), person.answers
    assert len(service.json("job", "list")) == before + 2
    for job in (slow, again):
        person.script.until_over(job)
