"""The store on SQLite, and on a PostgreSQL of the test session if its programs are installed."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from activities.settings.home import Home
from activities.store.database import open_store
from tests.postgres import running


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the URL of a server that lives as long as the session."""
    with running() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, home: Home) -> Iterator[Engine]:
    """Open an empty store, on each supported database. Its connections are closed afterwards."""
    url = ""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
        emptied(url)
    engine = open_store(home, url)
    yield engine
    engine.dispose()


def emptied(url: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
