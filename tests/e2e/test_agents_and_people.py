"""Attempts of unboxed agents to decide as people, on every channel; people are not affected (ruling N5)."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from activities.store import round_rows
from tests.cli.warm.conftest import AS_TYPED, FRESH, NOT_TAKEN, ONLY_HANDED
from tests.cli.warm.warming import warmed
from tests.e2e.bridge import client
from tests.e2e.conftest import Installed, set_up
from tests.unboxed import shell

pytestmark = [
    pytest.mark.ruling("N5"),
    pytest.mark.skipif(sys.platform != "linux", reason="without /proc ancestry tells nothing"),
]

ASKS = """\
import json, os, sys
if os.environ["SERVICE_CONTINUATION"] != "none":
    print(json.dumps({"service_result": {"decision": "approved", "summary": "answered"}}))
    sys.exit()
question = {"id": "store", "prompt": "Redis or memory?", "choices": ["redis", "memory"]}
print(json.dumps({"service_result": {"decision": "approved", "summary": "asks", "human_questions": [question]}}))
"""
ATTACKS = """\
import json, os, pathlib, re, subprocess, sys, time, urllib.error, urllib.request
here = pathlib.Path(sys.argv[1])
whole, target = json.loads((here / "environment.json").read_text()), (here / "target").read_text()
ports = ("SERVICE_TEMPORAL_PORT", "SERVICE_BRIDGE_PORT")
kept = ("PATH", "SERVICE_HOME", "PYTHONPATH", *ports)
clean = {name: whole[name] for name in kept}
home = pathlib.Path(whole["SERVICE_HOME"])
bridge = "http://" + json.loads((home / "bridge.ready").read_text())["address"]
FRESH, HANDED, AS_TYPED = json.loads((here / "entries.json").read_text())
ANSWER = ("resume", target, "answer", "store: redis")

def typed(entry, *words, env=whole):
    done = subprocess.run([sys.executable, "-c", entry, *words], env=env, capture_output=True, text=True)
    return [done.returncode, done.stdout + done.stderr]

def apart(*how):
    if subprocess.run(["unshare", *how, "true"], capture_output=True).returncode:
        return None
    words = ["unshare", *how, sys.executable, "-c", FRESH, *ANSWER]
    done = subprocess.run(words, env=clean, capture_output=True, text=True)
    return [done.returncode, done.stdout + done.stderr]

def posted(path, body, headers):
    wanted = urllib.request.Request(bridge + path, json.dumps(body).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(wanted) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as refused:
        return [refused.code, refused.read().decode()]

def by_bridge():
    bearer = {"Authorization": "Bearer " + (home / "bridge.token").read_text().strip()}
    return posted(f"/v1/jobs/{target}/resume", {"verb": "answer", "text": "store: redis"}, bearer | JSON)

def orphaned():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.2)
            came = typed(FRESH, *ANSWER, env=clean)
            (here / "draft").write_text(json.dumps(came))
            (here / "draft").rename(here / "orphaned")
        os._exit(0)
    os.wait()
    while not (here / "orphaned").exists():
        time.sleep(0.05)
    return json.loads((here / "orphaned").read_text())

def proposed(decide):
    said = typed(FRESH, "memory", "propose", decide, "It is so.", "--job", os.environ["SERVICE_JOB_ID"])
    entry = re.search(r"mem-[0-9]+", said[1])
    del os.environ["SERVICE_JOB_ID"]
    came = typed(FRESH, "memory", decide, entry.group(), env=clean)
    os.environ["SERVICE_JOB_ID"] = job
    return came

def by_form():
    sys.path[:0] = [whole["PYTHONPATH"]]
    from activities.settings.home import Home
    from bridge.http.dashboard.frame.session import Sessions
    from bridge.machine import dashboard_link
    from bridge.operations.service import Service
    sessions = Sessions(Service(Home(home)))
    cookie = sessions.begin(dashboard_link.make(Home(home), "ann")).partition(";")[0]
    session = sessions.of({"headers": [(b"cookie", cookie.encode())]})
    form = {"Cookie": cookie, "Origin": bridge, "Content-Type": "application/x-www-form-urlencoded"}
    body = f"token={session.form_token}&from=/ui/&job={target}&now="
    wanted = urllib.request.Request(f"{bridge}/ui/trees/{target}/kill", body.encode(), form, method="POST")
    try:
        with urllib.request.urlopen(wanted) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as refused:
        return [refused.code, refused.read().decode()]

JSON = {"Content-Type": "application/json"}
job = os.environ["SERVICE_JOB_ID"]
came = {
    "by the command line": typed(FRESH, *ANSWER),
    "by the warm socket": typed(HANDED, *ANSWER),
    "as it is typed": typed(AS_TYPED, *ANSWER),
    "a look by the warm socket": typed(HANDED, "job", "list"),
    "a look as it is typed": typed(AS_TYPED, "job", "list"),
    "by the bridge": by_bridge(),
    "by a form": by_form(),
    "with a clean environment": typed(FRESH, *ANSWER, env=clean),
    "from a double fork": orphaned(),
    "memory": proposed("confirm"),
    "with numbers of its own": apart("-Upf"),
    "from a namespace of its own": apart("-Upf", "--mount-proc"),
}
(here / "came.json").write_text(json.dumps(came))
print(json.dumps({"service_result": {"decision": "approved", "summary": "tried"}}))
"""
STAYS = """\
import json, os, pathlib, subprocess, sys, time
here = pathlib.Path(sys.argv[1])
whole = json.loads((here / "environment.json").read_text())
FRESH = json.loads((here / "entries.json").read_text())[0]
clean = {name: whole[name] for name in ("PATH", "SERVICE_HOME", "PYTHONPATH", "SERVICE_TEMPORAL_PORT")}
if os.environ["SERVICE_CONTINUATION"] != "none":
    print(json.dumps({"service_result": {"decision": "approved", "summary": "answered"}}))
    sys.exit()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        os.execve(sys.executable, [sys.executable, "-c", LATER, str(here), json.dumps(clean), FRESH], {})
    os._exit(0)
os.wait()
while not (here / "waits").exists():
    time.sleep(0.02)
question = {"id": "store", "prompt": "Redis or memory?"}
print(json.dumps({"service_result": {"decision": "approved", "summary": "asks", "human_questions": [question]}}))
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    installed = set_up(tmp_path_factory.mktemp("people"))
    (installed.home / "config.toml").write_text(shell() + "[bridge]\nrequests_per_minute = 100000\n")
    for name, program in {"asker": ASKS, "attacker": ATTACKS}.items():
        agent(installed, name, program)
    (installed.tmp / "environment.json").write_text(json.dumps(installed.environment))
    (installed.tmp / "entries.json").write_text(json.dumps([FRESH, ONLY_HANDED, AS_TYPED]))
    installed("daemon", "start")
    warmed(installed.seen.home.commands_socket)
    try:
        yield installed
    finally:
        installed("daemon", "stop")


def agent(service: Installed, name: str, program: str) -> None:
    path = service.tmp / f"{name}.py"
    path.write_text(program)
    words = ("--runtime", "shell", "--command", f"{sys.executable} {path} {service.tmp}", "--repo", "acme/shop")
    service("agent", "add", name, *words, "--capabilities", "ask")


def ask(service: Installed, name: str) -> str:
    return str(service.json("agent", "ask", name, "go on", "--repo", "acme/shop")["job_id"])


def paused(service: Installed, name: str = "asker") -> str:
    """Return a tree that waits for a person."""
    job = ask(service, name)
    service.wait_for(lambda: round_rows.open_rounds(service.seen.store, root=job))
    return job


@pytest.fixture(scope="module")
def attacked(service: Installed) -> tuple[str, str, dict[str, Any]]:
    """Return a question, the job whose agent tried to answer it, and the outcome of each way."""
    target = paused(service)
    (service.tmp / "target").write_text(target)
    attacker = ask(service, "attacker")
    service.wait_until_ended(attacker)
    return target, attacker, json.loads((service.tmp / "came.json").read_text())


COMMANDS = {
    "by the command line": "resume",
    "as it is typed": "resume",
    "with a clean environment": "resume",
    "from a double fork": "resume",
    "memory": "memory confirm",
}
APART = {
    "with numbers of its own": "`service resume` is for people",
    "from a namespace of its own": "the daemon runs where this process cannot see it",
}
CALLS = {"by the bridge": "/v1/jobs/{job_id}/resume", "by a form": "/ui/trees/{root}/kill"}


@pytest.mark.parametrize("way", COMMANDS)
def test_an_agent_is_refused_by_name(attacked: tuple[str, str, dict[str, Any]], way: str) -> None:
    _, attacker, came = attacked
    code, error = came[way]
    assert f"error: `service {COMMANDS[way]}` is for people, and an agent of {attacker} has called it" in error
    assert "try: " in error
    assert code == 3


@pytest.mark.parametrize("way", ["by the warm socket", "a look by the warm socket"])
def test_the_warm_process_carries_out_nothing_for_an_agent(attacked: tuple[str, str, dict[str, Any]], way: str) -> None:
    _, _, came = attacked
    assert came[way] == [NOT_TAKEN, ""]
    assert came["a look as it is typed"][0] == 0, "its own process does"


@pytest.mark.parametrize("way", APART)
def test_an_agent_that_hides_what_is_above_it_orders_nothing(
    attacked: tuple[str, str, dict[str, Any]], way: str
) -> None:
    _, _, came = attacked
    if came[way] is None:
        pytest.skip("this machine lets nobody have such a namespace")
    code, error = came[way]
    assert APART[way] in error
    assert code == 3


@pytest.mark.parametrize("way", CALLS)
def test_a_token_that_an_agent_has_found_orders_nothing(attacked: tuple[str, str, dict[str, Any]], way: str) -> None:
    _, attacker, came = attacked
    status, answer = came[way]
    assert status == 403, answer
    assert f"is for people, and an agent of {attacker} has called it" in answer


def test_nothing_was_decided_and_people_see_who_tried(
    service: Installed, attacked: tuple[str, str, dict[str, Any]]
) -> None:
    target, attacker, _ = attacked
    assert round_rows.open_rounds(service.seen.store, root=target), "it still waits"
    assert {memory["state"] for memory in service.json("memory", "list")} == {"pending"}
    assert {memory["author"] for memory in service.json("memory", "list")} == {"attacker"}
    tried = [event for event in service.json("job", "events", attacker) if event["kind"] == "agent_refused"]
    assert {event["job_id"] for event in tried} == {attacker}
    assert len(tried) == len({*COMMANDS.values(), *CALLS, "the warm process"})
    assert any("commands.sock" in event["message"] for event in tried)
    assert "agent_refused" in service("job", "events", attacker).stdout
    assert not [event for event in service.json("job", "events", target) if event["kind"].startswith("resume_")]


def test_people_answer_where_and_as_they_did(service: Installed) -> None:
    """Covers the shell; the bridge with the operator's token, and with personal tokens, which the record names."""
    first, second, third = (paused(service) for _ in range(3))
    service("resume", first, "answer", "store: redis")
    body = {"verb": "answer", "text": "store: redis"}
    ann = {"Authorization": f"Bearer {service('bridge', 'token', 'add', 'ann', '--scope', 'act').stdout.strip()}"}
    with client(service) as http:
        assert http.post(f"/v1/jobs/{second}/resume", json=body).status_code == 200
        assert http.post(f"/v1/jobs/{third}/resume", json=body, headers=ann).status_code == 200
    who = {job: actor(service, job) for job in (first, second, third)}
    assert who[first][1] == "cli"
    assert [who[second], who[third]] == [("bridge", "bridge"), ("ann", "bridge")]


def actor(service: Installed, job: str) -> tuple[str, str]:
    service.wait_for(lambda: accepted(service, job))
    data = accepted(service, job)[0]["data"]
    return data["actor"], data["channel"]


def accepted(service: Installed, job: str) -> list[dict[str, Any]]:
    return [event for event in service.json("job", "events", job) if event["kind"] == "resume_accepted"]


def test_a_program_with_a_token_to_ask_starts_work_and_decides_nothing(service: Installed) -> None:
    target = paused(service)
    ci = {"Authorization": f"Bearer {service('bridge', 'token', 'add', 'ci', '--scope', 'ask').stdout.strip()}"}
    with client(service) as http:

        def post(path: str, body: dict[str, str]) -> httpx.Response:
            return http.post(path, json=body, headers=ci)

        assert post("/v1/agents/asker/ask", {"message": "hi", "repo": "acme/shop"}).status_code == 200
        refused = post(f"/v1/jobs/{target}/kill", {})
        assert refused.status_code == 403
        assert refused.json()["error"].endswith("try: service bridge token add NAME --scope act")
        service("bridge", "token", "remove", "ci")
        assert http.get("/v1/jobs", headers=ci).status_code == 401


LATER = """
import json, pathlib, subprocess, sys, time
here, env, fresh = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
(here / "waits").write_text("")
while not (here / "target").exists():
    time.sleep(0.02)
subprocess.run([sys.executable, "-c", fresh, "resume", (here / "target").read_text(), "abort"], env=env)
(here / "aborted").write_text("")
"""


def test_what_an_agent_leaves_behind_ends_with_its_run(service: Installed, tmp_path: Path) -> None:
    """A left-over process would answer after its run, when no supervisor is its ancestor any more."""
    for name in ("environment.json", "entries.json"):
        (tmp_path / name).write_text((service.tmp / name).read_text())
    program = tmp_path / "stays.py"
    program.write_text(STAYS.replace("LATER,", f"{LATER!r},"))
    words = ("--runtime", "shell", "--command", f"{sys.executable} {program} {tmp_path}", "--repo", "acme/shop")
    service("agent", "add", "stays", *words, "--capabilities", "ask")
    job = paused(service, "stays")
    (tmp_path / "target").write_text(job)
    service("resume", job, "answer", "store: redis")
    service.wait_for(lambda: service.tree(job)["over"])
    assert not (tmp_path / "aborted").exists()
    assert [actor(service, job)[1]] == ["cli"]
