"""A client of the service on the tests' simulated GitHub."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Engine

from activities.github.client import Client
from activities.github.credentials import Credentials
from activities.settings.home import Home
from activities.store.database import open_store
from tests.github.conftest import hub as hub
from tests.github.hub import Hub


@pytest.fixture
def store(home: Home) -> Engine:
    return open_store(home)


@pytest.fixture
async def client(hub: Hub, store: Engine) -> AsyncIterator[Client]:
    """Return a client of `helper`, who may write to acme/tool."""
    async with Client(store, Credentials(hub.user("helper", role="write")), hub.address) as made:
        yield made
