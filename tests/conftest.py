"""What every ring shares: a service home of its own for each test."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from activities.settings.home import Home
from tests import keys
from tests.depth import cases

ROOT = Path(__file__).parent
PURE = ("contract", "policy", "tree", "pipeline")
"""The rings that need nothing but themselves: what fails there says most, and is known in seconds."""
WAITING = ("e2e", "temporal", "bridge", "activities")
"""Those that wait for servers and processes, longest first: then several at once end at the same time."""


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rings = (*PURE, *WAITING)
    places = {ring: place for place, ring in enumerate(rings)}
    items.sort(key=lambda item: places.get(item.path.relative_to(ROOT).parts[0], len(rings)))


def pytest_collection_finish() -> None:
    """What is there by now stays: to look for garbage in it again and again takes a tenth of the time, or less."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def knows_no_secrets_of_other_tests() -> Iterator[None]:
    """A process learns the keys of the homes it works in, and goes through every text with all it knows."""
    yield
    if known := sys.modules.get("activities.redaction.known_values"):
        known.process.cache_clear()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of this release with nothing in it: made once, since that takes longer than most tests of it."""
    from activities.store.database import open_store  # the pure tests need not wait for it

    home = Home(tmp_path_factory.mktemp("empty")).ensure()
    open_store(home).dispose()
    return home.store


@pytest.fixture
def home(bare_home: Home, empty_store: Path) -> Home:
    """A service home that the environment points at, with nothing in its store."""
    shutil.copyfile(empty_store, bare_home.store)
    return bare_home


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A service home without a store."""
    root = tmp_path / "home"
    monkeypatch.setenv("SERVICE_HOME", str(root))
    for name in ("TEMPORAL_ADDRESS", "SERVICE_TEMPORAL_ADDRESS", "SERVICE_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    return keys.give(Home(root).ensure())
