"""The connections of a host to PostgreSQL, and whether those of all hosts fit."""

import pytest

from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store.connections import LEAST, Capacity, Member, capacity, share
from activities.store.database import open_store

DEFAULT = Settings().store.pool


@pytest.mark.ruling("Q7")
@pytest.mark.parametrize("pool", [LEAST, 5, 9, 400])
def test_the_processes_of_a_host_share_its_connections(pool: int) -> None:
    shares = [share(pool, member) for member in (Member.WORKER, Member.BRIDGE, Member.GITHUB)]
    assert sum(shares) == pool
    assert min(shares) >= 1


@pytest.mark.ruling("Q7")
@pytest.mark.parametrize(
    ("seen", "lacking", "pool"),
    [
        (Capacity(usable=97, others=0, hosts=20, pool=DEFAULT), 0, 4),
        (Capacity(usable=97, others=20, hosts=10, pool=8), 11, 6),
        (Capacity(usable=97, others=0, hosts=30, pool=DEFAULT), 31, None),
    ],
)
def test_what_does_not_fit_says_what_would(seen: Capacity, lacking: int, pool: int | None) -> None:
    assert (seen.lacking, seen.fitting_pool) == (lacking, pool)


@pytest.mark.ruling("Q7")
def test_the_server_is_asked_for_its_limit(postgres: str, home: Home) -> None:
    engine = open_store(home, postgres, connections=1)
    with engine.connect() as connection:
        assert capacity(connection, 2, 9) == Capacity(usable=30 - 3, others=0, hosts=2, pool=9)
    engine.dispose()


@pytest.mark.ruling("Q7")
def test_a_server_whose_machine_is_gone_is_not_waited_for(postgres: str, home: Home) -> None:
    engine = open_store(home, f"{postgres}?tcp_user_timeout=5000", connections=1)
    with engine.connect() as connection:
        known = connection.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]
    assert (known["tcp_user_timeout"], known["connect_timeout"], known["keepalives_idle"]) == ("5000", "10", "15")
    engine.dispose()
