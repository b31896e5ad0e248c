"""Cost of the bridge compared with bare frameworks: `python -m tests.benchmarks.bench_bridge [jobs]`.

Reading: `GET /v1/jobs/{id}` in a store of many jobs, compared with a bare FastAPI route that returns equal bytes. Both
are served by uvicorn in processes of their own, and called in turns over loopback. Starting: an ask and a pipeline run,
compared with a bare FastAPI route that starts a workflow with equal input and as many search attributes. Both use HTTP
and one embedded server. No rate limit. Prints figures for people; asserts nothing.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import insert
from temporalio.client import Client

from activities.settings.home import Home
from activities.store import schema
from activities.store.registry import repo_rows
from bridge.daemon.server import NAMESPACE
from bridge.machine import token
from bridge.operations.service import Service
from tests.benchmarks.bench_tree import server
from tests.bridge import seeds
from tests.bridge.conftest import bearer
from tests.bridge.http.conftest import scout
from tests.bridge.seeds import register
from tests.sealed import seal
from workflows.model import ids
from workflows.model.ids import root_id
from workflows.temporal.delegation_tree import DelegationTree

ROUNDS, CALLS, AT_ONCE, STARTS = 40, 300, 8, 40
BARE = """
import sys, uvicorn
from fastapi import FastAPI, Response
app, body = FastAPI(), open(sys.argv[1], "rb").read()

@app.get("/v1/jobs/{job_id}")
async def job(job_id: str) -> Response:
    return Response(body, media_type="application/json")

uvicorn.run(app, port=int(sys.argv[2]), access_log=False, log_level="error", http="h11", loop="asyncio")
"""
BARE_START = """
import json, sys, uuid, uvicorn
from fastapi import FastAPI
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
app, told, clients = FastAPI(), json.load(open(sys.argv[1])), []
pairs = [SearchAttributePair(SearchAttributeKey.for_keyword(name), "value") for name in told["attributes"]]

@app.post("/start")
async def start(said: dict[str, str]) -> dict[str, str]:
    if not clients:
        clients.append(await Client.connect(told["address"], namespace=told["namespace"]))
    name, words, found = told["workflow"], told["words"], TypedSearchAttributes(pairs)
    started = await clients[0].start_workflow(
        name, words, id=uuid.uuid4().hex, task_queue="service", search_attributes=found
    )
    return {"job_id": started.id}

uvicorn.run(app, port=int(sys.argv[2]), access_log=False, log_level="error", http="h11", loop="asyncio")
"""


def fill(service: Service, count: int) -> list[str]:
    """Insert so many ended jobs, each with a run and its result, and return their ids."""
    ids = [root_id(number * 10, number) for number in range(count)]
    result = {"service_result": {"decision": "approved", "summary": "looked", "findings": [], "tests_run": ["make"]}}
    run = {"attempt": 1, "host": "here", "run_dir": "/run", "started_at": 1.0, "payload": result}
    first = seeds.job(state="succeeded", ended_at=2.0).model_dump(mode="json")
    first |= first.pop("usage")
    with service.store.begin() as connection:
        connection.execute(insert(schema.jobs), [first | {"job_id": job_id, "root_job_id": job_id} for job_id in ids])
        connection.execute(insert(schema.attempts), [run | {"job_id": job_id} for job_id in ids])
    seal(service.store)
    return ids


def checkout(folder: Path) -> Path:
    """Create a repository with a commit, which a run needs."""
    path = folder / "shop"
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), *who, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    return path


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def process(*words: str, **environment: str) -> Iterator[None]:
    running = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, env=os.environ | environment)
    try:
        yield
    finally:
        running.kill()
        running.wait()


async def until_answered(url: str, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(headers=headers) as client:
        while True:
            try:
                await client.get(url)
                return
            except httpx.TransportError:
                await asyncio.sleep(0.1)


async def volley(port: int, ids: list[str], headers: dict[str, str]) -> list[float]:
    """Return the times of calls over open connections, hand-written: an HTTP client would be slower than a server."""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    async def caller(mine: list[str]) -> list[float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        took = []
        for job_id in mine:
            begun = time.perf_counter()
            writer.write(f"GET /v1/jobs/{job_id} HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in answer.split(b"\r\n", 1)[0], answer
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            took.append(time.perf_counter() - begun)
        writer.close()
        return took

    done = await asyncio.gather(*(caller(ids[number::AT_ONCE]) for number in range(AT_ONCE)))
    return [seconds for took in done for seconds in took]


def p99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98] * 1000


async def measure_reads(folder: Path, service: Service, bridge_port: int, count: int) -> None:
    ids, headers = fill(service, count), bearer(service)
    url = f"http://127.0.0.1:{bridge_port}/v1/jobs/{ids[0]}"
    await until_answered(url, headers)
    async with httpx.AsyncClient(headers=headers) as client:
        (folder / "body").write_bytes((await client.get(url)).content)
    (folder / "bare.py").write_text(BARE)
    bare_port = free_port()
    with process(str(folder / "bare.py"), str(folder / "body"), str(bare_port)):
        await until_answered(f"http://127.0.0.1:{bare_port}/v1/jobs/x", {})
        rates: dict[str, list[float]] = {"bare": [], "ours": []}
        every: dict[str, list[float]] = {"bare": [], "ours": []}
        for turn in range(ROUNDS + 1):
            for name, port in (("bare", bare_port), ("ours", bridge_port)):
                wanted = random.choices(ids, k=CALLS)
                begun = time.perf_counter()
                took = await volley(port, wanted, headers)
                if turn:  # the first round warms up
                    rates[name].append(CALLS / (time.perf_counter() - begun))
                    every[name] += took
    ratios = [ours / bare for ours, bare in zip(rates["ours"], rates["bare"], strict=True)]
    median = {name: statistics.median(numbers) for name, numbers in rates.items()}
    print(f"GET /v1/jobs/{{id}} with {count} jobs: {statistics.median(ratios):.2f} of the bare throughput", end=" ")
    print(f"({median['ours']:.0f}/s beside {median['bare']:.0f}/s)", end="; ")
    print(f"p99 {p99(every['ours']):.1f} ms beside {p99(every['bare']):.1f} ms at {AT_ONCE} at once")


async def measure_starts(folder: Path, service: Service, client: Client, port: int) -> None:
    base, ask_words = f"http://127.0.0.1:{port}", {"message": "Look", "repo": "acme/shop"}
    await until_answered(f"{base}/readyz", {})
    path, runs = register(service, "nightly"), client.get_workflow_handle(ids.workflow_id("nightly"))
    bare_port = free_port()
    (folder / "start.py").write_text(BARE_START)
    async with httpx.AsyncClient(headers=bearer(service), timeout=60) as http:

        async def post(url: str, body: Any = None) -> Any:
            answer = await http.post(url, json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        first = await post(f"{base}/v1/agents/scout/ask", ask_words)
        (folder / "words").write_text(json.dumps(await started_with(client, first["job_id"])))
        with process(str(folder / "start.py"), str(folder / "words"), str(bare_port)):
            await until_answered(f"http://127.0.0.1:{bare_port}/", {})
            kinds: dict[str, Callable[[int], Awaitable[Any]]] = {
                "ask": lambda _: post(f"{base}/v1/agents/scout/ask", ask_words),
                "run": lambda _: post(f"{base}{path}"),
                "bare": lambda _: post(f"http://127.0.0.1:{bare_port}/start", ask_words),
            }
            times: dict[str, list[float]] = {name: [] for name in kinds}
            for number in range(STARTS + 1):
                for name, call in kinds.items():
                    begun = time.perf_counter()
                    await call(number)
                    if number:  # the first round warms up
                        times[name].append(time.perf_counter() - begun)
                await runs.terminate()  # one run at a time
    median = {name: statistics.median(took) * 1000 for name, took in times.items()}
    for name, what in (("ask", "POST ask"), ("run", "POST pipeline run")):
        ratios = [ours / bare for ours, bare in zip(times[name], times["bare"], strict=True)]
        print(f"{what}: {statistics.median(ratios):.2f} times a bare route that starts a workflow", end=" ")
        print(f"({median[name]:.1f} ms beside {median['bare']:.1f} ms; p99 {p99(times[name]):.1f} ms)")


async def started_with(client: Client, workflow_id: str) -> dict[str, Any]:
    """Return the input of our start, for the bare start."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    first = history.events[0].workflow_execution_started_event_attributes
    return {
        "address": client.service_client.config.target_host,
        "namespace": client.namespace,
        "workflow": DelegationTree.run.__name__,
        "words": json.loads(first.input.payloads[0].data),
        "attributes": sorted(first.search_attributes.indexed_fields),
    }


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, home = Path(name), Home(Path(name) / "home").ensure()
        async with server(home) as client:
            address = client.service_client.config.target_host
            temporal = f'[temporal]\naddress = "{address}"\nnamespace = "{NAMESPACE}"\n'
            home.config.write_text(f"[bridge]\nrequests_per_minute = 100000000\n{temporal}")
            service = Service(home)
            scout(service)
            repo_rows.put(service.store, "acme/shop", str(checkout(folder)), service.settings.host)
            token.ensure(home)
            port = free_port()
            serve = ("-P", "-m", "cli.main", "bridge", "serve", "--addr", f"127.0.0.1:{port}")
            with process(*serve, SERVICE_HOME=str(home.root)):
                await measure_reads(folder, service, port, count)
                await measure_starts(folder, service, client, port)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
