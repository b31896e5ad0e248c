"""Opening the store: SQLite in the service home by default, else any SQLAlchemy URL; migrated before first use."""

import fcntl
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ProgrammingError

from activities.redaction.redact import redact_all
from activities.runs.regular_files import open_to_append
from activities.runs.service_process import STORE_OUTAGE
from activities.settings.home import Home
from activities.store.queries import Database
from workflows.model.errors import Commands, ServiceError, UnreachableError, UsageError

MIGRATIONS = Path(__file__).parent / "migrations"
HEAD = "0019"
"""The newest migration; a test compares it with alembic's."""


BUSY_SECONDS = 15
"""Timeout of a write that waits for another one."""


NETWORK = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Timeouts of connections to PostgreSQL, unless the URL has its own: a server whose machine is gone does not answer,
and Linux alone would wait for it a quarter of an hour.
"""


class StoreNewerError(ServiceError):
    """The store was written by a newer release."""

    code = "store_newer"


class StoreTooOldError(ServiceError):
    """The store was written before release 0.2.0; this release can't migrate it."""

    code = "store_too_old"


class StoreOlderError(ServiceError):
    """The store was written by an older release, and this caller may not migrate it."""

    code = "store_older"


def open_store(home: Home, url: str = "", *, connections: int = 5, migrate: bool = True) -> Engine:
    """Open the store and migrate its schema to this release's, or without `migrate` raise if that is needed. Limit the
    connections to PostgreSQL at once.
    """
    engine = _engine(home, url, connections)
    engine.update_execution_options(home=home.root)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune_sqlite)
    else:
        event.listen(engine, "connect", lambda *_: STORE_OUTAGE.is_over())
    try:
        version = _version(engine)
        if version not in (None, HEAD):
            _refuse_foreign(home, engine, str(version))
        if not migrate:
            _refuse_other(version)
        elif version != HEAD or not _writes_ahead(engine):
            _migrate(home, engine)
    except DBAPIError as error:
        why, _, _ = str(error.orig).partition("\n")  # PostgreSQL goes on with guesses, or with the statement
        raise UnreachableError(f"the store cannot be opened: {why}", _way_to(engine, why)) from None
    return engine


@contextmanager
def connect(home: Home, url: str) -> Iterator[Connection]:
    """Connect to the store without a migration, for a caller that only looks at the database itself."""
    engine = _engine(home, url, 1)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def home_of(store: Database) -> Path:
    """Return the service home that opened the store."""
    home: Path = store.get_execution_options()["home"]
    return home


def place_of(home: Home, url: str) -> str:
    """Return the store's URL without the password."""
    return make_url(url or f"sqlite:///{home.store}").render_as_string(hide_password=True)


def _refuse_other(version: str | None) -> None:
    if version is None:
        raise StoreOlderError(
            f"it has no tables yet; the daemon makes them, with schema {HEAD}", "service daemon start"
        )
    if version != HEAD:
        raise StoreOlderError(f"schema {version}; the daemon migrates it to {HEAD}", "service daemon start")


def _refuse_foreign(home: Home, engine: Engine, version: str) -> None:
    """Raise if this release can't migrate a schema, and say which release or program made it.

    The version number alone is not enough, since releases before 0.1.0 used the same numbers for other schemas. The
    tables of 0.2.0 decide.
    """
    if "placements" not in inspect(engine).get_table_names():
        why = f"the store was written before release 0.2.0 (schema {version}): it cannot be brought to this one"
        away = f"mv {shlex.quote(str(home.root))} {shlex.quote(f'{home.root}.before')}"
        hint = "name an empty database in [store].url" if engine.dialect.name == "postgresql" else away
        raise StoreTooOldError(why, f"service daemon stop; {hint}; service daemon start")
    if any(path.name.startswith(f"{version}_") for path in (MIGRATIONS / "versions").iterdir()):
        return
    with engine.connect() as connection:
        releases = sorted(set(connection.execute(text("SELECT version FROM hosts")).scalars()))
    by = f"; releases {', '.join(releases)} have worked on it" if releases else ""
    why = f"the store was written by a newer release of the service (schema {version}{by})"
    raise StoreNewerError(why, "pip install -U delegation-service  (on this host)")


_AWAY = ("refused", "timeout", "resolve", "closed the connection", "starting up", "shutting down")

_NO_TABLES = ("permission denied for schema", "no schema has been selected")
"""PostgreSQL's words to a role that may make no tables: from PostgreSQL 15 on, one that does not own the database."""


def _way_to(engine: Engine, error: str) -> str:
    """Return the command that shows or corrects why a database can't be opened."""
    if engine.dialect.name == "sqlite":
        return "service config show"
    url = engine.url.set(drivername="postgresql", password=None)
    place = f"-h {url.host or 'localhost'} -p {url.port or 5432}"
    role, database = _name(url.username or "postgres"), _name(url.database or "")
    make = _as_admin(place, f"create database {database} owner {role}")
    if f'role "{url.username}" does not exist' in error:
        return Commands(_as_admin(place, f"create role {role} login password 'PASSWORD'"), make)
    if f'database "{url.database}" does not exist' in error:
        return make
    if any(words in error for words in _NO_TABLES):
        if url.database != "postgres":
            return _as_admin(place, f"alter database {database} owner to {role}")
        own = url.set(database="service").render_as_string()
        make = _as_admin(place, f"create database service owner {role}")
        return Commands(make, f"[store].url in config.toml: {own}")
    if "permission denied" in error:
        tables = f"psql {url.render_as_string()} -c '\\dt'"
        return f"{tables}  (its tables have another owner: name that role in [store].url)"
    if any(word in error for word in _AWAY):
        return f"pg_isready {place}  (the URL: [store].url in config.toml)"
    return f"psql {url.render_as_string()} -c 'SHOW max_connections'  (the URL: [store].url in config.toml)"


def _as_admin(place: str, line: str) -> str:
    return f"psql {place} -U postgres -c {shlex.quote(line)}"


def _name(name: str) -> str:
    """Quote a name for SQL."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"{}"'.format(name.replace('"', '""'))


def _engine(home: Home, url: str, connections: int) -> Engine:
    if not url:
        # SQLite gives the files beside a database the mode of the database itself.
        os.close(os.open(home.ensure().store, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return create_engine(f"sqlite:///{home.store}", json_serializer=_json)
    try:
        limits: dict[str, Any] = {}
        if url.startswith("postgresql"):
            own = {name: value for name, value in NETWORK.items() if name not in make_url(url).query}
            limits = {"pool_size": connections, "max_overflow": 0, "connect_args": own}
        return create_engine(url, pool_pre_ping=True, json_serializer=_json, **limits)
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            why = f"[store].url needs {error.name}: the store speaks PostgreSQL by psycopg"
            raise UsageError(why, "postgresql+psycopg://...") from None
        why = f"[store].url needs PostgreSQL's driver psycopg, which is not installed for {sys.executable}"
        raise UsageError(why, f"{sys.executable} -m pip install 'delegation-service[postgres]'") from None
    except ArgumentError as error:
        raise UsageError(f"[store].url cannot be used: {error}", "service config show --origin") from None


def _json(value: object) -> str:
    """Serialise the JSON of a column, without secrets (ruling N7)."""
    return json.dumps(redact_all(value))


class Changes:
    """A cheap check for writes by other processes: a number that changes with every write."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._own = engine.connect() if engine.dialect.name == "sqlite" else None
        """With SQLite, a connection that never writes: its counter shows only the writes of other connections."""

    def number(self) -> int:
        """Return the number."""
        if self._own is None:
            with self._engine.connect() as connection:
                return int(connection.execute(_SNAPSHOT).scalar() or 0)
        try:
            number = self._own.execute(_DATA_VERSION).scalar()
            self._own.rollback()
        except DBAPIError:
            self.close()
            self._own = self._engine.connect()
            raise
        return int(number or 0)

    def close(self) -> None:
        """Return the connection to the pool."""
        if self._own is not None:
            self._own.close()


_DATA_VERSION = text("PRAGMA data_version")
_SNAPSHOT = text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")


def _tune_sqlite(connection: Any, _record: object) -> None:
    for pragma in (f"busy_timeout={BUSY_SECONDS * 1000}", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.create_function("service_clock", 0, time.time)


def _writes_ahead(engine: Engine) -> bool:
    """Return whether SQLite is in WAL mode; a restored copy may have lost the mode."""
    if engine.dialect.name != "sqlite":
        return True
    with engine.connect() as connection:
        return connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"


def _write_ahead(engine: Engine) -> None:
    """Switch the file to WAL mode, once. SQLite can't wait for readers here; it fails at once if the file is busy."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with engine.connect() as connection:
                connection.execute(text("PRAGMA journal_mode=WAL"))
                return
        except OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _version(engine: Engine) -> str | None:
    try:
        with engine.connect() as connection:
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except (OperationalError, ProgrammingError) as error:
        if getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig):
            return None
        raise


def _migrate(home: Home, engine: Engine) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with _one_at_a_time(home, engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)


@contextmanager
def _one_at_a_time(home: Home, engine: Engine) -> Iterator[Connection]:
    """Begin a locked transaction: two processes that open an old store at the same time must not both migrate it."""
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(7233)"))
            yield connection
        return
    with open_to_append(home.ensure().root / "store.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _writes_ahead(engine):
            _write_ahead(engine)
        with engine.begin() as connection:
            yield connection
