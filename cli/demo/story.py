"""The demo's steps in order, made of commands that anybody could type. Add a step to `STORY` to extend the demo.

The docstring of a step is printed above it.
"""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cli.demo import agents
from cli.demo.stage import INDENT, CommandFailedError, DemoStage

REPO = "demo/hello"
GOAL = "Build a rate limiter, and have it verified."
PACE = 1.0
"""Seconds that each agent takes while a person watches; otherwise agents don't wait."""


@dataclass
class DemoResult:
    """The results of the steps so far."""

    job_id: str = ""
    summary: str = ""
    jobs: int = 0
    """The tree's number of jobs; 0 until it is over."""


def the_daemon(stage: DemoStage, result: DemoResult) -> None:
    """A Temporal server, its web UI, a worker and the bridge, in a home of their own."""
    from activities.settings.home import Home
    from bridge.operations.health import doctor
    from bridge.operations.health.findings import Level
    from bridge.operations.service import Service

    del result
    for lacking in doctor.git(Service(Home(stage.home))):
        if lacking.level is Level.WRONG:
            raise CommandFailedError(lacking.says, lacking.fix)
    with stage.waiting("a look at the boxes of this machine"):
        _name_a_box(stage)
    state = stage.read("daemon", "start", waits_for="the server, the worker and the bridge to start")["state"]
    where = f"Temporal at {state['temporal_address']}, its web UI at {state['ui_url']}"
    stage.tell(f"{INDENT}{where}", f"{INDENT}all of it in {stage.home}")


def _name_a_box(stage: DemoStage) -> None:
    """Run the demo's own scripts without a box if none works on this machine."""
    from activities.boxes import try_boxes
    from activities.host import boxing
    from activities.runtimes.known_runtimes import SHELL
    from activities.settings.model import Settings

    default = Settings()
    if boxing.refusal(default, SHELL):
        there = try_boxes.look(default.worker.agents_uid)
        why = "No box of this machine holds agents, so the demo's own scripts run with box none."
        stage.tell(f"{INDENT}{why} To have one: {there.remedy}")
        with (stage.home / "config.toml").open("a") as settings:
            settings.write(f'[runtimes.{SHELL}]\nbox = "none"\n')


def a_repository(stage: DemoStage, result: DemoResult) -> None:
    """A small git repository, and the service told about it."""
    from activities.git.command import git

    del result
    stage.checkout.mkdir(parents=True)
    git(stage.checkout, "init", "--quiet", "--initial-branch", "main")
    (stage.checkout / "hello.py").write_text('print("hello")\n')
    (stage.checkout / "README.md").write_text("# Hello\n")
    git(stage.checkout, "add", ".")
    git(stage.checkout, "commit", "--quiet", "--message", "Say hello")
    stage.service("repo", "add", REPO, str(stage.checkout))


def a_team(stage: DemoStage, result: DemoResult) -> None:
    """Three agents. They are a script of a hundred lines, so no model and no key is needed."""
    del result
    pace = PACE if sys.stdout.isatty() else 0
    command = shlex.join([sys.executable, "-I", "-S", agents.__file__, f"{pace:g}"])
    write = ("--capabilities", "implement", "--autonomy", "workspace-write")
    for name, able in (("lead", ()), ("builder", write), ("checker", ())):
        stage.service("agent", "add", name, "--runtime", "shell", "--command", command, "--repo", REPO, *able)


def a_tree(stage: DemoStage, result: DemoResult) -> None:
    """The lead delegates two parts and a check. The check fails, the lead plans again, and the second round passes."""
    result.job_id = stage.read("agent", "ask", "lead", GOAL, "--repo", REPO, waits_for="the task to start")["job_id"]
    stage.watch("job", "tree", result.job_id, "--watch")
    shown: dict[str, Any] = stage.read("job", "tree", result.job_id, waits_for="its end")
    if shown["task"]["state"] != "done":
        why = f"the task should be done, and it is {shown['task']['state']}: {shown['task']['reason']}"
        raise CommandFailedError(why)
    last = shown["jobs"][-1]
    result.summary, result.jobs = last["summary"], len(shown["jobs"])
    stage.tell(f"{INDENT}{last['decision']}: {last['summary']}")


STORY: tuple[Callable[[DemoStage, DemoResult], None], ...] = (the_daemon, a_repository, a_team, a_tree)


def tell(stage: DemoStage, result: DemoResult) -> None:
    """Print the docstring of each step and run it, in order."""
    for step in STORY:
        stage.tell("", f"{step.__name__.replace('_', ' ').capitalize()}. {step.__doc__}")
        step(stage, result)
