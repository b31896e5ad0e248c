"""A service whose texts are all hostile: file names, diffs, output of agents and commands, words of people."""

import json
import time
from pathlib import Path
from typing import Any

from sqlalchemy import insert, update

from activities.store import outbox, run_rows, schema
from activities.store.registry import agent_rows, host_rows, pipeline_rows
from bridge.operations.registry import memory, reviews
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard import planted
from tests.bridge.seeds import ROOT
from tests.sealed import seal
from workflows.contract.models import Action
from workflows.model.event_kinds import EventKind
from workflows.model.rows import QuestionRecord
from workflows.model.states import JobState, TaskState, WaitsFor
from workflows.model.workers import Worker
from workflows.pipeline.definition import StageKind
from workflows.pipeline.plan import RunState, StageOutcome, StageState, Trigger
from workflows.pipeline.read import read
from workflows.pipeline.rows import RunRecord, RunRecords, StageRecord
from workflows.pipeline.syntax import Format

HOSTILE = (
    '<script>window.pwned=1</script>"><img src=x onerror="window.pwned=2">{{ 7*7 }}{% raw %}'
    "'--><svg/onload=window.pwned=3>\x01\x1b[31m\u202egnp\u2066\u2028\u0085\ufeff\u200b\U000e0041\x7f"
    "<form action=//evil.test>"
    "\u05e9\u05dc\u05d5\u05dd " + "long" * 60
)
SEEN = "<script>window.pwned=1</script>"
"""The beginning of the hostile text, as text."""
UNSEEN = "\x01\x1b\u202e\u2066\u2028\ufeff\u200b\U000e0041\x7f"
"""Characters of it that no page may contain unescaped."""
FILE = HOSTILE.partition("<form")[0] + "\n.py"
"""A path that git accepts: in folders, because it has slashes."""
CHANGED = f"limit = 2\n{HOSTILE}\n</code></pre>{SEEN}\n"
ENDED, FAILED, RUNS, BLOCKED = f"{ROOT}.1", f"{ROOT}.2", f"{ROOT}.3", "job-00000000000b"
RAN, GOES_ON, FORGOTTEN = (f"prun-{number:012d}" for number in (1, 2, 3))

ADDRESSES = (  # at least one of every page
    "/ui/",
    *("/ui/new", "/ui/new/repository", "/ui/new/agent", "/ui/new/pipeline"),
    "/ui/trees",
    "/ui/branches",
    "/ui/jobs",
    "/ui/jobs?q=%3Cscript%3Ewindow.pwned%3D4%3C/script%3E",
    f"/ui/trees/{ROOT}",
    f"/ui/trees/{BLOCKED}",
    *(f"/ui/trees/{ROOT}/{view}" for view in ("timeline", "changes", "log")),
    *(f"/ui/jobs/{job}" for job in (ROOT, ENDED, FAILED, RUNS)),
    *(f"/ui/jobs/{job}/diff" for job in (ENDED, FAILED)),
    f"/ui/jobs/{ENDED}/diff?view=split",
    f"/ui/trees/{ROOT}/diff",
    "/ui/pipelines",
    "/ui/pipelines/nightly",
    "/ui/runs",
    f"/ui/runs/{RAN}",
    f"/ui/runs/{RAN}?stage=build&attempt=1",
    f"/ui/runs/{GOES_ON}",
    f"/ui/runs/{FORGOTTEN}",
    "/ui/agents",
    "/ui/doctor",
    "/ui/memory",
    "/ui/reviews",
    "/ui/spend",
    "/ui/settings",
    "/ui/%3Cscript%3Ewindow.pwned%3D5%3C/script%3E",
)


def sow(service: Service, folder: Path) -> None:
    """Seed all of it, with a real repository."""
    _tree(service, folder)
    _waiting(service)
    _pipeline(service, folder)
    _people(service)


def _tree(service: Service, folder: Path) -> None:
    """Seed a leg that changed a file, one that failed, one that runs, and a question."""
    planted.writers(service, folder, {"a": (FILE, CHANGED)})
    asked: dict[str, Any] = {"id": "color", "prompt": HOSTILE, "job_id": ROOT, "choices": (HOSTILE, "blue")}
    words: dict[str, Any] = {"summary": HOSTILE, "reason": HOSTILE, "model": HOSTILE, "phase": HOSTILE, "revision": 9}
    failed = {"state": JobState.FAILED, "action": Action.IMPLEMENT, "branch": HOSTILE, "head_sha": "a" * 40}
    seeds.write(
        service,
        seeds.task(title=HOSTILE, state=TaskState.AWAITING_HUMAN, reason=HOSTILE, revision=9),
        seeds.job(state=JobState.SUCCEEDED, summary=HOSTILE, reason=HOSTILE, revision=9),
        planted.leg(2, HOSTILE, agent=HOSTILE[:190], **failed | words),
        planted.leg(3, "runs", **words | {"state": JobState.RUNNING, "ended_at": None}),
        seeds.round_(questions=(QuestionRecord.model_validate(asked),), expires_at=9e9, reason=HOSTILE),
        seeds.event(1, message=HOSTILE),
        seeds.event(2, FAILED, message=HOSTILE, kind="recorded"),
    )
    lists = ("findings", "changes_made", "tests_run", "needs")
    task = {
        "service_result": {name: [HOSTILE, {HOSTILE: HOSTILE}] for name in lists},
        "result_observation": _observed(),
    }
    diagnostics = {"stderr": HOSTILE, "faults": [HOSTILE]}
    row = {"run_dir": _printed(folder / "ended"), "payload": task, "diagnostics": diagnostics}
    with service.store.begin() as connection:
        connection.execute(update(schema.attempts).where(schema.attempts.c.job_id == ENDED).values(row))
    seal(service.store)
    seeds.payload(service, RUNS, {}, host=service.settings.host, run_dir=_printed(folder / "runs"))
    discarded = f"diff --git a/{SEEN} b/{SEEN}\n--- a/{SEEN}\n+++ b/{SEEN}\n@@ -0,0 +1 @@ {SEEN}\n+{HOSTILE}\n"
    seeds.payload(
        service, ROOT, task, host=service.settings.host, diagnostics=diagnostics | {"discarded_diff": discarded}
    )


def _observed() -> dict[str, Any]:
    claims = [{"index": 0, "grade": "observed", "paths": [{"claimed": HOSTILE, "bound": "exact", "file": HOSTILE}]}]
    paths = {"touched_files": [HOSTILE], "claimed_only": [HOSTILE], "unclaimed_files": [HOSTILE]}
    return {"captured": True, "complete": True, "claims": claims} | paths


def _printed(folder: Path) -> str:
    """Create the folder of a program that printed the hostile text."""
    folder.mkdir(parents=True)
    for stream in ("stdout", "stderr"):
        (folder / f"{stream}.log").write_text(f"first\n{CHANGED}")
    return str(folder)


def _waiting(service: Service) -> None:
    """Seed a conflict in a blocked task, an undeliverable notification, and a host that is gone."""
    clash = {"branch": HOSTILE, "against": ["service/one", SEEN], "files": [FILE, HOSTILE]}
    stuck = {"state": TaskState.BLOCKED, "waits_for": WaitsFor.RETRY, "to_retry": f"{BLOCKED}.2", "ended_at": 9.0}
    done = {"state": JobState.SUCCEEDED, "action": Action.IMPLEMENT, "head_sha": "a" * 40}
    seeds.write(
        service,
        seeds.task(BLOCKED, title=HOSTILE, reason=HOSTILE, next=f"service job retry {HOSTILE}", **stuck),
        seeds.job(BLOCKED, state=JobState.SUCCEEDED, preflight_failed=HOSTILE),
        seeds.job(f"{BLOCKED}.1", delegation_id="one", branch=HOSTILE, **done),
        seeds.job(f"{BLOCKED}.2", state=JobState.BLOCKED, attempt=1, reason=HOSTILE, delegation_id="two"),
        seeds.job(f"{BLOCKED}.3", state=JobState.BLOCKED, attempt=1, reason=HOSTILE, delegation_id="three"),
        seeds.event(7, BLOCKED, message=HOSTILE, kind=EventKind.ROUND_OPENED),
    )
    for leg in (f"{BLOCKED}.2", f"{BLOCKED}.3"):
        seeds.payload(service, leg, {}, diagnostics={"conflict": clash})
    outbox.record_try(service.store, f"{BLOCKED}-e7", "command", HOSTILE)
    host_rows.see(service.store, HOSTILE[:190], slots=1, started_at=1.0)
    host_rows.stop(service.store, HOSTILE[:190], started_at=1.0)
    waits = "job-00000000000c"
    seeds.write(service, seeds.task(waits), seeds.job(waits, state=JobState.QUEUED, queued_at=time.time() - 600))
    with service.store.begin() as connection:
        row = {"root_job_id": waits, "host": HOSTILE[:190], "start": {}, "revision": 0}
        connection.execute(insert(schema.trees), row)


def _pipeline(service: Service, folder: Path) -> None:
    """Seed a definition and its runs: one over, one running, one whose pipeline is forgotten."""
    readable = json.dumps("".join(letter for letter in HOSTILE if letter not in UNSEEN and letter.isprintable()))
    text = (
        f"# {SEEN}\nname: nightly\nrepo: acme/shop\nstages:\n"
        f"  - {{id: build, kind: shell, command: {readable}, env: {{NOTE: {readable}}}}}\n"
        f"  - {{id: look, kind: agent, agent: scout, action: ask, prompt: {readable}, needs: [build]}}\n"
    )
    pipeline_rows.put(service.store, read(text, Format.YAML), text, Format.YAML)
    for run_id, pipeline, state in (
        (RAN, "nightly", RunState.FAILED),
        (GOES_ON, "nightly", RunState.RUNNING),
        (FORGOTTEN, SEEN, RunState.CANCELLED),
    ):
        _run(service, run_id, pipeline, state)
    ended = StageOutcome(state=StageState.FAILED, reason=HOSTILE).model_dump(mode="json")
    printed = {"outcome": ended, "diagnostics": {"output": CHANGED, "stderr": HOSTILE}}
    for attempt in (1, 2):
        seeds.payload(service, f"{RAN}.1", {}, attempt=attempt, **printed)
    here = {"host": service.settings.host, "run_dir": _printed(folder / "stage")}
    seeds.payload(service, f"{GOES_ON}.1", {}, attempt=2, **here)


def _run(service: Service, run_id: str, pipeline: str, state: RunState) -> None:
    over = None if state is RunState.RUNNING else 99.0
    base = {"run_id": run_id, "pipeline": pipeline, "repo": SEEN, "trigger": Trigger.CLI, "started_at": 9.0}
    halted = {"state": state, "finished_at": over, "reason": HOSTILE, "halt_stage": SEEN if over else None}
    common: dict[str, Any] = {"run_id": run_id, "summary": HOSTILE, "reason": HOSTILE, "attempt": 2, "started_at": 9.0}
    build = StageRecord(
        stage_id="build", number=1, kind=StageKind.SHELL, needs=(), state=StageState(state.value), **common
    )
    look = StageRecord(
        stage_id=SEEN, number=2, kind=StageKind.AGENT, needs=(SEEN,), state=StageState.CANCELLED, job_id=ROOT, **common
    )
    records = RunRecords(run=RunRecord.model_validate(base | halted), stages=(build, look))
    run_rows.write(service.store, records, run_rows.RunStart(CHANGED, {"ticket": HOSTILE, SEEN: CHANGED}))


def _people(service: Service) -> None:
    """Seed an agent, memory, and reviews with notes and a verdict."""
    worker = Worker(name="scout", runtime="shell", command=(HOSTILE,), role=HOSTILE)
    agent_rows.add(service.store, worker, ("acme/shop",))
    for key in ("a key", "<b>key</b>"):
        memory.propose(service, memory.Proposal(ROOT, key, HOSTILE[:500].replace("\x01", "").replace("\x1b", "")))
    for verdict in ("", HOSTILE):
        review = {"kind": "review", "head_sha": "abcdef0123", "workflow": SEEN, "repo": None}
        opened = reviews.open_review(service, pull_request=7, **review)  # type: ignore[arg-type]
        reviews.note(service, opened.review_id, CHANGED, SEEN)
        if verdict:
            reviews.close(service, opened.review_id, verdict)
