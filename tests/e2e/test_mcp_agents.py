"""Agents that act as people through real programs: a client of the operator's that they start, a server that the
operator's settings hand them, and a hook that accepts every form (rulings N5, S4).
"""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import set_up
from tests.e2e.mcp_clients import PROMPT, Person, Play, round_of
from tests.e2e.programs import CLIENTS, PROGRAMS, ROOT, need, sections
from tests.e2e.script import Script
from tests.scripted_model import ScriptedModel
from tests.unboxed import shell

pytestmark = [pytest.mark.long, pytest.mark.ruling("N5", "S4")]
ASK = {"human_questions": [{"id": "store", "prompt": "Redis or memory?", "choices": ["redis", "memory"]}]}
OTHER_NAME = "team"
"""A name under which the operator added the service by hand."""


@pytest.fixture(scope="module")
def person(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Start a service whose programs have a box or none, are handed the operator's servers, and reach the bridge."""
    service = set_up(tmp_path_factory.mktemp("mcp-agents"))
    script = Script(service)
    service.extra["PLANS"] = str(script.plans)
    with ScriptedModel() as model:
        person = Person(script, service.tmp / "away", model)
        more = f'mcp_servers = ["service", "{OTHER_NAME}"]', f'box = "{request.param}"'
        text = sections(model, *more, read=[sys.prefix, sys.base_prefix, str(ROOT)])
        text = text.replace('hosts = ["', f'hosts = ["127.0.0.1:{service.extra["SERVICE_BRIDGE_PORT"]}", "')
        service.home.joinpath("config.toml").write_text(shell("PLANS") + text)
        service("daemon", "start")
        try:
            yield person
        finally:
            service("daemon", "stop")


@pytest.fixture
def target(person: Person) -> str:
    """Return a task that waits for a person."""
    person.script.answers(none=ASK)
    job = person.script.ask()
    person.script.service.wait_for(lambda: person.script.tree(job)["task"]["state"] == "awaiting_human")
    return job


def orders(person: Person, job: str, server: str = "service") -> Play:
    """Play an agent that reads what waits, and gives every order of a person."""
    person.answers = {}
    waiting = yield {"mcp": {"server": server, "name": "waiting", "input": {}}}
    asked = {"agent": "lead", "message": "go on", "repository": "acme/shop"}
    calls: dict[str, dict[str, Any]] = {
        "answer": {"job": job, "answers": {"store": "redis"}, **round_of(waiting.partition(job)[2])},
        "start": asked,
        "finish": {"job": job, "how": "retry"},
        "stop": {"job": job, "how": "kill"},
    }
    person.answers["waiting"] = waiting
    for name, given in calls.items():
        person.answers[name] = yield {"mcp": {"server": server, "name": name, "input": given}}
    yield {"result": {"decision": "approved", "summary": "tried", "changes_made": []}}
    return job


def check_nothing_was_decided(person: Person, target: str, attacker: str) -> None:
    """Check that each order was refused, that the target still waits, and that people see who tried."""
    service = person.script.service
    for name in ("answer", "start", "finish", "stop"):
        assert f"is for people, and an agent of {attacker} has called it" in person.answers[name], person.answers
    assert person.script.tree(target)["task"]["state"] == "awaiting_human"
    kinds = [event["kind"] for event in service.json("job", "events", attacker)]
    assert kinds.count("agent_refused") == 4


@pytest.mark.parametrize("person", ["none"], indirect=True)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_operator_s_own_client_gives_no_order_for_an_agent_that_starts_it(
    person: Person, target: str, client: str
) -> None:
    need(client)
    name = f"started-{client}"
    person.model.scenarios[name] = lambda _prompt: orders(person, target)
    with person.with_the_service(client, "act"):
        command = person.command(client, f"{PROMPT} [[fake:{name}]]")
        variables = [f"{key}={value}" for key, value in person.script.service.environment.items()]
        words = shlex.join(["env", "-i", "-C", str(person.work), *variables, *command])
        person.script.answers(none={"run": [f"{words} </dev/null >{person.folder}/{name}.log 2>&1 || true"]})
        attacker = person.script.ask()
        person.script.until_over(attacker)
    check_nothing_was_decided(person, target, attacker)
    person.script.service("job", "kill", target)


def name_again(person: Person, program: str) -> None:
    """Give the service's entry in a program's settings a second name, as by hand."""
    service = person.script.service
    if program == "codex":
        path = Path(service.extra["CODEX_HOME"], "config.toml")
        text = path.read_text().replace("required = true\n", "")
        entry = text[text.index("[mcp_servers.service]") :]
        path.write_text(text + entry.replace("[mcp_servers.service", f"[mcp_servers.{OTHER_NAME}"))
        return
    file = {"claude": ("CLAUDE_CONFIG_DIR", ".claude.json"), "kimi": ("KIMI_CODE_HOME", "mcp.json")}[program]
    path = Path(service.extra[file[0]], file[1])
    content = json.loads(path.read_text())
    content["mcpServers"][OTHER_NAME] = content["mcpServers"]["service"]
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(("person", "box"), [("none", "none"), ("auto", "auto")], indirect=["person"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_server_in_the_operator_s_settings_gives_no_order_for_the_job_that_has_it(
    person: Person, target: str, program: str, box: str
) -> None:
    """The entry of the name `service` is left out. In a box, `service mcp`, which Codex starts, finds no service."""
    need(program)
    service = person.script.service
    person.model.scenarios[program] = lambda _prompt: orders(person, target, OTHER_NAME)
    with person.with_the_service(program, "act"):
        name_again(person, program)
        able = ("--capabilities", "implement", "--autonomy", "danger-full-access")
        service("agent", "add", program, "--runtime", PROGRAMS[program], "--repo", "acme/shop", *able)
        job = service.json("agent", "implement", program, f"Do it. [[fake:{program}]]", "--repo", "acme/shop")["job_id"]
        person.script.until_over(job)
    if (program, box) == ("codex", "auto"):
        assert all("is not a function" in text for text in person.answers.values()), person.answers
        assert person.script.tree(target)["task"]["state"] == "awaiting_human"
    else:
        check_nothing_was_decided(person, target, job)
    service("job", "kill", target)
