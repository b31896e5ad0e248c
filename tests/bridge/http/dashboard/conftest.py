"""The dashboard over a test's own home."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.sync_api import Browser

from activities.settings.home import Home
from bridge.operations.service import Service
from tests.bridge.http.dashboard.surfer import Surfer
from tests.e2e.browser import started

NO_TEMPORAL = "[temporal]\nport = 1\n"
"""A port on which nobody listens."""


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    """Create a service without Temporal."""
    home.config.write_text(NO_TEMPORAL)
    made = Service(home)
    yield made
    made.store.dispose()


@pytest_asyncio.fixture
async def ann(service: Service) -> AsyncIterator[Surfer]:
    """Open a session of Ann."""
    async with Surfer(service) as surfer:
        await surfer.enter()
        yield surfer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as program:
        yield program
