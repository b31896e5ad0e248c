"""Fixtures for jobs: a registered repository with one commit, and a runner of scripted agents."""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.agents.shell import Shell
from activities.host.context import Context
from activities.host.slots import Slots
from activities.jobs.run_job import Jobs
from activities.settings.home import Home
from activities.store.database import open_store
from activities.store.registry import repo_rows
from activities.store.registry.repo_rows import Remote
from tests.activities.git.conftest import repository_of
from tests.assigned import changed
from tests.unboxed import unboxed
from workflows.contract.models import Action, AutonomyPolicy
from workflows.model.jobs import JobOutcome, JobRun
from workflows.model.long_texts import Text
from workflows.model.workers import Assignment, Worker

if TYPE_CHECKING:
    from tests.activities.jobs.remotes import Hosts


def git(path: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    return subprocess.run(
        ["git", "-C", str(path), *identity, *words], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository_of(tmp_path / "shop", {"limiter.py": "limit = 1\n"})


@dataclass
class Stage:
    """A runner of agents written as Python scripts."""

    context: Context
    jobs: Jobs
    repo: Path
    tmp: Path

    def job(self, script: str, action: Action = Action.ASK, **changes: Any) -> JobRun:
        program = self.tmp / "agent.py"
        program.write_text(script)
        run = JobRun(
            job_id="job-0123456789ab",
            root_job_id="job-0123456789ab",
            task_id="task-1",
            repo="acme/shop",
            assignment=Assignment(
                worker=Worker(
                    name="scripted",
                    runtime="shell",
                    command=(sys.executable, str(program)),
                    autonomy_policy=AutonomyPolicy.WORKSPACE_WRITE,
                ),
                action=action,
                prompt=Text(inline="look at it"),
            ),
        )
        return changed(run, **changes)

    async def play(self, run: JobRun) -> JobOutcome:
        return await ActivityEnvironment().run(self.jobs.run_job, run)


@pytest.fixture
def stage(home: Home, repo: Path, tmp_path: Path) -> Stage:
    settings = unboxed()
    context = Context(home, settings, open_store(home))
    repo_rows.put(context.store, "acme/shop", str(repo), context.host)
    return Stage(context, Jobs(context, {"shell": Shell(())}, Slots(context.settings)), repo, tmp_path)


Play = Callable[[JobRun], Awaitable[JobOutcome]]


@pytest.fixture
def hosts(home: Home, repo: Path, tmp_path: Path) -> "Hosts":
    """Return hosts of a fleet, by name."""
    from tests.activities.jobs.remotes import Hosts

    store, forge = open_store(home), tmp_path / "forge.git"
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(forge))
    repo_rows.put(store, "acme/shop", "", "a", remote=Remote(str(forge), "main", "refs/service/"))

    def stage(host: str) -> Stage:
        settings = unboxed()
        worker = settings.worker.model_copy(update={"host": host})
        own = Home(tmp_path / f"home-{host}").ensure()
        context = Context(own, settings.model_copy(update={"worker": worker}), store)
        return Stage(context, Jobs(context, {"shell": Shell(())}, Slots(context.settings)), repo, own.root)

    return Hosts(forge, stage)


@pytest.fixture
def users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the agents' programs a home of a person's that has no settings yet."""
    home = tmp_path / "h"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "KIMI_CODE_HOME", "KIMI_MODEL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return home
