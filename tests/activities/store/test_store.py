"""The store on real SQLite: migrated before use, written at least once, read as values."""

import contextlib
import socket
import sqlite3
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from activities.settings.home import Home
from activities.store import attempt_rows, claim_rows, database, event_rows, job_rows
from activities.store.attempt_rows import Offered
from activities.store.database import (
    HEAD,
    MIGRATIONS,
    StoreNewerError,
    StoreOlderError,
    StoreTooOldError,
    connect,
    open_store,
)
from activities.store.registry import agent_rows, repo_rows
from activities.store.schema import metadata
from tests.activities.store.conftest import emptied
from tests.activities.store.rows import ROOT, job, task
from tests.depth import cases
from workflows.contract.models import AutonomyPolicy, Decision
from workflows.model.errors import Commands, UnreachableError, UsageError
from workflows.model.jobs import JobOutcome
from workflows.model.orders import StopReason
from workflows.model.rows import EventRecord, Records
from workflows.model.spend import Usage
from workflows.model.states import JobState, TaskState
from workflows.model.workers import Worker


def test_the_migrations_build_exactly_the_tables_the_code_reads(store: Engine) -> None:
    def ours(_object: object, name: str | None, *_rest: object) -> bool:
        return not (name or "").startswith("memory_search")  # full text differs between databases

    with store.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": ours})
        assert compare_metadata(context, metadata) == []


def test_the_code_knows_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


@pytest.mark.ruling("Q3")
def test_a_repository_has_one_checkout_and_with_a_remote_one_on_each_host(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "/shop", "here", "acme/shop")
    assert repo_rows.put(store, "acme/shop", "/there/shop", "there").checkouts == {"there": "/there/shop"}
    remote = repo_rows.Remote("ssh://git@host/shop.git", "main", "refs/service/")
    assert repo_rows.put(store, "acme/shop", "", "here", remote=remote).checkouts == {"there": "/there/shop"}
    known = repo_rows.put(store, "acme/shop", "/shop", "here")
    assert (known.path, known.host, known.remote) == ("/there/shop", "there", "ssh://git@host/shop.git")
    assert known.checkouts == {"there": "/there/shop", "here": "/shop"}
    assert known.is_on("anywhere")
    assert repo_rows.remove(store, "acme/shop")
    assert repo_rows.every(store) == []


def test_the_store_is_private_and_survives_a_crash_by_wal(bare_home: Home) -> None:
    store = open_store(bare_home)
    assert bare_home.root.stat().st_mode & 0o777 == 0o700
    with store.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_a_store_of_a_newer_release_is_refused_with_the_way_out(home: Home) -> None:
    open_store(home)
    with sqlite3.connect(home.store) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreNewerError, match="newer release"):
        open_store(home)


@pytest.mark.ruling("Q8")
@pytest.mark.parametrize("version", ["0005", "0012", "0019_claims"])
def test_a_store_of_before_0_2_0_is_told_apart_from_a_newer_one(bare_home: Home, version: str) -> None:
    with sqlite3.connect(bare_home.ensure().store) as connection:
        connection.executescript(
            f"CREATE TABLE alembic_version (version_num VARCHAR(32)); INSERT INTO alembic_version VALUES ('{version}');"
            "CREATE TABLE jobs (job_id VARCHAR(80)); CREATE TABLE hosts (name VARCHAR(200))"
        )
    for migrate in (True, False):
        with pytest.raises(StoreTooOldError, match=f"before release 0.2.0 .schema {version}.") as refused:
            open_store(bare_home, migrate=migrate)
        assert f"mv {bare_home.root} {bare_home.root}.before" in refused.value.hint


def test_a_store_that_is_no_database_says_so(home: Home) -> None:
    home.store.write_bytes(b"not a database at all, only words" * 100)
    with pytest.raises(UnreachableError, match="not a database"):
        open_store(home)


@pytest.mark.parametrize("url", ["nonsense", "oracle99://x/y"])
def test_a_store_url_that_means_nothing_is_a_fault_of_the_settings(home: Home, url: str) -> None:
    with pytest.raises(UsageError, match=r"\[store\].url cannot be used"):
        open_store(home, url)


def _open(root: Path) -> bool:
    return database._version(open_store(Home(root))) == HEAD


def test_processes_that_open_a_new_store_together_migrate_it_once(tmp_path: Path) -> None:
    with ProcessPoolExecutor(8) as pool:
        for number in range(cases(3, 20)):
            assert all(pool.map(_open, [tmp_path / str(number)] * 8))


def test_a_copy_that_was_restored_is_written_ahead_again(home: Home, tmp_path: Path) -> None:
    copy = Home(tmp_path / "copy").ensure()
    with open_store(home).connect() as connection:
        connection.exec_driver_sql(f"VACUUM INTO '{copy.store}'")
    with sqlite3.connect(copy.store) as restored:
        assert restored.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    with open_store(copy).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_opening_a_restored_copy_waits_for_readers_up_to_the_timeout(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    copy = Home(tmp_path / "copy").ensure()
    with open_store(home).connect() as connection:
        connection.exec_driver_sql(f"VACUUM INTO '{copy.store}'")
    reader = sqlite3.connect(copy.store, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM jobs").fetchall()
    with pytest.raises(UnreachableError, match="the store cannot be opened: database is locked"):
        open_store(copy)
    reader.close()
    assert database._writes_ahead(open_store(copy))


def test_a_late_or_repeated_record_changes_nothing(store: Engine) -> None:
    job_rows.write(store, Records(task=task(3, TaskState.DONE), jobs=(job(revision=3, state=JobState.SUCCEEDED),)))
    for revision in (1, 3):
        job_rows.write(store, Records(task=task(revision), jobs=(job(revision=revision),)))
    kept_job, kept_task = job_rows.get(store, ROOT), job_rows.task_of(store, ROOT)
    assert kept_job is not None
    assert kept_task is not None
    assert (kept_job.state, kept_task.state) == (JobState.SUCCEEDED, TaskState.DONE)
    assert kept_job.usage == Usage(input_tokens=3, output_tokens=4)


@pytest.mark.ruling("B4", "B7")
def test_events_are_kept_once_and_read_in_order(store: Engine) -> None:
    events = tuple(
        EventRecord(
            event_id=f"{ROOT}-e{n}", job_id=ROOT, root_job_id=ROOT, kind="k", at=n, message=str(n), data={"n": n}
        )
        for n in (10, 2, 1)
    )
    for _ in range(2):
        job_rows.write(store, Records(events=events))
    kept = event_rows.of_tree(store, ROOT)
    assert [(event.message, event.seq) for event in kept] == [("10", 1), ("2", 2), ("1", 3)]
    assert [event.data for event in event_rows.of_tree(store, ROOT, after=2)] == [{"n": 1}]


@pytest.mark.ruling("B7")
def test_several_writers_of_a_tree_make_one_sequence(store: Engine) -> None:
    """The tree writes events of its jobs, operators write theirs; a cursor skips none."""

    def tell(writer: int) -> None:
        for n in range(20):
            event = EventRecord(
                event_id=f"{ROOT}-w{writer}-{n}", job_id=ROOT, root_job_id=ROOT, kind="k", at=n, message="said"
            )
            job_rows.write(store, Records(events=(event,)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tell, range(4)))
    assert [event.seq for event in event_rows.of_tree(store, ROOT)] == list(range(1, 81))


def test_a_tree_is_read_in_dispatch_order(store: Engine) -> None:
    ids = [ROOT, *(f"{ROOT}.{n}" for n in range(1, 12))]
    job_rows.write(store, Records(jobs=tuple(job(job_id) for job_id in reversed(ids))))
    assert [j.job_id for j in job_rows.tree(store, ROOT)] == ids


def test_jobs_are_found_newest_first_by_what_people_filter_by(store: Engine) -> None:
    job_rows.write(store, Records(jobs=(job(at=1.0), job(f"{ROOT}.1", at=2.0, state=JobState.FAILED))))
    assert [j.job_id for j in job_rows.find(store, job_rows.JobFilter())] == [f"{ROOT}.1", ROOT]
    assert [j.job_id for j in job_rows.find(store, job_rows.JobFilter(states=(JobState.QUEUED,)))] == [ROOT]
    assert job_rows.find(store, job_rows.JobFilter(repo="acme/other")) == []
    assert len(job_rows.find(store, job_rows.JobFilter(limit=1))) == 1


@pytest.mark.ruling("B5")
def test_an_offer_is_begun_or_taken_back_whoever_comes_first(store: Engine) -> None:
    begun = claim_rows.begin(store, Offered(ROOT, 1), host="here", run_dir="/1")
    assert begun is not None
    assert claim_rows.take_back(store, Offered(ROOT, 1)) == begun.started_at
    assert claim_rows.take_back(store, Offered(ROOT, 2, 7)) is None
    assert claim_rows.begin(store, Offered(ROOT, 2, 7), host="here", run_dir="/2") is None
    assert claim_rows.take_back(store, Offered(ROOT, 2, 7)) is None, "asked twice, it is the same answer"
    assert claim_rows.begin(store, Offered(ROOT, 2, 9), host="here", run_dir="/2"), "a later offer is another"
    assert claim_rows.begin(store, Offered(ROOT, 2, 7), host="here", run_dir="/2") is None
    assert claim_rows.take_back(store, Offered(ROOT, 2, 11)), "what has begun is not taken back under any number"
    assert claim_rows.ordered_to_stop(store, [(ROOT, 1), (ROOT, 2)]) == set(), "what has begun runs on"
    assert claim_rows.begin(store, Offered(ROOT, 2, 11), host="here", run_dir="/2"), (
        "a tree that was reset finds its run"
    )
    assert [run.attempt for run in attempt_rows.of_job(store, ROOT)] == [1, 2], "what was taken back left no row"


@pytest.mark.ruling("G2.stops", "Q7")
def test_what_is_called_off_never_begins_or_its_host_is_ordered_to_stop_it(store: Engine) -> None:
    begun = claim_rows.begin(store, Offered(ROOT, 1), host="here", run_dir="/1")
    assert begun is not None
    assert claim_rows.call_off(store, Offered(ROOT, 1), StopReason.CANCELLED) == begun.started_at
    assert claim_rows.call_off(store, Offered(ROOT, 2), StopReason.CANCELLED) is None
    assert claim_rows.begin(store, Offered(ROOT, 2), host="here", run_dir="/2") is None
    assert claim_rows.ordered_to_stop(store, [(ROOT, 1), (ROOT, 2), (ROOT, 3)]) == {(ROOT, 1)}


@pytest.mark.ruling("B5")
def test_of_a_host_and_a_tree_at_the_same_moment_one_gets_the_offer(store: Engine) -> None:
    for attempt in range(1, 31):
        offered = Offered(ROOT, attempt)
        both = threading.Barrier(2)

        def begin(offered: Offered = offered, both: threading.Barrier = both) -> bool:
            both.wait()
            return claim_rows.begin(store, offered, host="here", run_dir="/") is not None

        def take_back(offered: Offered = offered, both: threading.Barrier = both) -> bool:
            both.wait()
            return claim_rows.take_back(store, offered) is None

        with ThreadPoolExecutor(2) as pool:
            won = [pool.submit(begin), pool.submit(take_back)]
        assert sorted(each.result() for each in won) == [False, True]


def test_the_first_record_of_a_run_stands(store: Engine) -> None:
    run = claim_rows.begin(store, Offered(ROOT, 1), host="here", run_dir="/runs/1")
    assert run is not None
    assert claim_rows.begin(store, Offered(ROOT, 1), host="elsewhere", run_dir="/runs/2") == run
    attempt_rows.record_worktree(store, run, worktree="/w", branch=None, base_sha="abc")
    attempt_rows.close(
        store, run, JobOutcome(job_id=ROOT, state=JobState.SUCCEEDED, decision=Decision.APPROVED), {"a": 1}, {}
    )
    attempt_rows.close(store, run, JobOutcome(job_id=ROOT, state=JobState.FAILED), {}, {"late": True})
    kept = attempt_rows.get(store, ROOT, 1)
    assert kept is not None
    assert kept.known_outcome is not None
    assert (kept.known_outcome.decision, kept.payload, kept.worktree) == (Decision.APPROVED, {"a": 1}, "/w")


@pytest.mark.ruling("K3")
def test_agents_are_routable_only_where_they_are_allowed(store: Engine) -> None:
    worker = Worker(
        name="builder",
        runtime="shell",
        command=("sh", "-c", "true"),
        capabilities=("implement",),
        autonomy_policy=AutonomyPolicy.WORKSPACE_WRITE,
    )
    repo_rows.put(store, "acme/shop", "/shop", "here")
    repo_rows.put(store, "acme/site", "/site", "here")
    assert agent_rows.add(store, worker, ("acme/shop",))
    assert not agent_rows.add(store, worker, ())
    assert agent_rows.routable(store, "acme/shop") == (worker,)
    assert agent_rows.routable(store, "acme/site") == ()
    agent_rows.allow(store, "builder", "acme/site")
    agent_rows.deny(store, "builder", "acme/shop")
    agent = agent_rows.get(store, "builder")
    assert agent is not None
    assert agent.repos == ("acme/site",)
    assert repo_rows.remove(store, "acme/site")
    again = agent_rows.get(store, "builder")
    assert again is not None
    assert again.repos == ()


@pytest.mark.ruling("engine:cluster")
def test_a_driver_that_is_not_installed_is_named_with_the_extra_it_is_part_of(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match="PostgreSQL's driver psycopg, which is not installed for ") as lacking:
        open_store(home, "postgresql://service@127.0.0.1/store")
    assert lacking.value.hint == f"{sys.executable} -m pip install 'delegation-service[postgres]'"
    with pytest.raises(UsageError, match=r"\[store\].url needs psycopg2: the store speaks PostgreSQL by psycopg"):
        open_store(home, "postgresql+psycopg2://service@127.0.0.1/store")


@pytest.mark.ruling("engine:cluster")
def older(url: str) -> None:
    """Make the store of release 0.2.0."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0012")
    engine.dispose()


@pytest.mark.ruling("Q1")
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_one_who_only_looks_migrates_nothing(dialect: str, bare_home: Home, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{bare_home.ensure().store}"
    if dialect == "postgres":
        url = request.getfixturevalue("postgres")
        emptied(url)
        with pytest.raises(StoreOlderError, match="it has no tables yet"):
            open_store(bare_home, url, migrate=False)
    older(url)
    with pytest.raises(StoreOlderError, match=f"schema 0012; the daemon migrates it to {HEAD}"):
        open_store(bare_home, url, migrate=False)
    with connect(bare_home, url) as connection:
        assert MigrationContext.configure(connection).get_current_revision() == "0012"
    open_store(bare_home, url).dispose()
    open_store(bare_home, url, migrate=False).dispose()


def test_a_database_that_is_missing_is_said_with_what_makes_it(bare_home: Home, postgres: str) -> None:
    with pytest.raises(UnreachableError, match='database "none" does not exist') as missing:
        open_store(bare_home, postgres.replace("/postgres", "/none").replace("service@", "service:secret-word@"))
    admin = f"psql -h 127.0.0.1 -p {make_url(postgres).port} -U postgres -c"
    assert missing.value.hint == f"{admin} 'create database none owner service'"


def test_a_role_that_is_missing_is_said_with_what_makes_it_and_its_database(bare_home: Home, postgres: str) -> None:
    with pytest.raises(UnreachableError, match='role "member" does not exist') as missing:
        open_store(bare_home, make_url(postgres).set(username="member", database="service").render_as_string())
    admin = f"psql -h 127.0.0.1 -p {make_url(postgres).port} -U postgres -c"
    assert missing.value.hint == Commands(
        f"""{admin} 'create role member login password '"'"'PASSWORD'"'"''""",
        f"{admin} 'create database service owner member'",
    )


def test_a_role_that_may_make_no_tables_is_said_with_what_gives_it_a_database(bare_home: Home, postgres: str) -> None:
    """From PostgreSQL 15 on, a role may make tables only in a database that it owns."""
    admin, psql = make_url(postgres), f"psql -h 127.0.0.1 -p {make_url(postgres).port} -U postgres -c"
    types(postgres, "create role guest login", "create role stranger login", "create database others")
    url = f"[store].url in config.toml: postgresql://guest@127.0.0.1:{admin.port}/service"
    for name, ways in (
        ("postgres", Commands(f"{psql} 'create database service owner guest'", url)),
        ("others", f"{psql} 'alter database others owner to guest'"),
    ):
        with pytest.raises(UnreachableError, match=r"permission denied for schema public|no schema") as refused:
            open_store(bare_home, admin.set(username="guest", database=name).render_as_string())
        assert refused.value.hint == ways
    types(postgres, "alter database others owner to guest")
    open_store(bare_home, admin.set(username="guest", database="others").render_as_string()).dispose()
    with pytest.raises(UnreachableError, match="permission denied for table alembic_version") as refused:
        open_store(bare_home, admin.set(username="stranger", database="others").render_as_string())
    assert refused.value.hint.endswith("'\\dt'  (its tables have another owner: name that role in [store].url)")


def types(url: str, *lines: str) -> None:
    """Type lines of SQL as the server's administrator."""
    with create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        for line in lines:
            connection.execute(text(line))


def test_a_database_that_does_not_answer_is_said(home: Home) -> None:
    with pytest.raises(UnreachableError, match=r"the store cannot be opened: .*refused"):
        open_store(home, "postgresql://service@127.0.0.1:1/store")


def test_a_database_that_is_stopped_is_said_in_one_line(home: Home) -> None:
    def hang_up(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                server.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=hang_up, args=(server,), daemon=True).start()
        port = server.getsockname()[1]
        with pytest.raises(UnreachableError, match=r"closed the connection unexpectedly\npg_isready -h"):
            open_store(home, f"postgresql+psycopg://service@127.0.0.1:{port}/store")
        server.shutdown(socket.SHUT_RDWR)
