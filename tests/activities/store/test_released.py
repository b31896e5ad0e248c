"""Stores of every release, kept as dumps with rows: this release reads all of it (ruling Q8).

A release adds its dumps (`dumps.py`). None is ever changed.
"""

import re
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from activities.settings.home import Home
from activities.store import attempt_rows, idempotency_rows, job_rows, round_rows
from activities.store.database import HEAD, MIGRATIONS, open_store
from activities.store.registry import agent_rows, host_rows, memory_rows, pipeline_rows, repo_rows
from tests.activities.store import dumps
from tests.activities.store.conftest import emptied
from tests.rows import ROOT
from workflows.model.states import JobState, TaskState


@pytest.fixture(params=sorted(dumps.FOLDER.glob("*.sql")), ids=lambda path: path.stem)
def store(request: pytest.FixtureRequest, bare_home: Home) -> Engine:
    """Open the store of a release, which migrates it."""
    path: Path = request.param
    if path.stem.endswith("sqlite"):
        with sqlite3.connect(bare_home.ensure().store) as connection:
            connection.executescript(path.read_text())
        return open_store(bare_home)
    url = request.getfixturevalue("postgres")
    emptied(url)
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql(path.read_text().replace("%", "%%"))
    return open_store(bare_home, url)


@pytest.mark.ruling("Q8")
def test_the_store_of_every_release_is_read(store: Engine, request: pytest.FixtureRequest) -> None:
    release = request.node.callspec.params["store"].name.rpartition(".")[0].rpartition(".")[0]
    with store.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == HEAD
    task, leg = job_rows.task_of(store, ROOT), job_rows.get(store, f"{ROOT}.1")
    assert task is not None
    assert leg is not None
    assert (task.state, leg.state) == (TaskState.AWAITING_HUMAN, JobState.RUNNING)
    assert [each.end for each in round_rows.of_tree(store, ROOT)] == [None]
    recorded, running = attempt_rows.get(store, ROOT, 1), attempt_rows.get(store, f"{ROOT}.1", 1)
    assert recorded is not None
    assert recorded.known_outcome is not None
    assert running is not None
    assert (running.run_dir, running.known_outcome) == ("/home/runs/2", None)
    [repo] = repo_rows.every(store)
    assert (repo.name, repo.path, repo.host) == ("acme/shop", "/srv/checkouts/shop", "here")
    assert [agent.worker.name for agent in agent_rows.every(store)] == ["scout"]
    assert [(host.name, host.version, host.slots) for host in host_rows.every(store)] == [("here", release, 4)]
    assert [each.name for each in pipeline_rows.every(store)] == ["nightly"]
    [entry] = memory_rows.recall(store, "orders", agent=None, shared=True, repo="acme/shop", limit=5)
    assert entry.content == "orders end at 100"
    assert idempotency_rows.reserve(store, "order-17", "d", "second").subject == "first"


@pytest.mark.ruling("Q8")
def test_the_schema_of_every_release_becomes_that_of_a_new_store(
    store: Engine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    migrated = tables(store)
    if store.dialect.name == "postgresql":
        url = request.getfixturevalue("postgres")
        store.dispose()
        emptied(url)
    anew = open_store(Home(tmp_path / "anew"), "" if store.dialect.name == "sqlite" else url)
    made = tables(anew)
    anew.dispose()
    assert len(made) > 40
    assert migrated.keys() == made.keys()
    for name, table in made.items():
        assert migrated[name] == table, name


def tables(store: Engine) -> dict[str, list[str]]:
    """Return what the database says of each table: its columns in their order, keys, indexes, checks."""
    seen, known = inspect(store), dict[str, list[str]]()
    for name in seen.get_table_names():
        indexes = [(index, *map(str, index.pop("dialect_options", {}).values())) for index in seen.get_indexes(name)]
        keys = seen.get_foreign_keys(name), seen.get_unique_constraints(name), seen.get_check_constraints(name)
        rest = sorted(str(each) for several in (indexes, *keys) for each in several)
        known[name] = [*map(str, seen.get_columns(name)), str(seen.get_pk_constraint(name)), *rest]
    return known


@pytest.mark.ruling("Q8")
def test_a_migration_takes_nothing_from_hosts_that_still_run_the_release_before() -> None:
    later = [path for path in (MIGRATIONS / "versions").glob("0*.py") if path.name > "0013"]
    takes = re.compile(r"\b(drop_(?!index)\w+|rename_table|alter_column)\(")
    assert {path.name: takes.findall(path.read_text()) for path in later if takes.search(path.read_text())} == {}
    dropped, made = (re.compile(rf'\b{verb}_index\("(\w+)"') for verb in ("drop", "create"))
    for path in later:  # an index may be made again with more columns, in the same transaction
        assert {*dropped.findall(path.read_text())} <= {*made.findall(path.read_text())}, path.name
