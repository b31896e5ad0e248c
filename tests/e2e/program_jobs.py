"""Jobs of real programs as a worker runs them, in the account that starts this: `python -m tests.e2e.program_jobs`.

Standard input describes the jobs, and their outcomes are printed; tests of the box need no Temporal.
"""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.agents.registry import adapters_of
from activities.host.context import Context
from activities.host.slots import Slots
from activities.jobs.run_job import Jobs
from activities.settings.home import Home
from activities.settings.load import load_settings
from activities.store import attempt_rows
from activities.store.database import open_store
from activities.store.registry import repo_rows
from tests import keys
from tests.e2e.as_account import account
from tests.e2e.programs import PROGRAMS, ROOT
from tests.tree.simulator import World, delegation, tree_input
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.jobs import JobRun, Work
from workflows.model.long_texts import Text
from workflows.model.states import Continuation
from workflows.model.workers import Assignment, SessionScope, Worker

SOMEBODY = 64_321
ACCOUNTS = {"root": None, "ordinary": SOMEBODY}
KINDS = [("bwrap", who) for who in ACCOUNTS]


def account_of(who: str) -> int | None:
    """Return the account to run as; None is root itself."""
    if os.geteuid() and ACCOUNTS[who] is None:
        pytest.skip("only root runs a service of root's")
    return ACCOUNTS[who] if os.geteuid() == 0 else None


@dataclass(frozen=True)
class Job:
    """A job of a program, and its policy."""

    program: str
    policy: AutonomyPolicy
    action: Action
    scenario: str = ""
    """Scenario of the model; by default the one of the job's name."""
    after: str = ""
    """Branch of a leg of that name, which is on the line that the job begins from."""
    continues: int = 0
    """Position in the chain of a coordinator that keeps its session; 0: its first job."""


@dataclass(frozen=True)
class Place:
    """The surroundings of jobs: a folder with a repository `shop`, a user's home, and settings."""

    folder: Path
    settings: str
    environ: dict[str, str] = field(default_factory=dict)

    def play(self, jobs: dict[str, Job], *, uid: int | None = None, shown: list[str]) -> dict[str, dict[str, Any]]:
        """Run all jobs at once, as this account or another one, and return their outcomes."""
        place = {"folder": str(self.folder), "settings": self.settings, "environ": self.environ}
        order = json.dumps({"place": place, "jobs": {name: asdict(job) for name, job in jobs.items()}})
        command = [sys.executable, "-m", "tests.e2e.program_jobs"]
        command = command if uid is None else account(uid, [str(self.folder), *shown], command)
        env = self.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, input=order, env=env, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        ended: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return ended


def _run(number: int, name: str, job: Job) -> JobRun:
    job_id = f"job-{number:012x}"
    runtime, policy = PROGRAMS[job.program], AutonomyPolicy(job.policy)
    worker = Worker(name="trier", runtime=runtime, autonomy_policy=policy, session=SessionScope.TREE)
    prompt = Text(inline=f"Do it. [[fake:{job.scenario or name}]]")
    assignment = Assignment(worker=worker, action=Action(job.action), prompt=prompt)
    line = (Work(leg=job.after, branch=job.after),) if job.after else ()
    task = f"task-{number}"
    run = JobRun(job_id=job_id, root_job_id=job_id, task_id=task, repo="acme/shop", assignment=assignment, line=line)
    return _next_of(run, job.continues) if job.continues else run


def _next_of(run: JobRun, number: int) -> JobRun:
    """Return a later job of the run's chain, after one leg."""
    world = World(tree_input()).begin()
    world.coordinator("approved", delegation("a"))
    world.leg("a")
    parent = f"{run.job_id}.{number - 1}" if number > 1 else run.job_id
    changes = {"parent_job_id": parent, "continuation": Continuation.NORMAL, "brief": world.last.brief}
    return run.model_copy(update={"job_id": f"{run.job_id}.{number}"} | changes)


async def _play(place: Place, jobs: dict[str, Job]) -> dict[str, dict[str, Any]]:
    home = Home(place.folder / "user" / ".service").ensure()
    keys.give(home)
    home.config.write_text(place.settings)
    settings = load_settings(home)
    context = Context(home, settings, open_store(home))
    repo_rows.put(context.store, "acme/shop", str(place.folder / "shop"), context.host)
    runner = Jobs(context, adapters_of(settings, os.environ), Slots(settings))
    runs = [_run(number, name, job) for number, (name, job) in enumerate(jobs.items())]
    outcomes = await asyncio.gather(*(ActivityEnvironment().run(runner.run_job, run) for run in runs))
    ended = {}
    for name, outcome in zip(jobs, outcomes, strict=True):
        row = attempt_rows.get(context.store, outcome.job_id, 1)
        ended[name] = outcome.model_dump(mode="json") | {"box": (row.diagnostics or {}).get("box") if row else None}
    return ended


if __name__ == "__main__":
    order = json.load(sys.stdin)
    place = Place(**order["place"] | {"folder": Path(order["place"]["folder"])})
    jobs = {name: Job(**job) for name, job in order["jobs"].items()}
    sys.stdout.write(json.dumps(asyncio.run(_play(place, jobs))))
