"""A fleet for each test: one Temporal server and one PostgreSQL of the session, a namespace and a database of its own.

`SERVICE_TEST_TEMPORAL` names the address of a real server to use in place of Temporal's development server.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bridge.daemon.server import find_program
from bridge.machine.ports import LOOPBACK, choose_port, is_free
from tests import postgres
from tests.fleet.machines import Fleet
from tests.postgres import Postgres
from tests.waiting import wait_for


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    with postgres.running(connections=100) as server:
        yield server


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    """Return the address of a Temporal server without our set-up."""
    if given := os.environ.get("SERVICE_TEST_TEMPORAL"):
        yield given
        return
    port = choose_port(0, "Temporal").port
    command = (str(find_program()), "server", "start-dev", "--headless", "--port", str(port), "--log-level", "error")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(lambda: not is_free(port), server.poll)
            yield f"{LOOPBACK}:{port}"
        finally:
            server.kill()


@pytest.fixture
def fleet(tmp_path: Path, temporal: str, database: Postgres) -> Iterator[Fleet]:
    name = f"fleet-{uuid4().hex[:8]}"
    database.create(name)
    made = Fleet(tmp_path, temporal, database, name, name)
    try:
        yield made
    finally:
        made.close()
