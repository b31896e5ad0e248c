"""Secrets in every field that agents and people fill, and every place where they could be read (ruling N7)."""

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio.client import Client

from bridge.http.dashboard.pages import PAGES
from tests.e2e.bridge import client
from tests.e2e.script import Script, leg, played, until_paused

KNOWN = "lantern 93 Zebra" + " Quartz"
"""Value of a variable of the worker, without any recognisable form."""

ANSWER = "The deploy password is "


def secret(field: str) -> str:
    """Return a token that identifies its field."""
    drawn = hashlib.sha256(field.encode()).hexdigest()
    return "ghp" + "_" + "".join(digit.upper() if number % 3 else digit for number, digit in enumerate(drawn))[:36]


RESULT = (
    "summary findings finding-name changes_made tests_run needs leg-id leg-phase leg-worktree leg-fingerprint leg-role"
)
RESULT += " leg-artifacts question choice stderr stdout file model"
DRIVING = "leg-prompt artifact_body"
PEOPLE = "ask answer memory-key memory label author note verdict pipeline-command pipeline-env payload"
PEOPLE += " agent-command agent-template audit"
EVERYTHING = {field: secret(field) for field in f"{RESULT} {DRIVING} {PEOPLE}".split()} | {"environment": KNOWN}

PIPELINE = """\
name: leaky
repo: acme/shop
stages:
  - id: build
    kind: shell
    command: 'echo "using {command} and $API_THING" >> {proof}; echo it is {command}'
    env: {{API_THING: "{env}"}}
"""


class Receiver(BaseHTTPRequestHandler):
    seen: list[bytes] = []

    def do_POST(self) -> None:
        self.seen.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def hook() -> Iterator[str]:
    Receiver.seen = []
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


@pytest.fixture
def script(tmp_path: Path, hook: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    monkeypatch.setenv("ACME_DEPLOY_TOKEN", KNOWN)
    monkeypatch.setenv("HOOK_SECRET", "signs-webhooks-77")
    settings = f'[notify]\ncommand = ["sh", "-c", "cat >> {tmp_path}/notified"]\nwebhook_url = "{hook}"\n'
    yield from played(tmp_path, settings + 'webhook_secret_env = "HOOK_SECRET"\n')


def _first(of: dict[str, str]) -> dict[str, Any]:
    return {
        "say": {f"I read {of['stdout']}, it is {of['environment']}": ""},
        "summary": f"found {of['summary']} and {of['environment']}",
        "findings": [f"a key {of['findings']}", {of["finding-name"]: "x", "known": of["environment"]}],
        "changes_made": [{"path": "a.py", "what": of["changes_made"]}],
        "tests_run": [of["tests_run"]],
        "needs": [of["needs"]],
        "artifact_body": {"config": of["artifact_body"]},
        "delegations": [
            leg(of["leg-id"], phase=of["leg-phase"], prompt=f"deploy with {of['leg-prompt']}")
            | {"worktree": of["leg-worktree"], "fingerprint": of["leg-fingerprint"]}
            | {"artifacts": [of["leg-artifacts"]]},
            {
                "id": "thrown", "action": "ask", "prompt": "look", "model": of["model"],
                "ephemeral": {"runtime": "runtime_a", "role": of["leg-role"], "capabilities": ["ask"]},
            },
        ],
    }  # fmt: skip


def _play(script: Script, of: dict[str, str]) -> tuple[str, str]:
    """Run a tree that delegates, asks, is answered and ends, and enter all of people's texts; return root and run."""
    service = script.service
    script.answers(
        none=_first(of),
        normal={
            "human_questions": [
                {"id": "which", "prompt": f"is {of['question']} right?", "choices": [of["choice"], "no"]}
            ],
            "summary": "asks",
        },
        answered={"summary": "done with it", "write": {of["file"]: f"it is {of['file']}\n"}},
    )
    service("memory", "add", f"key {of['memory-key']}", f"remember {of['memory']}", "--repo", "acme/shop")
    command = f"sh -c 'true {of['agent-command']}; cat > {service.tmp}/secretive; exit 1'"
    words = (
        "--runtime",
        "shell",
        "--command",
        command,
        "--repo",
        "acme/shop",
        "--template",
        f"use {of['agent-template']}",
    )
    service("agent", "add", "secretive", *words)
    service("agent", "ask", "secretive", "hello", "--repo", "acme/shop", "--wait", code=1)
    opened = service.json(
        "job", "open", "--pr", "7", "--head-sha", "a" * 40, "--workflow", f"by {of['label']}", "--repo", "acme/shop"
    )
    review = opened["review_id"]
    service("job", "note", review, f"I saw {of['note']}", "--author", f"me {of['author']}")
    service("job", "close", review, "--verdict", f"no: {of['verdict']}")
    file = service.tmp / "leaky.yaml"
    file.write_text(
        PIPELINE.format(proof=service.tmp / "proof", command=of["pipeline-command"], env=of["pipeline-env"])
    )
    service("pipeline", "add", str(file))
    run = service.json("pipeline", "run", "leaky", "--payload", f"thing={of['payload']}")["run_id"]
    job = script.ask(f"deploy it with {of['ask']}")
    until_paused(script, job)
    service("resume", job, "answer", f"which: {ANSWER}{of['answer']}", "--other")
    script.until_over(job)
    service.wait_for(lambda: service.json("pipeline", "show", run)["state"] in ("succeeded", "failed"))
    with client(service) as http:
        http.get(f"/v1/jobs/{of['audit']}")
        http.get(f"/nowhere/{of['audit']}")
    return job, run


def _read_by_commands(script: Script, job: str, run: str) -> Iterator[tuple[str, str]]:
    jobs = [row["job_id"] for row in script.tree(job)["jobs"]]
    lines = f"""
        job list, job list --json, job tree {job}, job tree {job} --json, job events {job}, job branches {job},
        job gate {job}, job reviews, attention, memory list, memory show mem-1, agent list, agent show secretive,
        agent show secretive --json, pipeline list, pipeline show leaky, pipeline show {run}, pipeline runs,
        pipeline show {run} --stage build, pipeline show {run} --definition, spend, repo list, config show, runtime list
    """.replace("\n", " ").split(",")
    lines += [f"job {verb} {job_id}{more}" for verb in ("show", "diff") for job_id in jobs for more in ("", " --json")]
    for line in lines:
        done = script.service.run(*line.split())
        assert done.returncode != 2, f"{line}: {done.stderr}"
        yield f"service {line}", done.stdout + done.stderr


def _read_over_http(script: Script, job: str, run: str) -> Iterator[tuple[str, str]]:
    jobs = [row["job_id"] for row in script.tree(job)["jobs"]]
    with client(script.service) as http:
        paths = [
            "/v1/jobs",
            f"/v1/jobs/{job}/tree",
            f"/v1/jobs/{job}/gate",
            "/v1/runs",
            f"/v1/runs/{run}",
            "/v1/reviews",
            "/readyz",
        ]
        for path in paths + [f"/v1/jobs/{job_id}" for job_id in jobs]:
            got = http.get(path)
            assert got.status_code == 200, path
            yield f"GET {path}", got.text
        yield "recall", http.post("/v1/memory/recall", json={"query": "remember", "repo": "acme/shop"}).text
    link = script.service("dashboard", "--print").stdout.strip()
    with httpx.Client(follow_redirects=True, timeout=60) as browser:
        yield "the dashboard", browser.get(link).text
        base = link.split("/ui/")[0]
        of_jobs = [page.path.format(job_id=job_id) for job_id in jobs for page in PAGES if "{job_id}" in page.path]
        rest = [page.path.format(root=job, name="leaky", run_id=run) for page in PAGES if "{job_id}" not in page.path]
        for page in of_jobs + rest:
            shown = browser.get(f"{base}/ui{page}")
            assert shown.status_code == 200, page
            yield f"/ui{page}", shown.text


def _rows(home: Path) -> Iterator[tuple[str, str]]:
    with closing(sqlite3.connect(home / "store.db")) as store:
        for (table,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in store.execute(f"SELECT * FROM {table}"):
                yield f"a row of {table}", repr(row)


def _files(home: Path, *folders: str) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((home / folder).rglob("*")) if (home / folder).is_dir() else [home / folder]:
            if path.is_file():
                yield f"the file {path.relative_to(home)}", path.read_bytes().decode("latin-1")


async def _histories(address: str) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    connected = await Client.connect(address, namespace="service")
    async for workflow in connected.list_workflows():
        handle = connected.get_workflow_handle(workflow.id, run_id=workflow.run_id)
        history = await handle.fetch_history()
        events = (event.SerializeToString().decode("latin-1") for event in history.events)
        texts += [(f"the history of {workflow.id}", text) for text in events]
    return texts


@pytest.mark.long
@pytest.mark.ruling("N7", "A12")
def test_no_secret_of_anybody_is_read_anywhere(script: Script) -> None:
    job, run = _play(script, EVERYTHING)
    home = script.service.home
    address = script.service.json("daemon", "status")["state"]["temporal_address"]
    places = [
        *_rows(home), *_files(home, "artifacts", "logs", "notifications.jsonl", "temporal.db", "temporal.db-wal"),
        *asyncio.run(_histories(address)), *_read_by_commands(script, job, run), *_read_over_http(script, job, run),
        *(("a webhook", body.decode()) for body in Receiver.seen),
        ("the command", (home.parent / "notified").read_text()),
    ]  # fmt: skip
    leaks = sorted(
        {f"{field}: {place}" for place, text in places for field, value in EVERYTHING.items() if value[4:] in text}
    )
    assert leaks == []
    assert {"a webhook", "the command"} <= {place for place, _ in places}
    assert any("redacted" in text for place, text in places if place.startswith("the history of"))
    _who_got_what(script, job)


def _who_got_what(script: Script, job: str) -> None:
    """Check that those who work with a secret get it as it was written, and no others do."""
    prompts = {path.name: path.read_text() for path in (script.plans / "prompts").iterdir()}
    got = {name: {field for field, value in EVERYTHING.items() if value in text} for name, text in prompts.items()}
    assert "ask" in got[job]
    of_leg = next(row["job_id"] for row in script.tree(job)["jobs"] if row["delegation_id"] not in (None, "thrown"))
    assert {"leg-prompt", "artifact_body"} <= got[of_leg]
    assert any("answer" in fields for fields in got.values())
    expected = {"ask", "leg-prompt", "artifact_body", "answer"}
    assert set().union(*got.values()) <= expected
    assert EVERYTHING["agent-template"] in (script.service.tmp / "secretive").read_text()
    assert f"using {EVERYTHING['pipeline-command']} and {EVERYTHING['pipeline-env']}" in script.service.proof
    kept = script.service.home / "kept-secrets"
    assert kept.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept.iterdir())
