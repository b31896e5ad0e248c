"""Trees as a worker would have left them: rows, results, and branches in a real repository."""

import time
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from activities.store import schema
from activities.store.registry import repos
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.bridge import seeds
from workflows.contract.models import Action
from workflows.model.rows import JobRecord
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState

ROOT = seeds.ROOT


def leg(number: int, name: str, **fields: Any) -> JobRecord:
    """Return a leg of the root, succeeded by default."""
    base: dict[str, Any] = {"delegation_id": name, "state": JobState.SUCCEEDED, "revision": number}
    times = {"queued_at": time.time() - 60, "started_at": time.time() - 50, "ended_at": time.time() - 10}
    return seeds.job(f"{ROOT}.{number}", **(base | times | fields))


def result(service: Service, job_id: str, said: dict[str, Any], **fields: Any) -> None:
    """Write the result of a job's last attempt, and other fields of its row."""
    seeds.payload(service, job_id, {"service_result": said}, **fields)


def hands_out(service: Service, job_id: str, deps: dict[str, list[str]]) -> None:
    """Write a result with these delegations."""
    result(service, job_id, {"delegations": [{"id": name, "deps": needs} for name, needs in deps.items()]})


def largest(service: Service) -> None:
    """Seed a tree of 64 jobs in five rounds: each batch is a row of pairs, and a continuation delegates the next."""
    words = "A sentence of a summary about what was found out and what was changed because of that. "
    jobs = [seeds.job(state=JobState.SUCCEEDED, summary=words * 3)]
    coordinator, number = ROOT, 1
    while len(jobs) < 64:
        deps: dict[str, list[str]] = {}
        for place in range(min(12, 63 - len(jobs))):
            name = f"leg-{number}-{place}-of-some-length"
            deps[name] = [f"leg-{number - 1}-{place - 1}-of-some-length"] if place % 2 else []
            states = (JobState.SUCCEEDED, JobState.FAILED, JobState.RUNNING)
            spent = {"usage": Usage(input_tokens=1234567, output_tokens=34567), "cost_usd": 1.25, "summary": words * 3}
            more = spent | {"state": states[number % 3], "model": "a-model-with-a-name", "effort": "high"}
            jobs.append(leg(number, name, parent_job_id=coordinator, **more))
            number += 1
        hands_out(service, coordinator, deps)
        after = leg(number, "x", delegation_id=None, parent_job_id=coordinator, continuation="normal")
        jobs.append(after)
        coordinator, number = after.job_id, number + 1
    told = [seeds.event(each, message=words * 2) for each in range(1, 300)]
    seeds.write(service, seeds.task(title="The largest tree there is", opened_at=time.time() - 600), *jobs, *told)


def writers(service: Service, where: Path, changes: dict[str, tuple[str, str]], **task: Any) -> Path:
    """Seed legs `a`, `b`, … that each wrote a file on a branch; return the checkout."""
    repo = make_repository(where / "shop", **{"limiter.py": "limit = 1\n"})
    repos.put(service.store, "acme/shop", str(repo), service.settings.host)
    base, jobs = run_git(repo, "rev-parse", "HEAD"), [seeds.job(state=JobState.SUCCEEDED)]
    for number, (name, (file, text)) in enumerate(changes.items(), 1):
        branch = f"service/{ROOT}.{number}"
        run_git(repo, "checkout", "-q", "-b", branch, base)
        head = commit_file(repo, file, text)
        jobs.append(leg(number, name, action=Action.IMPLEMENT, branch=branch, head_sha=head))
        with service.store.begin() as connection:
            row = {"job_id": f"{ROOT}.{number}", "attempt": 1, "host": service.settings.host, "run_dir": "/nowhere"}
            connection.execute(insert(schema.attempts), row | {"branch": branch, "base_sha": base, "started_at": 1.0})
    run_git(repo, "checkout", "-q", "main")
    over: dict[str, Any] = {"state": TaskState.DONE, "ended_at": time.time()}
    seeds.write(service, seeds.task(**(over | task)), *jobs)
    return repo
