"""The store on SQLite, and on a PostgreSQL of the test session if its programs are installed."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from activities.settings.home import Home
from activities.store.database import open_store
from activities.store.schema import metadata
from tests.postgres import running


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the URL of a server that lives as long as the session."""
    with running() as server:
        yield server.url


@pytest.fixture(scope="session")
def migrated(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a database of this release once: its migrations take longer than most tests of a store. Return its URL."""
    with create_engine(postgres, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("CREATE DATABASE store"))
    url = make_url(postgres).set(database="store").render_as_string(hide_password=False)
    open_store(Home(tmp_path_factory.mktemp("migrated")), url).dispose()
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, home: Home) -> Iterator[Engine]:
    """Open an empty store, on each supported database. Its connections are closed afterwards."""
    url = ""
    if request.param == "postgres":
        url = request.getfixturevalue("migrated")
        without_rows(url)
    engine = open_store(home, url)
    yield engine
    engine.dispose()


def without_rows(url: str) -> None:
    """Delete all rows of a store, and restart its sequences."""
    with create_engine(url, poolclass=NullPool).begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
        for sequence in connection.scalars(text("SELECT sequencename FROM pg_sequences")).all():
            connection.execute(text(f"ALTER SEQUENCE {sequence} RESTART"))


def emptied(url: str) -> None:
    """Leave no table in a database."""
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
