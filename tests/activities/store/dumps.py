"""Dumps of this release's store with rows: `python -m tests.activities.store.dumps`, before the version changes.

A dump that exists is never written again.
"""

import re
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

from sqlalchemy import Engine, insert

from activities.settings.home import Home
from activities.store import idempotency_rows, job_rows, schema
from activities.store.database import open_store
from activities.store.registry import agent_rows, host_rows, memory_rows, pipeline_rows, repo_rows
from activities.store.registry.memory_rows import NewMemory
from tests import keys, postgres, rows
from tests.rows import ROOT
from tests.sealed import seal
from workflows.model.rows import Records
from workflows.model.states import JobState, TaskState
from workflows.model.workers import Worker
from workflows.pipeline.read import read
from workflows.pipeline.syntax import Format

FOLDER = Path(__file__).parent / "released"
PIPELINE = 'name: nightly\nrepo: acme/shop\nstages:\n  - id: build\n    kind: shell\n    command: ["true"]\n'
SCOUT = {"name": "scout", "runtime": "claude", "capabilities": ["ask"], "autonomy_policy": "read-only"}
_SEARCH = re.compile(r"PRAGMA writable_schema=ON;.*?(?=\nCREATE TABLE (?!'memory_search))", re.DOTALL)
"""The tables of SQLite's full text as sqlite3 dumps them; no other version reads these."""


def fill(store: Engine) -> None:
    """Write a tree that waits, with a leg that runs, and one of all that people register."""
    repo_rows.put(store, "acme/shop", "/srv/checkouts/shop", "here", "acme/shop")
    agent_rows.add(store, Worker.model_validate(SCOUT), ("acme/shop",))
    pipeline_rows.put(store, read(PIPELINE, Format.YAML), PIPELINE, Format.YAML)
    memory_rows.write(store, NewMemory(None, "acme/shop", "limits", "orders end at 100", "ann"), confirmed_by="ann")
    idempotency_rows.reserve(store, "order-17", "d", "first")
    host_rows.see(store, "here", slots=4, started_at=1.0)
    tree = (rows.job(state=JobState.SUCCEEDED), rows.job(f"{ROOT}.1", state=JobState.RUNNING))
    task = rows.task(state=TaskState.AWAITING_HUMAN)
    job_rows.write(store, Records(task=task, jobs=tree, events=(rows.event(1),), rounds=(rows.round_(),)))
    ended = {"ended_at": 9.0, "outcome": {"job_id": ROOT, "attempt": 1, "state": "succeeded"}}
    with store.begin() as connection:
        for job, number, more in ((ROOT, 1, ended), (f"{ROOT}.1", 2, {})):
            row = {"job_id": job, "attempt": 1, "host": "here", "run_dir": f"/home/runs/{number}", "started_at": 5.0}
            connection.execute(insert(schema.attempts), [row | more])
    seal(store)


def of_sqlite(home: Home) -> str:
    """Return the dump of a store in a home; the full text is made anew when it is read."""
    with sqlite3.connect(home.store) as connection:
        lines = "\n".join(connection.iterdump())
        [[search]] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'memory_search'")
    lines = _SEARCH.sub("", lines).replace("PRAGMA writable_schema=OFF;\n", "")
    anew = f"{search};\nINSERT INTO memory_search (memory_search) VALUES ('rebuild');\nCOMMIT;"
    return lines.removesuffix("COMMIT;") + anew


def of_postgres(url: str) -> str:
    program = shutil.which("pg_dump") or max(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"))
    words = ("--inserts", "--no-owner", "--no-privileges", "-d", url.replace("+psycopg", ""))
    dump = subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout
    left_out = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")
    return "\n".join(line for line in dump.splitlines() if line and not line.startswith(left_out))


def write(dialect: str, text: str) -> None:
    path = FOLDER / f"{host_rows.release()}.{dialect}.sql"
    if not path.exists():
        path.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, postgres.running() as server:
        home = keys.give(Home(Path(folder) / "home").ensure())
        for url in ("", server.url):
            store = open_store(home, url)
            fill(store)
            store.dispose()
        write("sqlite", of_sqlite(home))
        write("postgres", of_postgres(server.url))


if __name__ == "__main__":
    main()
