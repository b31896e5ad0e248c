"""A fleet for each test: one Temporal server and one PostgreSQL of the session, a namespace and a database of its own.

`SERVICE_TEST_TEMPORAL` names the address of a real server to use in place of Temporal's development server.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.fleet import server
from tests.fleet.machines import Fleet, founded
from tests.postgres import Postgres


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    with postgres.running(connections=100) as server:
        yield server


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a Temporal server without our set-up."""
    if given := os.environ.get("SERVICE_TEST_TEMPORAL"):
        yield given
        return
    with server.running(tmp_path_factory.mktemp("temporal") / "temporal.db") as made:
        yield made.address


@pytest.fixture
def fleet(tmp_path: Path, temporal: str, database: Postgres) -> Iterator[Fleet]:
    with founded(tmp_path, temporal, database) as made:
        yield made
