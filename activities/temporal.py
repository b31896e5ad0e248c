"""Connecting to Temporal: ours, the one the environment names, or the one in `temporal.toml`."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from activities.settings.home import Home
from activities.settings.model import Settings
from workflows.errors import UnreachableError

if TYPE_CHECKING:
    from temporalio.client import Client

RPC_TIMEOUT = timedelta(seconds=5)


def connect_config(home: Home, settings: Settings) -> dict[str, Any]:
    """What `Client.connect` takes: our settings first, then the standard environment and profile, then our daemon."""
    from temporalio.envconfig import ClientConfig

    standard = dict(ClientConfig.load_client_connect_config(profile=settings.temporal.profile or None))
    if settings.temporal.address:
        return standard | {"target_host": settings.temporal.address, "namespace": settings.temporal.namespace}
    if standard.get("target_host"):
        return {"namespace": settings.temporal.namespace} | standard
    return {"target_host": embedded_address(home, settings), "namespace": settings.temporal.namespace}


def is_external(home: Home, settings: Settings) -> bool:
    """Whether somebody else runs the server."""
    match settings.temporal.mode:
        case "embedded":
            return False
        case "external":
            return True
        case "auto":
            return bool(connect_config(home, settings)["target_host"] != embedded_address(home, settings))


def embedded_address(home: Home, settings: Settings) -> str:
    """Where our own server listens: the running daemon knows, the settings say where it would."""
    try:
        state = json.loads(home.daemon_state.read_text())
        return str(state["temporal_address"])
    except (OSError, ValueError, KeyError):
        return f"127.0.0.1:{settings.temporal.port}"


async def connect(home: Home, settings: Settings) -> "Client":
    """A client, or a sentence that says what to start."""
    from temporalio.client import Client
    from temporalio.contrib.pydantic import pydantic_data_converter

    config = connect_config(home, settings)
    try:
        client = await Client.connect(**config, data_converter=pydantic_data_converter)
        await client.service_client.check_health(timeout=RPC_TIMEOUT)
    except (RuntimeError, OSError) as error:
        raise UnreachableError(
            f"Temporal cannot be reached at {config['target_host']}: {_first_line(error)}", "service daemon start"
        ) from None
    return client


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].removeprefix("Failed client connect: ")[:200]
