"""Which of several hosts does a chore of the whole cluster."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from activities.settings.home import Home
from activities.store import leader
from activities.store.database import open_store
from activities.store.leader import Chore, Leader
from tests.activities.store.conftest import without_rows
from tests.waiting import wait_for

CHORE = Chore.SETTLE_ENDED_WORKFLOWS


@pytest.fixture
def store(migrated: str, home: Home) -> Iterator[Engine]:
    without_rows(migrated)
    engine = open_store(home, migrated)
    yield engine
    engine.dispose()


@pytest.mark.ruling("Q7")
def test_one_host_leads_until_it_resigns(store: Engine) -> None:
    first, second = Leader(store, CHORE), Leader(store, CHORE)
    assert [first.leads(), second.leads(), first.leads(), second.leads()] == [True, False, True, False]
    other = Leader(store, Chore.MOVE_JOBS_OF_LOST_HOSTS)
    assert other.leads(), "another chore has another leader"
    first.resign()
    assert [second.leads(), first.leads()] == [True, False]
    second.resign()
    other.resign()


@pytest.mark.ruling("Q7")
def test_a_leader_that_is_silent_loses_its_lead(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that was cut off or stopped keeps its connection open, as seen from PostgreSQL."""
    monkeypatch.setattr(leader, "IDLE_SECONDS", 0.2)
    first, second = Leader(store, CHORE), Leader(store, CHORE)
    assert first.leads()
    wait_for(second.leads)
    with pytest.raises(DBAPIError):
        first.leads()
    assert not first.leads()
    second.resign()


@pytest.mark.ruling("Q7")
def test_the_sessions_of_leaders_are_not_the_pools(store: Engine) -> None:
    first = Leader(store, CHORE)
    assert first.leads()
    assert store.pool.checkedout() == 0  # type: ignore[attr-defined]
    first.resign()
    with store.connect() as connection:
        assert connection.execute(text("SHOW idle_session_timeout")).scalar() == "0"
        assert connection.execute(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")).scalar() == 0


def test_on_one_host_it_leads(home: Home) -> None:
    engine = open_store(home)
    assert Leader(engine, CHORE).leads()
    assert Leader(engine, CHORE).leads()
