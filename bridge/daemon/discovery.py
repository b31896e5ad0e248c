"""Where Temporal is: what the environment says, what a profile says, or what the running daemon says."""

import os
import sys
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from activities.settings.home import Home
from bridge.daemon.control import status
from bridge.daemon.server import NAMESPACE
from workflows.errors import UnreachableError, UsageError


class Source(StrEnum):
    """Who said so."""

    HANDED_OVER = "SERVICE_TEMPORAL_ADDRESS"
    CONFIGURED = "TEMPORAL_ADDRESS or temporal.toml"
    DAEMON = "the running daemon"


class TemporalAddress(BaseModel):
    """A server to talk to. For `CONFIGURED` the rest of the connection (TLS, keys) is in the same place."""

    model_config = ConfigDict(frozen=True)

    address: str
    namespace: str
    source: Source
    ui_url: str | None = None


def discover(home: Home) -> TemporalAddress:
    """The Temporal to use, or why there is none."""
    if found := external_address():
        return found
    seen = status(home)
    if seen.running and seen.state and seen.state.temporal_address:
        state = seen.state
        return TemporalAddress(
            address=seen.state.temporal_address,
            namespace=state.namespace or NAMESPACE,
            source=Source.DAEMON,
            ui_url=state.ui_url,
        )
    raise UnreachableError(f"no daemon runs for {home.root}, and no cluster is configured", "service daemon start")


def external_address() -> TemporalAddress | None:
    """A cluster named outside of us: by the daemon that handed its own over, or by Temporal's standard settings."""
    if handed := os.environ.get("SERVICE_TEMPORAL_ADDRESS"):
        return TemporalAddress(address=handed, namespace=NAMESPACE, source=Source.HANDED_OVER)
    if not _configured():
        return None
    from temporalio.envconfig import ClientConfig

    try:
        config = ClientConfig.load_client_connect_config()
    except Exception as error:
        raise UsageError(
            f"Temporal's client configuration cannot be used: {error}", f"cat {_profile_file()}"
        ) from error
    address = config.get("target_host")
    if not address:
        return None
    return TemporalAddress(address=address, namespace=config.get("namespace") or "default", source=Source.CONFIGURED)


def _configured() -> bool:
    return any(name.startswith("TEMPORAL_") for name in os.environ) or _profile_file().exists()


def _profile_file() -> Path:
    """Where Temporal's own programs look for `temporal.toml`."""
    if named := os.environ.get("TEMPORAL_CONFIG_FILE"):
        return Path(named)
    if sys.platform == "darwin":
        folder = Path("~/Library/Application Support").expanduser()
    else:
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    return folder / "temporalio" / "temporal.toml"
