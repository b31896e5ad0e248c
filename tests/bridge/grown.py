"""A done tree of three generations, in a real repository.

Leg `code` and leg `docs` conflict; a check rejected `code`, and leg `fix`, which builds on it, repaired it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import update

from activities.git.merges.task_line import LinePart, draw
from activities.store import job_rows, schema
from activities.store.registry import repo_rows
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_on, make_repository, run_git
from tests.bridge import seeds
from tests.bridge.reviewed import ended
from tests.bridge.seeds import ROOT
from tests.sealed import seal
from workflows.contract.models import Action
from workflows.model.states import Continuation, JobState, TaskState

CODE, DOCS, CHECK, REPLAN, FIX, RECHECK, LAST = (f"{ROOT}.{number}" for number in range(1, 8))
TASK_BRANCH = f"service/{seeds.TASK}"
FILE = "app.txt"


@dataclass
class Grown:
    """A tree's repository and its commits."""

    service: Service
    repo: Path
    base: str
    heads: dict[str, str]
    line: str = ""

    def wrote(self, job_id: str, leg: str, text: str, parent: str = ROOT, name: str = FILE, **fields: Any) -> None:
        """Add an implement leg that begins from the line and leaves one commit."""
        branch, start = f"service/{job_id}-{leg}", self.line or self.base
        commit_on(self.repo, branch, start, name, text)
        self.left(job_id, leg, branch, start, parent, **fields)

    def left(self, job_id: str, leg: str, branch: str, start: str, parent: str = ROOT, **fields: Any) -> None:
        """Add an implement leg that left what is on the branch."""
        self.heads[leg] = head = run_git(self.repo, "rev-parse", branch)
        row = {"parent_job_id": parent, "delegation_id": leg, "action": Action.IMPLEMENT, "decision": "implemented"}
        left = {"branch": branch, "head_sha": head, "summary": f"write {leg}", "state": JobState.SUCCEEDED}
        seeds.write(self.service, seeds.job(job_id, **(row | left | fields)))
        outcome = {"branch": branch, "outcome": ended(job_id, head), "ended_at": 2.0}
        seeds.payload(self.service, job_id, {}, base_sha=start, given=[], **outcome)

    def ends(self, job_id: str, head: str, **diagnostics: Any) -> None:
        """Replace the head that a job's attempt left, and the diagnostics."""
        values = {"outcome": ended(job_id, head), "diagnostics": diagnostics}
        with self.service.store.begin() as connection:
            connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == job_id).values(**values))
        seal(self.service.store)

    def merged_in(self, job_id: str, leg: str, commit: str, **diagnostics: Any) -> None:
        """Let a leg end with a commit merged into its branch by its agent."""
        branch = f"service/{job_id}-{leg}"
        run_git(self.repo, "checkout", "-q", branch)
        run_git(self.repo, "merge", "-q", "-X", "theirs", "--no-edit", commit)
        self.heads[leg] = head = run_git(self.repo, "rev-parse", branch)
        run_git(self.repo, "checkout", "-q", "main")
        row = job_rows.get(self.service.store, job_id)
        assert row is not None
        seeds.write(self.service, row.model_copy(update={"head_sha": head, "revision": 2}))
        self.ends(job_id, head, joined=[commit], **diagnostics)

    def looked(self, job_id: str, decision: str, at: str, parent: str = ROOT, **fields: Any) -> None:
        """Add a review leg with its decision on another leg's work."""
        row = {"parent_job_id": parent, "delegation_id": "check", "action": Action.REVIEW, "state": JobState.SUCCEEDED}
        seeds.write(self.service, seeds.job(job_id, decision=decision, **(row | fields)))
        if "revision" not in fields:
            seeds.payload(self.service, job_id, {}, base_sha=self.line or self.base, given=[self.heads[at]])

    def went_on(self, job_id: str, parent: str, legs: tuple[str, ...], continuation: Continuation) -> None:
        """Add a continuation of the coordinator that begins from the line of these legs."""
        parts = [LinePart(leg, leg, leg, self.heads[leg]) for leg in legs]
        self.line = draw(self.repo, self.base, self.base, parts).commit
        row = {"parent_job_id": parent, "delegation_id": None, "continuation": continuation}
        seeds.write(self.service, seeds.job(job_id, decision="approved", state=JobState.SUCCEEDED, **row))
        seeds.payload(self.service, job_id, {}, base_sha=self.line, given=[])

    def files(self, revision: str = TASK_BRANCH) -> dict[str, str]:
        """Return the content of each file in a commit."""
        names = run_git(self.repo, "ls-tree", "--name-only", revision).splitlines()
        return {name: run_git(self.repo, "show", f"{revision}:{name}") for name in names}


def started(service: Service, where: Path, **task: Any) -> Grown:
    """Return a done tree of which only the root ran."""
    repo = make_repository(where / "shop")
    repo_rows.put(service.store, "acme/shop", str(repo), service.settings.host, "acme/shop")
    made = Grown(service, repo, run_git(repo, "rev-parse", "HEAD"), {})
    over: dict[str, Any] = {
        "state": TaskState.DONE,
        "reason": "the lead approves the result",
        "ended_at": 2.0,
        "title": "the app",
    }
    root = seeds.job(state=JobState.SUCCEEDED, decision="approved")
    seeds.write(service, seeds.task(**(over | task)), root)
    seeds.payload(service, ROOT, {}, base_sha=made.base, given=[])
    seeds.begun(service, made.base)
    return made


def grown(service: Service, where: Path, after: Continuation = Continuation.REPLAN) -> Grown:
    """Build three generations; in the second one, only leg `docs` of the first conflicts."""
    made = started(service, where)
    made.wrote(CODE, "code", "code\n")
    made.wrote(DOCS, "docs", "docs\n")
    made.looked(CHECK, "changes_requested", "code")
    made.went_on(REPLAN, ROOT, ("code", "docs"), after)
    made.wrote(FIX, "fix", "code, mended\n", parent=REPLAN)
    made.looked(RECHECK, "approved", "fix", parent=REPLAN)
    made.went_on(LAST, REPLAN, ("code", "docs", "fix"), Continuation.NORMAL)
    return made
