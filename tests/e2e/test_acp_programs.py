"""Real programs by ACP in their boxes: each asks, implements, verifies and resumes in trees, within its policy (S7)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from activities.boxes import try_boxes
from activities.runs.os_processes import marks
from activities.settings.model import WorkerSection
from tests.e2e.conftest import Installed, set_up
from tests.e2e.mcp_clients import opencode
from tests.e2e.programs import BY_ACP, installed, need
from tests.e2e.script import git, states
from tests.e2e.stage import result
from tests.scripted_model import ScriptedModel
from tests.waiting import PATIENCE, wait_for

pytestmark = [pytest.mark.long, pytest.mark.ruling("S7")]

LEADS = tuple(BY_ACP)
READ, WRITE, FULL = "read-only", "workspace-write", "danger-full-access"
LOGIN = "of-the-login"
MADE = {"write_file": {"path": "made.txt", "content": "made by acp\n"}}
SCENARIOS: dict[str, Any] = {
    "make": [MADE, result(decision="implemented", summary="made it", changes_made=["made.txt: created"])],
    "look": [result(summary="looked")],
    "check": [{"read_file": {"path": "made.txt"}}, result(summary="checked [[fake:answer]]")],
}


def variables(model: ScriptedModel) -> dict[str, str]:
    """Return the variables that point the programs to the model."""
    url = f"{model.url()}/v1"
    copilot = {"OFFLINE": "true", "MODEL": "kimi-default", "PROVIDER_BASE_URL": url, "PROVIDER_API_KEY": "any"}
    qwen = {"API_KEY": "any", "BASE_URL": url, "MODEL": "kimi-default"}
    kimi = {"MODEL_NAME": "kimi-default", "MODEL_API_KEY": "any", "MODEL_BASE_URL": url}
    kimi |= {"LOOP_MAX_ATTEMPTS_PER_STEP": "1"}
    programs = {"COPILOT": copilot, "OPENAI": qwen, "KIMI": kimi}
    return opencode(model, key="") | {
        f"{program}_{name}": value for program, values in programs.items() for name, value in values.items()
    }


def sections(model: ScriptedModel) -> str:
    lines = []
    for program, runtime in BY_ACP.items():
        command = installed()[program]
        lines += [f"[runtimes.{runtime}]", f"command = {json.dumps([command])}", 'box = "bwrap"']
        lines += [f"read = {json.dumps([str(Path(command).parent)])}"]
        lines += [f'hosts = ["{urlsplit(model.url()).netloc}"]', "network_retries = 0"]
    return "\n".join(lines)


def legs(lead: str) -> list[dict[str, Any]]:
    """Return the parts that a lead gives to the three other programs."""
    first = LEADS.index(lead)
    maker, checker, looker = (LEADS[first + 1 :] + LEADS[:first])[:3]
    return [
        {"id": "make", "agent": maker, "action": "implement", "prompt": "Make it. [[fake:make]]"},
        {"id": "look", "agent": looker, "action": "ask", "prompt": "Look. [[fake:look]]"},
        {"id": "check", "agent": checker, "action": "review", "prompt": "Check it. [[fake:check]]"}
        | {"deps": ["make"], "synthesis_rule": "verify"},
    ]


def tries(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the steps of a program that tries what a policy may forbid."""
    command = f"echo ran-$((40+2)); echo x > command.txt && echo wrote-$((40+2)); echo x > {folder}/{name}-beside.txt"
    return [
        MADE,
        {"run": command},
        {"write_file": {"path": f"../{name}-beside.txt", "content": "x"}},
        result(decision="implemented", summary="tried it [[fake:answer]]", changes_made=["made.txt"]),
    ]


@dataclass
class Played:
    """A service with the four programs, and the tasks that it ran beside each other."""

    service: Installed
    model: ScriptedModel
    jobs: dict[str, str] = field(default_factory=dict)
    """First job of each task, by a name of the task."""

    def register(self, name: str, program: str, policy: str) -> None:
        can = "ask,review" if policy == READ else "ask,review,implement"
        words = ("--runtime", BY_ACP[program], "--capabilities", can, "--autonomy", policy, "--session", "tree")
        self.service("agent", "add", name, *words, "--repo", "acme/shop")

    def start(self, name: str, agent: str, scenario: str, action: str = "ask", *more: str) -> None:
        order = ("agent", action, agent, f"Do it. [[fake:{scenario}]]", "--repo", "acme/shop", *more)
        self.jobs[name] = str(self.service.json(*order)["job_id"])

    def shown(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.service.json("job", "show", self.jobs[name])
        return shown

    def is_over(self, job: str) -> bool:
        return bool(self.service.tree(job)["over"])

    def requests(self, job: str) -> list[dict[str, Any]]:
        return [one for one in self.model.requests() if f"{job}-" in one.get("cwd", "")]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    need(*BY_ACP)
    if why := try_boxes.look(WorkerSection().agents_uid).lacks():
        pytest.skip(why)
    service = set_up(tmp_path_factory.mktemp("acp"))
    login = service.tmp / "person/.local/share/opencode/auth.json"
    login.parent.mkdir(parents=True)
    login.write_text(json.dumps({"svc": {"type": "api", "key": LOGIN}}))
    with ScriptedModel(SCENARIOS) as model:
        service.extra.update(variables(model), HOME=str(service.tmp / "person"))
        service.home.joinpath("config.toml").write_text(sections(model))
        played = Played(service, model)
        try:
            service("daemon", "start")
            for program in BY_ACP:
                played.register(program, program, WRITE)
            for program in BY_ACP:
                model.scenarios[f"lead-{program}"] = [result(summary="delegates", delegations=legs(program))]
                played.start(program, program, f"lead-{program}")
                played.start(f"{program}-hang", program, "hang", "ask", "--timeout", "30s")
                for policy in (READ, WRITE, FULL):
                    name = f"{program}-{policy}"
                    model.scenarios[name] = tries(service.tmp, name)
                    played.register(name, program, policy)
                    played.start(name, name, name, "ask" if policy == READ else "implement")
            for job in played.jobs.values():
                wait_for(partial(played.is_over, job), lambda: service("daemon", "status").stdout, 3 * PATIENCE)
            yield played
        finally:
            service("daemon", "stop")


@pytest.mark.ruling("E6", "K3")
@pytest.mark.parametrize("lead", LEADS)
def test_a_program_leads_the_three_others_and_goes_on_in_its_session(played: Played, lead: str) -> None:
    tree = played.service.tree(played.jobs[lead])
    assert states(tree) == dict.fromkeys(("none", "make", "look", "check", "normal"), "succeeded"), tree
    by_id = {row["delegation_id"] or row["continuation"]: row for row in tree["jobs"]}
    assert {row["runtime"] for row in tree["jobs"]} == set(BY_ACP.values())
    made = git(played.service.repo, "show", f"{by_id['make']['branch']}:made.txt")
    assert made == "made by acp\n"
    assert "made by acp" in str(played.requests(by_id["check"]["job_id"])[-1]["body"]), "it read what was made"
    begun, gone_on = played.requests(played.jobs[lead])  # both in the one folder
    assert (begun["scenario"], gone_on["scenario"]) == (f"lead-{lead}", "answer")
    assert gone_on["user_turns"] == begun["user_turns"] + 1, "the session's first turn is there"
    events = played.service.json("job", "events", played.jobs[lead])
    assert "session_not_resumed" not in [event["kind"] for event in events]


@pytest.mark.ruling("P5", "N2")
@pytest.mark.parametrize("policy", [READ, WRITE, FULL])
@pytest.mark.parametrize("program", BY_ACP)
def test_a_program_does_what_its_policy_permits_and_nothing_leaves_its_box(
    played: Played, program: str, policy: str
) -> None:
    name = f"{program}-{policy}"
    shown = played.shown(name)
    assert shown["state"] == "succeeded", shown["reason"]
    output = " ".join(str(one["body"]) for one in played.model.requests() if one["scenario"] == name)
    assert (("ran-42" in output), ("wrote-42" in output)) == (policy == FULL, policy == FULL)
    files = git(played.service.repo, "diff", "--name-only", "main", shown["branch"]) if shown["branch"] else ""
    assert files.split() == {READ: [], WRITE: ["made.txt"], FULL: ["command.txt", "made.txt"]}[policy]
    assert list(played.service.tmp.rglob(f"{name}-beside.txt")) == []


@pytest.mark.ruling("S8")
@pytest.mark.parametrize("program", BY_ACP)
def test_a_program_that_hangs_is_ended_by_its_timeout(played: Played, program: str) -> None:
    shown = played.shown(f"{program}-hang")
    assert (shown["state"], "the agent was stopped after its timeout of" in shown["reason"]) == ("failed", True)
    assert [mark for _, mark in marks() if mark.startswith(f"{shown['job_id']}.")] == []


@pytest.mark.ruling("N2")
def test_opencode_has_its_login_in_each_run_and_none_outlasts_it(played: Played) -> None:
    keys = [one["key"] for one in played.requests(played.jobs["opencode"])]
    assert keys == [f"Bearer {LOGIN}"] * 2
    assert list((played.service.home / "programs").rglob("auth.json")) == []
