"""A done tree in a real repository: two legs wrote, one reviewed both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import update

from activities.git.merges.task_branch import Contribution, merge_all
from activities.store import schema
from activities.store.registry import repo_rows
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.bridge import seeds
from tests.bridge.seeds import ROOT
from tests.sealed import seal
from workflows.contract.models import Action
from workflows.model.jobs import JobOutcome
from workflows.model.rows import JobRecord
from workflows.model.states import JobState, TaskState

A, B, V = f"{ROOT}.1", f"{ROOT}.2", f"{ROOT}.3"
TASK_BRANCH = f"service/{seeds.TASK}"
DELEGATIONS = [
    {"id": "a", "agent": "dev", "action": "implement", "prompt": "a"},
    {"id": "b", "agent": "dev", "action": "implement", "prompt": "b"},
    {"id": "v", "agent": "dev", "action": "review", "prompt": "v", "deps": ["a", "b"]},
]


@dataclass(frozen=True)
class Reviewed:
    """The repository of the tree, and its commits."""

    service: Service
    repo: Path
    base: str
    heads: dict[str, str]

    def leg(self, job_id: str, name: str, **fields: Any) -> JobRecord:
        base: dict[str, Any] = {"delegation_id": name, "state": JobState.SUCCEEDED, "decision": "implemented"}
        return seeds.job(job_id, **(base | fields))

    def write(self, number: int = 1, **fields: Any) -> None:
        """Write the legs' rows, each with fields of its own."""
        for job_id, name in ((A, "a"), (B, "b")):
            wrote = {"action": Action.IMPLEMENT, "branch": f"service/{job_id}-{name}", "head_sha": self.heads[name]}
            row = self.leg(job_id, name, **(wrote | {"revision": number} | fields.get(name, {})))
            seeds.write(self.service, row)
        reads = {"action": Action.REVIEW, "decision": "approved", "revision": number}
        seeds.write(self.service, self.leg(V, "v", **(reads | fields.get("v", {}))))

    def ran(self, job_id: str, name: str, head: str, given: list[str], joined: list[str] | None = None) -> None:
        """Replace the given commits and the head of a leg's run."""
        with self.service.store.begin() as connection:
            diagnostics = {"joined": joined} if joined else {}
            values = {"given": given, "outcome": ended(job_id, head), "diagnostics": diagnostics}
            connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == job_id).values(**values))
        seal(self.service.store)
        self.heads[name] = head

    def merge(self, *names: str) -> str:
        """Merge legs as the service does."""
        legs = [Contribution(name, name, f"service/{name}", self.heads[name]) for name in names]
        return merge_all(self.repo, TASK_BRANCH, self.base, legs).head

    def commit(self, branch: str, file: str = "later.txt") -> str:
        """Commit to a branch, as a person would."""
        run_git(self.repo, "checkout", "-q", branch)
        head = commit_file(self.repo, file, "later\n")
        run_git(self.repo, "checkout", "-q", "main")
        return head


def ended(job_id: str, head: str) -> dict[str, Any]:
    return JobOutcome(job_id=job_id, state=JobState.SUCCEEDED, head_sha=head).model_dump(mode="json")


def reviewed(service: Service, where: Path, **fields: Any) -> Reviewed:
    """Seed the tree, with nothing merged; fields of the task, or of a leg, by name."""
    repo = make_repository(where / "shop")
    repo_rows.put(service.store, "acme/shop", str(repo), service.settings.host, "acme/shop")
    base, heads = run_git(repo, "rev-parse", "HEAD"), dict[str, str]()
    for job_id, name in ((A, "a"), (B, "b")):
        run_git(repo, "checkout", "-q", "-b", f"service/{job_id}-{name}", base)
        heads[name] = commit_file(repo, f"{name}.txt", name)
    run_git(repo, "checkout", "-q", "main")
    made = Reviewed(service, repo, base, heads)
    over: dict[str, Any] = {"state": TaskState.DONE, "reason": "the lead approves the result", "ended_at": 2.0}
    root = seeds.job(state=JobState.SUCCEEDED, decision="approved")
    seeds.write(service, seeds.task(**(over | fields.pop("task", {}))), root)
    made.write(**fields)
    seeds.payload(service, ROOT, {"service_result": {"delegations": DELEGATIONS}})
    for job_id, name in ((A, "a"), (B, "b")):
        left = {"branch": f"service/{job_id}-{name}", "outcome": ended(job_id, heads[name]), "ended_at": 2.0}
        seeds.payload(service, job_id, {}, base_sha=base, given=[], **left)
    seeds.payload(service, V, {}, base_sha=base, given=[heads["a"], heads["b"]])
    return made
