"""Faults of a server, a database or a line amid trees on two hosts: nothing is lost, nothing runs twice."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tests import postgres
from tests.fleet import server
from tests.fleet.machines import Fleet, Machine, checkout
from tests.fleet.play import Play, ended_well
from tests.fleet.server import Server
from tests.postgres import Postgres

pytestmark = [pytest.mark.long, pytest.mark.ruling("engine:hosts")]

TREES, LEGS = 4, 3
JOBS = LEGS + 2
"""With the first job of the tree and the continuation."""

Trees = tuple[Play, list[Machine], list[str]]


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """Run a server of the test's own: it is killed, and filled if a size is given for its disk."""
    with postgres.running(connections=100, disk=getattr(request, "param", 0)) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    if os.environ.get("SERVICE_TEST_TEMPORAL"):
        pytest.skip("a given server is not killed")
    with server.running(tmp_path / "temporal.db") as made:
        yield made


@pytest.fixture
def temporal(request: pytest.FixtureRequest) -> str:
    given = os.environ.get("SERVICE_TEST_TEMPORAL")
    return given or str(request.getfixturevalue("own_server").address)


@pytest.fixture
def trees(fleet: Fleet) -> Trees:
    """Start trees on two hosts, until all of their legs run and wait."""
    machines = [fleet.host("one"), fleet.host("two")]
    play = Play.on(fleet, *machines)
    legs = [{"id": f"leg{n}", "agent": "", "prompt": "work", "action": "ask", "deps": []} for n in range(LEGS)]
    for machine in machines:
        repo = f"acme/{machine.name}"
        machine("repo", "add", repo, str(checkout(machine)))
        play.agent(machine, f"lead-{machine.name}", repo)
        machine.configure(max_parallel_jobs="32")
        machine("daemon", "start")
    play.answers(**{f"leg{n}": {"wait": "go"} for n in range(LEGS)})
    roots = []
    for number in range(TREES):
        machine = machines[number % 2]
        agent = f"lead-{machine.name}"
        play.answers(none={"delegations": [leg | {"agent": agent} for leg in legs]})
        root = machine.json("agent", "ask", agent, "go", "--repo", f"acme/{machine.name}")["job_id"]
        roots.append(root)
        play.wait_for("begin", (number + 1) * (LEGS + 1))
    return play, machines, roots


def went_on(trees: Trees, fault: Callable[[], None], mended: Callable[[], None]) -> None:
    """Let all legs end during a fault, see that it hit, mend it, and look at the outcome."""
    play, machines, roots = trees
    fault()
    play.go()
    play.wait_for("end", TREES * (LEGS + 1))
    mended()
    ended_well(play, machines[0], roots, JOBS)


def test_the_database_is_killed(trees: Trees, database: Postgres) -> None:
    went_on(trees, database.kill, database.start)


def test_the_server_is_killed(trees: Trees, own_server: Server) -> None:
    went_on(trees, own_server.kill, own_server.start)


def test_a_host_is_cut_off_while_its_agents_end(trees: Trees) -> None:
    two = trees[1][1]
    went_on(trees, two.cut_off, two.connect)


def test_the_database_takes_no_more_connections(trees: Trees, database: Postgres, fleet: Fleet) -> None:
    engine = create_engine(database.url, poolclass=NullPool)

    def fault() -> None:
        with engine.connect() as connection, connection.execution_options(isolation_level="AUTOCOMMIT") as now:
            now.execute(text(f'ALTER DATABASE "{fleet.database}" ALLOW_CONNECTIONS false'))
            now.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
                {"name": fleet.database},
            )

    def mended() -> None:
        with engine.connect() as connection, connection.execution_options(isolation_level="AUTOCOMMIT") as now:
            now.execute(text(f'ALTER DATABASE "{fleet.database}" ALLOW_CONNECTIONS true'))

    went_on(trees, fault, mended)


def test_the_lines_are_slow(trees: Trees) -> None:
    for machine in trees[1]:
        for line in machine.lines:
            line.delay = 0.1
    went_on(trees, lambda: None, lambda: None)


@pytest.mark.parametrize("database", [160], indirect=True)
def test_the_disk_of_the_database_is_full(trees: tuple[Play, list[Machine], list[str]], database: Postgres) -> None:
    def mended() -> None:
        assert "could not extend file" in database.log
        database.panic()
        assert "PANIC" in database.log
        database.make_room()

    went_on(trees, database.fill, mended)
    assert "No space left on device" in database.log
