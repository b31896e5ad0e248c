"""A tree with work on branches, a checkout whose remote is a folder, and a GitHub that accepts its pull requests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.github.client import Client
from activities.github.credentials import Credentials
from activities.settings.home import Home
from activities.store.github import facts
from activities.store.github.facts import FactRow
from activities.store.registry import repo_rows
from bridge.github.session import GithubSession
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.bridge import seeds
from tests.bridge.seeds import ROOT, TASK
from tests.github.hub import Hub
from workflows.contract.models import Action
from workflows.github.facts import publish_id
from workflows.model.states import JobState, TaskState

SHOP, TASK_BRANCH, FACT = "acme/shop", f"service/{TASK}", publish_id(ROOT)
LEGS = {name: f"{ROOT}.{number}" for number, name in enumerate("abc", 1)}
RESULT = {"decision": "implemented", "summary": "It works now.", "findings": ["see @ann in #12"]}
SETTINGS = '[github]\ntoken_env = "DESK_TOKEN"\napi_url = "{url}"\npublish = "{publish}"\n'


@dataclass
class Scene:
    """The actions of a test and its view of the result."""

    service: Service
    repo: Path
    bare: Path
    hub: Hub

    def run(self, job_id: str = ROOT, **fields: Any) -> str:
        """Seed an implement job that left a commit on its branch, and return the commit."""
        name = f"service/{job_id}"
        run_git(self.repo, "checkout", "-q", "-b", name, "main")
        commit = commit_file(self.repo, f"{job_id}.txt", job_id)
        run_git(self.repo, "checkout", "-q", "main")
        self.job(job_id, **{"branch": name, "head_sha": commit} | fields)
        started = {"branch": name, "base_sha": run_git(self.repo, "rev-parse", "main")}
        seeds.payload(self.service, job_id, {"service_result": RESULT}, **started)
        return commit

    def job(self, job_id: str = ROOT, **fields: Any) -> None:
        base = {"action": Action.IMPLEMENT, "state": JobState.SUCCEEDED, "ended_at": 5.0, "repo": SHOP}
        seeds.write(self.service, seeds.job(job_id, **base | fields))

    def task(self, state: TaskState = TaskState.DONE, revision: int = 9, **fields: Any) -> None:
        ended = None if state in {TaskState.OPEN, TaskState.AWAITING_HUMAN} else time.time()
        base: dict[str, Any] = {
            "title": "Make it work",
            "state": state,
            "revision": revision,
            "ended_at": ended,
            "repo": SHOP,
        }
        seeds.write(self.service, seeds.task(**base | fields))

    @property
    def fact(self) -> FactRow:
        fact = facts.get(self.service.store, FACT)
        assert fact
        return fact

    @contextmanager
    def session(self) -> Iterator[GithubSession]:
        """Open a session as another process with the account."""
        token = Credentials(token=self.hub.tokens["acme"])
        yield GithubSession(Service(self.service.home), Client(self.service.store, token, self.hub.address))

    def there(self) -> dict[str, str]:
        """Return the pushed branches."""
        lines = run_git(self.bare, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)").splitlines()
        return dict(line.split() for line in lines)


@contextmanager
def scene(home: Home, folder: Path, publish: str = "never") -> Iterator[Scene]:
    """Open a scene in which nothing has run yet."""
    with Hub() as hub:
        hub.repo(SHOP)
        more = home.config.read_text() if home.config.exists() else ""
        home.config.write_text(more + SETTINGS.format(url=hub.address, publish=publish))
        repo, bare = make_repository(folder / "shop"), folder / "shop.git"
        run_git(repo, "clone", "-q", "--bare", str(repo), str(bare))
        run_git(repo, "remote", "add", "origin", str(bare))
        service = Service(home)
        repo_rows.put(service.store, SHOP, str(repo), service.settings.host, SHOP)
        yield Scene(service, repo, bare, hub)
