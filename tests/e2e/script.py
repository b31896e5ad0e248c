"""A service whose agents follow a test's script, and helpers that read its trees."""

import json
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Installed, set_up
from tests.unboxed import NO_BOX, shell

AGENT = """\
import json, os, pathlib, subprocess, sys, time
prompt = sys.stdin.read()
plans = pathlib.Path(os.environ["PLANS"])
(plans / "prompts" / os.environ["SERVICE_JOB_ID"]).write_text(prompt)
name = os.environ["SERVICE_DELEGATION_ID"] or os.environ["SERVICE_CONTINUATION"]
for step in (name + "." + os.environ["SERVICE_ATTEMPT"], name):
    if (plans / step).exists():
        plan = json.loads((plans / step).read_text())
        break
else:
    plan = {}
for path, text in plan.pop("write", {}).items():
    pathlib.Path(path).write_text(text)
for command in plan.pop("run", []):
    subprocess.run(command, shell=True, check=True)
for line, until in [*plan.pop("say", {}).items(), ("", plan.pop("wait", ""))]:
    print(line, flush=True)
    while until and not (plans / until).exists():
        time.sleep(0.05)
print(json.dumps({"service_result": {"decision": "approved", "summary": "did " + name} | plan}))
"""


class Script:
    """The service of a module; each test defines its agents' answers."""

    def __init__(self, service: Installed) -> None:
        self.service = service
        self.plans = service.tmp / "plans"
        (self.plans / "prompts").mkdir(parents=True)
        program = service.tmp / "agent.py"
        program.write_text(AGENT)
        command = f'["python3", "{program}"]'
        service.home.joinpath("config.toml").write_text(
            shell("PLANS")
            + f'[runtimes.runtime_a]\nadapter = "script"\ncommand = {command}\nenv = ["PLANS"]\n{NO_BOX}\n'
            f'[runtimes.runtime_b]\nadapter = "script"\ncommand = {command}\nenv = ["PLANS"]\n{NO_BOX}\n'
        )
        words = ("--runtime", "shell", "--command", f"python3 {program}", "--repo", "acme/shop")
        for name in ("lead", "dev"):
            can = ("--capabilities", "ask,review,implement", "--autonomy", "workspace-write")
            service("agent", "add", name, *words, *can)

    def answers(self, **plans: dict[str, Any]) -> None:
        for path in self.plans.iterdir():
            if path.is_file():
                path.unlink()
        for name, plan in plans.items():
            (self.plans / name.replace("__", ".").replace("_", "-")).write_text(json.dumps(plan))

    @cached_property
    def address(self) -> str:
        """Address of the service's bridge."""
        return self.service("dashboard", "--print").stdout.split("/ui/")[0].strip()

    def ask(self, goal: str = "reach the goal") -> str:
        return str(self.service.json("agent", "ask", "lead", goal, "--repo", "acme/shop")["job_id"])

    def until_over(self, job: str) -> dict[str, Any]:
        self.service.wait_for(lambda: bool(self.tree(job)["over"]))
        return self.tree(job)

    def tree(self, job: str) -> dict[str, Any]:
        return self.service.tree(job)

    def prompt(self, job: str) -> str:
        return (self.plans / "prompts" / job).read_text()


def played(folder: Path, settings: str = "") -> Iterator[Script]:
    """Run a service with scripted agents for a module's tests."""
    service = set_up(folder)
    stage = Script(service)
    with (service.home / "config.toml").open("a") as config:
        config.write(settings)
    service.extra["PLANS"] = str(stage.plans)
    service("daemon", "start")
    try:
        yield stage
    finally:
        service("daemon", "stop")


def leg(name: str, action: str = "implement", **more: Any) -> dict[str, Any]:
    return {"id": name, "agent": "dev", "action": action, "prompt": f"do {name}"} | more


def states(tree: dict[str, Any]) -> dict[str, str]:
    return {job["delegation_id"] or job["continuation"]: job["state"] for job in tree["jobs"]}


def git(repo: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(repo), *words], check=True, capture_output=True, text=True).stdout


def until_paused(script: Script, job: str) -> None:
    script.service.wait_for(lambda: script.tree(job)["task"]["state"] == "awaiting_human")
