"""The bridge under load and attack: fifty starts, kills at any moment, no Temporal, a foreign page."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.bridge import client, serving, token
from tests.e2e.conftest import Installed

LONG = bool(os.environ.get("BRIDGE_LONG"))
STARTS, KILLS = (100, 60) if LONG else (3, 6)
PIPELINE = "name: {name}\nrepo: acme/shop\nstages:\n  - {{id: only, kind: shell, command: 'true'}}\n"
pytestmark = pytest.mark.long
ASK = "/v1/agents/painter/ask"
BODY = {"message": "Paint it", "repo": "acme/shop"}
PAINTS = 'echo \'{"service_result": {"decision": "approved", "summary": "ok"}}\''


def settings(installed: Installed, more: str) -> None:
    with (installed.home / "config.toml").open("a") as config:
        config.write(f"[bridge]\nrequests_per_minute = 1000000\n{more}")


def pipelines(installed: Installed, count: int) -> list[str]:
    """Register pipelines under names of their own."""
    names = [f"p{number}" for number in range(count)]
    for name in names:
        (installed.tmp / "pipeline.yaml").write_text(PIPELINE.format(name=name))
        installed("pipeline", "add", "pipeline.yaml")
    return names


@pytest.mark.ruling("J4")
async def test_of_fifty_starts_at_once_over_real_connections_one_is_taken_every_time(installed: Installed) -> None:
    """Runs 100 rounds instead of 3, and 60 kills below instead of 6, with BRIDGE_LONG."""
    settings(installed, "")
    installed("daemon", "start")
    names = await asyncio.to_thread(pipelines, installed, STARTS)
    limits = httpx.Limits(max_connections=50)
    url = installed.json("daemon", "status")["state"]["bridge_url"]
    os.kill(installed.pid("worker"), signal.SIGSTOP)  # so that nothing ends meanwhile
    try:
        async with httpx.AsyncClient(base_url=url, headers=token(installed), timeout=60, limits=limits) as http:
            for name in names:
                answers = await asyncio.gather(*(http.post(f"/v1/pipelines/{name}/run") for _ in range(50)))
                assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 49}, name
                (run_id,) = (answer.json()["run_id"] for answer in answers if answer.status_code == 200)
                runs = (await http.get(f"/v1/runs?pipeline={name}")).json()["runs"]
                assert [run["id"] for run in runs] == [run_id]
    finally:
        os.kill(installed.pid("worker"), signal.SIGCONT)


@pytest.mark.ruling("J9", "J10")
def test_killed_at_any_moment_a_call_has_happened_whole_or_not_at_all(installed: Installed) -> None:
    installed.agent("painter", PAINTS)
    settings(installed, "enabled = false\n")
    installed("daemon", "start")
    names = pipelines(installed, KILLS)
    calls = [(f"/v1/pipelines/{name}/run", None) if n % 2 else (ASK, BODY) for n, name in enumerate(names)]
    answers: list[set[str]] = [set() for _ in calls]
    dice = random.Random(7)
    for number, (path, body) in enumerate(calls):
        with serving(installed) as (process, http):
            http.get("/v1/jobs")
            caller = threading.Thread(target=_post, args=(http, path, body, f"key-{number}", answers[number]))
            caller.start()
            time.sleep(dice.uniform(0, 0.12))
            process.kill()
            caller.join(30)
    with serving(installed) as (_, http):
        for number, (path, body) in enumerate(calls):
            _post(http, path, body, f"key-{number}", answers[number])
            assert len(answers[number]) == 1, (path, answers[number])
        made = {made_id for ids in answers for made_id in ids}
        started = {row["job_id"] for row in http.get("/v1/jobs?roots=true&limit=200").json()["jobs"]}
        runs = {row["id"] for row in http.get("/v1/runs?limit=200").json()["runs"]}
        assert started | runs == made
        for job_id in started:
            assert installed.wait_until_ended(job_id)["state"] == "succeeded"
            tree = http.get(f"/v1/jobs/{job_id}/tree").json()
            assert tree["task"]["root_job_id"] == job_id
        for job_id in runs:
            installed.wait_for(lambda run=job_id: http.get(f"/v1/runs/{run}").json()["state"] == "succeeded")  # type: ignore[misc]
            assert [stage["state"] for stage in http.get(f"/v1/runs/{job_id}").json()["stages"]] == ["succeeded"]


def _post(http: httpx.Client, path: str, body: dict[str, Any] | None, key: str, ids: set[str]) -> None:
    try:
        answer = http.post(path, json=body, headers={"Idempotency-Key": key})
    except httpx.TransportError:
        return
    assert answer.status_code == 200, answer.text
    ids.update(answer.json().values())


@pytest.mark.ruling("J1", "J9")
def test_without_temporal_reads_answer_starts_are_refused_and_nothing_is_half_there(installed: Installed) -> None:
    installed.agent("painter", PAINTS)
    settings(installed, "")
    installed("daemon", "start")
    (name,) = pipelines(installed, 1)
    key = {"Idempotency-Key": "k"}
    with client(installed) as http:
        before = http.post(ASK, json=BODY).json()["job_id"]
        bridge, server = installed.pid("bridge"), installed.pid("server")
        os.kill(server, signal.SIGSTOP)  # it accepts connections but does not answer, which is worse than a missing one
        try:
            assert http.get(f"/v1/jobs/{before}").status_code == 200
            for path, body in ((ASK, BODY), (f"/v1/pipelines/{name}/run", None)):
                refused = http.post(path, json=body, headers=key)
                assert (refused.status_code, refused.json()["code"]) == (503, "unreachable"), refused.text
                key = {"Idempotency-Key": "run"}
            assert [job["job_id"] for job in http.get("/v1/jobs").json()["jobs"]] == [before]
            assert http.get("/v1/runs").json()["runs"] == []
        finally:
            os.kill(server, signal.SIGKILL)
        installed.wait_for(lambda: installed.pid("server") not in (0, server))
        installed.wait_for(lambda: http.get("/readyz").status_code == 200)
        after = http.post(ASK, json=BODY, headers={"Idempotency-Key": "k"})
        assert after.status_code == 200, after.text
        run = http.post(f"/v1/pipelines/{name}/run", headers={"Idempotency-Key": "run"})
        assert run.status_code == 200, run.text
        assert installed.pid("bridge") == bridge, "it works again without a restart"
        assert {job["job_id"] for job in http.get("/v1/jobs").json()["jobs"]} >= {before, after.json()["job_id"]}
        assert installed.wait_until_ended(after.json()["job_id"])["state"] == "succeeded"


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGE = """<script>
const told = []
const tries = ["http://127.0.0.1:PORT/v1/agents/painter/ask", "http://rebound.test:PORT/v1/agents/painter/ask"]
Promise.all(tries.map(url => fetch(url, {method: "POST", mode: "no-cors", body: "{}"})
  .then(answer => told.push(answer.type), () => told.push("failed"))
  .then(() => fetch(url.replace("agents/painter/ask", "jobs"), {headers: {Authorization: "Bearer TOKEN"}}))
  .then(async answer => told.push("READ " + await answer.text()), () => told.push("kept from"))
)).then(() => document.title = told.join(", "))
</script>"""


@pytest.mark.ruling("J12")
@pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER HERE: chromium is not installed, J12 is not proven in one")
def test_a_page_from_elsewhere_reaches_nothing_through_a_browser(installed: Installed, tmp_path: Path) -> None:
    """Tries our address and a name that resolves to it, with a known token."""
    settings(installed, "enabled = false\n")
    with serving(installed) as (_, http):
        page = PAGE.replace("PORT", str(http.base_url.port)).replace(
            "TOKEN", (installed.home / "bridge.token").read_text()
        )

        class Elsewhere(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_: object) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere:
            threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
            seen = _browse(f"http://evil.test:{elsewhere.server_port}/", tmp_path)
            elsewhere.shutdown()
        assert "<title>" in seen, seen
        title = seen.partition("<title>")[2].partition("</title>")[0]
        assert "READ" not in title
        assert title.count("kept from") == 2, title
        calls = [
            line for line in (installed.home / "audit" / "strangers.jsonl").read_text().splitlines() if "POST" in line
        ]
        assert len(calls) == 2, calls
        assert all('"status":403' in line for line in calls), calls


def _browse(url: str, folder: Path) -> str:
    assert CHROMIUM is not None
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    words += ["--host-resolver-rules=MAP *.test 127.0.0.1", "--virtual-time-budget=10000", "--dump-dom", url]
    return subprocess.run(words, capture_output=True, text=True, timeout=90, check=False).stdout
