"""What every ring shares: a service home of its own for each test."""

import signal
from pathlib import Path

import pytest

from activities.settings.home import Home

ROOT = Path(__file__).parent
PURE = ("contract", "policy", "tree", "pipeline")
"""The rings that need nothing but themselves: what fails there says most, and is known in seconds."""
WAITING = ("e2e", "workflow", "bridge", "activities")
"""Those that wait for servers and processes, longest first: then several at once end at the same time."""


def pytest_configure() -> None:
    """A shell has what it starts in the background ignore interrupts, and what that starts inherits it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rings = (*PURE, *WAITING)
    places = {ring: place for place, ring in enumerate(rings)}
    items.sort(key=lambda item: places.get(item.path.relative_to(ROOT).parts[0], len(rings)))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty service home that the environment points at."""
    root = tmp_path / "home"
    monkeypatch.setenv("SERVICE_HOME", str(root))
    for name in ("TEMPORAL_ADDRESS", "SERVICE_TEMPORAL_ADDRESS", "SERVICE_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Home(root).ensure()
