"""Fixtures of all rings: a service home of its own for each test, and one Temporal server for all of a process."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from hypothesis import settings

from activities.settings.home import Home
from tests import guard, keys
from tests.depth import cases

if TYPE_CHECKING:
    from temporalio.client import Client

ROOT = Path(__file__).parent
SLOWEST = ("fleet", "e2e", "dev_cluster", "temporal", "cli", "bridge", "activities")
"""Rings that wait for servers and processes. They come first, so that parallel workers end at about the same time."""


settings.register_profile("ours", deadline=None, max_examples=cases(25, 100))
settings.load_profile("ours")


def pytest_configure() -> None:
    """Undo what programs inherit: a shell has its background jobs ignore signals, `nohup` hang-ups. Unset
    PYTHONUNBUFFERED, so that a missing flush is seen.
    """
    for number in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONUNBUFFERED", None)
    gc.disable()  # until all tests are collected, which leaves little garbage
    guard.begin()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {ring: place for place, ring in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.path.relative_to(ROOT).parts[0], len(places)))


def pytest_collection_finish() -> None:
    """Freeze the objects that exist by now: scanning them for garbage repeatedly takes up to a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def knows_no_secrets_of_other_tests() -> Iterator[None]:
    """Clear the process's known secrets, which come from the homes it works in and are searched in every text."""
    yield
    if known := sys.modules.get("activities.redaction.known_values"):
        known.process.cache_clear()


@pytest_asyncio.fixture(scope="session")
async def client() -> AsyncIterator["Client"]:
    """Connect to the one real Temporal server of this process; each test has task queues of its own."""
    from tests.temporal.server import serve  # the pure tests need not wait for this import

    async with serve() as connected:
        yield connected


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an empty store of this release, once: that takes longer than most tests of a store."""
    from activities.store.database import open_store  # the pure tests need not wait for this import
    from tests.statements import share

    share()
    home = Home(tmp_path_factory.mktemp("empty")).ensure()
    open_store(home).dispose()
    return home.store


@pytest.fixture
def home(bare_home: Home, empty_store: Path) -> Home:
    """Create a service home with an empty store, and point the environment at it."""
    shutil.copyfile(empty_store, bare_home.store)
    return bare_home


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Create a service home without a store, and point the environment at it."""
    root = tmp_path / "home"
    monkeypatch.setenv("SERVICE_HOME", str(root))
    for name in ("TEMPORAL_ADDRESS", "SERVICE_TEMPORAL_ADDRESS", "SERVICE_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    return keys.give(Home(root).ensure())
