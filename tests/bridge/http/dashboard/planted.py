"""Trees as a worker would have left them: rows, results, and branches in a real repository."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from activities.store import schema
from activities.store.registry import repo_rows
from bridge.operations.service import Service
from tests.activities.git.conftest import commit_file, make_repository, run_git
from tests.bridge import seeds
from workflows.contract.models import Action
from workflows.model.rounds import RoundEnd
from workflows.model.rows import JobRecord, QuestionRecord
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState, WaitsFor

ROOT = seeds.ROOT


def leg(number: int, name: str, **fields: Any) -> JobRecord:
    """Return a leg of the root, succeeded by default."""
    base: dict[str, Any] = {"delegation_id": name, "state": JobState.SUCCEEDED, "revision": number}
    times = {"queued_at": time.time() - 60, "started_at": time.time() - 50, "ended_at": time.time() - 10}
    return seeds.job(f"{ROOT}.{number}", **(base | times | fields))


def result(service: Service, job_id: str, content: dict[str, Any], **fields: Any) -> None:
    """Write the result of a job's last attempt, and other fields of its row."""
    seeds.payload(service, job_id, {"service_result": content}, **fields)


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
    events = [seeds.event(each, message=words * 2) for each in range(1, 300)]
    seeds.write(service, seeds.task(title="The largest tree there is", opened_at=time.time() - 600), *jobs, *events)


def writers(service: Service, where: Path, changes: dict[str, tuple[str, str]], **task: Any) -> Path:
    """Seed legs `a`, `b`, … that each wrote a file on a branch; return the checkout."""
    repo = make_repository(where / "shop", **{"limiter.py": "limit = 1\n"})
    repo_rows.put(service.store, "acme/shop", str(repo), service.settings.host)
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
    seeds.begun(service, base)
    return repo


def clashing(service: Service, folder: Path) -> Path:
    """Seed a task blocked by two conflicting legs; return the repository."""
    changes = {"a": ("limiter.py", "limit = 2\n"), "b": ("limiter.py", "limit = 3\n")}
    waits = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "to_retry": f"{ROOT}.3"}
    repo = writers(service, folder, changes, **waits)
    seeds.write(service, leg(3, "c", state=JobState.BLOCKED, attempt=1))
    clash = {"branch": f"service/{ROOT}.2", "against": [f"service/{ROOT}.1"], "files": ["limiter.py"]}
    seeds.payload(service, f"{ROOT}.3", {}, diagnostics={"conflict": clash})
    return repo


@dataclass
class _Played:
    """The rows of a tree whose course is made up, moment by moment."""

    root: str
    rows: list[Any] = field(default_factory=list)
    number: int = 0

    def event(self, job_id: str, kind: str, at: float, **data: Any) -> None:
        self.number += 1
        row = {"event_id": f"{job_id}-e{self.number}", "at": at, "kind": kind, "data": data}
        self.rows.append(seeds.event(self.number, job_id, **row))

    def job(self, number: int, queued: float, begun: float, ended: float | None, **fields: Any) -> JobRecord:
        """Add a job with its events. A second attempt takes the second half of the time of its first one."""
        job_id, attempt = f"{self.root}.{number}" if number else self.root, fields.get("attempt", 1)
        middle = begun + ((ended or begun) - begun) / 2
        if attempt == 2:
            self.event(job_id, "job_queued", queued, attempt=1)
            self.event(job_id, "job_begun", begun, attempt=1)
            self.event(job_id, "job_ended", middle - (middle - begun) / 4, attempt=1, state="failed")
            self.event(job_id, "job_queued", middle - (middle - begun) / 4, attempt=2)
            begun = middle
        self.event(job_id, "job_queued", queued, attempt=attempt) if attempt == 1 else None
        self.event(job_id, "job_begun", begun, attempt=attempt)
        state = fields.pop("state", JobState.SUCCEEDED if ended else JobState.RUNNING)
        if ended:
            self.event(job_id, "job_ended", ended, attempt=attempt, state=state)
        spent = {"usage": Usage(input_tokens=90_000 + number, output_tokens=5_000), "cost_usd": 0.4}
        times = {"queued_at": queued, "started_at": begun, "ended_at": ended, "state": state}
        made = seeds.job(job_id, **(spent | times | fields))
        self.rows.append(made)
        return made


def played(service: Service, jobs: int, seconds: float, *, live: bool = False, root: str = ROOT) -> None:
    """Seed a tree of so many jobs that took so many seconds: with legs that depend on others, wait for a place, fail
    and are tried again, and, from two batches on, a question that took most of the time.
    """
    batches = max(1, -(-(jobs - 1) // 13)) if jobs > 1 else 0
    asks = batches > 1
    unit = seconds / (batches * 12 + 2) / (4 if asks else 1)
    course, at, coordinator, number = _Played(root), time.time() - seconds, root, 0
    opened = at
    words = "The limiter counts requests by key and refuses the eleventh in a minute; two tests cover it. "
    course.job(0, at, at + unit / 9, at + unit, summary="Split the work by module.", action=Action.ASK, agent="lead")
    at += unit
    for batch in range(1, batches + 1):
        last, legs, deps = batch == batches, min(12, jobs - number - 2), dict[str, list[str]]()
        ends = [at]
        for place in range(max(1, legs)):
            number += 1
            name = ("limiter", "store", "docs", "metrics", "config", "review")[place % 6] + f"-{number}"
            follows = place % 3 == 2
            deps[name] = [list(deps)[-1]] if follows else []
            begun = ends[-1] + unit / 20 if follows else at + unit * (place // 6) + unit / 9
            ended: float | None = begun + unit * (1 + (number * 7) % 5)
            fields: dict[str, Any] = {"summary": words, "delegation_id": name, "parent_job_id": coordinator}
            if place == 4:
                fields |= {"attempt": 2}
            if place == 3 and last:
                fields |= {"state": JobState.FAILED, "reason": "the tests are red: 3 failed"}
            if live and last and place > 5:
                ended, fields["summary"] = None, ""
            course.job(number, at, begun, ended, **fields)
            ends.append(ended or begun)
        hands_out(service, coordinator, deps)
        at = max(ends) + unit / 9
        if asks and batch == 1:
            store = QuestionRecord(
                id="store", prompt="Which store should the limiter use?", job_id=root, answer="redis"
            )
            closed = at + seconds * 0.7
            over: dict[str, Any] = {
                "end": RoundEnd.ANSWERED,
                "closed_at": closed,
                "closed": "answered by ann, in the terminal",
            }
            course.rows.append(seeds.round_(root, job_id=coordinator, questions=(store,), opened_at=at, **over))
            at = closed
        if live and last:
            break
        number += 1
        fields = {"delegation_id": None, "parent_job_id": coordinator, "agent": "lead", "summary": words}
        fields |= {"continuation": "finalize" if last else "normal", "decision": "approved" if last else None}
        coordinator = course.job(number, at, at + unit / 9, at + unit, **fields).job_id
        at += unit
    state = {"state": TaskState.OPEN} if live else {"state": TaskState.DONE, "ended_at": at}
    seeds.write(service, seeds.task(root, title="Limit requests by key", opened_at=opened, **state), *course.rows)
