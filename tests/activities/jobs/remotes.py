"""Hosts that share nothing but the store and a hub, and agents of theirs, for jobs of a repository with a remote."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.activities.jobs.conftest import Stage, git
from workflows.model.jobs import JobOutcome, Work

ROOT = "job-0123456789ab"


def writes(name: str, *, counted: Path | None = None) -> str:
    result = {"decision": "implemented", "summary": name}
    count = f"open({str(counted)!r}, 'a').write('x')\n" if counted else ""
    return f"{count}open({name!r}, 'w').write('x')\nprint({json.dumps(json.dumps({'service_result': result}))})"


def lists(into: Path) -> str:
    result = {"decision": "approved", "summary": "looked"}
    look = f"import os; open({str(into)!r}, 'w').write(' '.join(sorted(os.listdir('.'))))\n"
    return f"{look}print({json.dumps(json.dumps({'service_result': result}))})"


def work(done: JobOutcome) -> Work:
    return Work(leg="one", job_id=done.job_id, branch=done.branch or "", head=done.head_sha or "")


@dataclass(frozen=True)
class Hosts:
    forge: Path
    of: Callable[[str], Stage]

    def refs(self) -> dict[str, str]:
        rows = git(self.forge, "for-each-ref", "--format=%(refname) %(objectname)", "refs/service").splitlines()
        return {name: commit for name, _, commit in (row.partition(" ") for row in rows)}
