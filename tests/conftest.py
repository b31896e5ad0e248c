"""What every ring shares: a service home of its own for each test."""

from pathlib import Path

import pytest

from activities.settings.home import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty service home that the environment points at."""
    root = tmp_path / "home"
    monkeypatch.setenv("SERVICE_HOME", str(root))
    for name in ("TEMPORAL_ADDRESS", "SERVICE_TEMPORAL_ADDRESS", "SERVICE_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Home(root).ensure()
