"""The Temporal server of a command: from settings, then environment and profile, then the daemon's own."""

import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from activities import temporal
from activities.settings.home import Home
from activities.settings.load import load_settings
from activities.settings.model import Settings
from activities.settings.model import Temporal as TemporalSection
from activities.temporal import connect, connect_config, connect_to_look, external_config
from tests.waiting import soon
from workflows.model.errors import UnreachableError, UsageError


@pytest.fixture
def profile(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty `temporal.toml` that Temporal's programs would read."""
    path = tmp_path / "temporal.toml"
    path.touch()
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(path))
    return path


def test_the_daemon_knows_where_its_server_listens(home: Home, profile: Path) -> None:
    assert connect_config(home, Settings()) == {"target_host": "127.0.0.1:7233", "namespace": "service"}
    home.daemon_state.write_text(json.dumps({"temporal_address": "127.0.0.1:9999"}))
    assert connect_config(home, Settings())["target_host"] == "127.0.0.1:9999"


@pytest.mark.ruling("K4")
def test_settings_come_before_the_environment_and_the_environment_before_the_daemon(
    home: Home, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile.write_text('[profile.default]\naddress = "cluster.example:7233"\nnamespace = "ours"\n')
    config = connect_config(home, load_settings(home))
    assert (config["target_host"], config["namespace"]) == ("cluster.example:7233", "ours")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "other.example:7233")
    assert connect_config(home, load_settings(home))["target_host"] == "other.example:7233"
    monkeypatch.setenv("SERVICE_TEMPORAL_ADDRESS", "127.0.0.1:1")
    assert connect_config(home, load_settings(home))["target_host"] == "127.0.0.1:1"


def test_embedded_means_ours_whatever_the_environment_says(
    home: Home, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "other.example:7233")
    assert external_config(Settings(temporal=TemporalSection(mode="embedded"))) is None


def test_external_without_an_address_is_a_fault_of_the_settings(home: Home, profile: Path) -> None:
    with pytest.raises(UsageError, match="no address is set"):
        external_config(Settings(temporal=TemporalSection(mode="external")))


def test_a_profile_that_cannot_be_read_is_said(home: Home, profile: Path) -> None:
    profile.write_text("= =")
    with pytest.raises(UsageError, match="Temporal's client configuration cannot be used"):
        connect_config(home, Settings())


async def test_a_server_that_is_not_there_is_said_with_what_to_start(home: Home, profile: Path) -> None:
    with pytest.raises(
        UnreachableError, match=r"^Temporal cannot be reached at 127\.0\.0\.1:1: Connection refused"
    ) as caught:
        await connect(home, Settings(temporal=TemporalSection(address="127.0.0.1:1")))
    assert caught.value.hint.startswith("temporal operator cluster health --address 127.0.0.1:1 ")
    with pytest.raises(UnreachableError) as own:
        await connect(home, Settings(temporal=TemporalSection(mode="embedded", port=1)))
    assert own.value.hint == "service daemon start"


async def test_a_look_at_a_server_makes_nothing_in_the_home(tmp_path: Path, profile: Path) -> None:
    with pytest.raises(UnreachableError, match=r"^Temporal cannot be reached at 127\.0\.0\.1:1"):
        await connect_to_look(Home(tmp_path / "new"), Settings(temporal=TemporalSection(address="127.0.0.1:1")))
    assert not (tmp_path / "new").exists()


@pytest.mark.ruling("K6")
@pytest.mark.parametrize("how", [connect, connect_to_look])
async def test_a_server_that_takes_the_connection_and_does_not_answer_is_said(
    home: Home, monkeypatch: pytest.MonkeyPatch, how: Callable[[Home, Settings], Awaitable[object]]
) -> None:
    monkeypatch.setattr(temporal, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnreachableError, match=f"cannot be reached at {address}: it has not answered for 0.5 s"):
            await soon(how(home, Settings(temporal=TemporalSection(address=address))))
