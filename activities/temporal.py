"""Connecting to Temporal: to the daemon's own server, or the one that settings, environment or profile name."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from activities.settings.home import Home
from activities.settings.model import Settings
from workflows.model.errors import UnreachableError, UsageError

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.converter import DataConverter

RPC_TIMEOUT = timedelta(seconds=5)
CONNECT_SECONDS = 20.0
"""Timeout of the server's first answer. The SDK itself waits for minutes if a server accepts the connection but doesn't
answer.
"""

FRESH_SECONDS = 1.0
"""Seconds for which a server that answered is not checked again; if it has gone since, the next call fails."""

_KEPT: "dict[str, _Reached]" = {}
"""The last client that reached its server; it serves any thread and any event loop."""

_MESSAGE = re.compile(r'message: "([^"]+)"')
"""The sentence inside the SDK's nested connection errors."""


def external_config(settings: Settings) -> dict[str, Any] | None:
    """Return the connection arguments of a foreign server, from the settings, else from Temporal's standard variables
    and profile; None if the service runs its own.
    """
    from temporalio.envconfig import ClientConfig

    if settings.temporal.mode == "embedded":
        return None
    try:
        standard = dict(ClientConfig.load_client_connect_config(profile=settings.temporal.profile or None))
    except Exception as error:
        raise UsageError(f"Temporal's client configuration cannot be used: {error}", "temporal config list") from None
    if settings.temporal.address:
        return standard | {"target_host": settings.temporal.address, "namespace": settings.temporal.namespace}
    if standard.get("target_host"):
        return {"namespace": settings.temporal.namespace} | standard
    if settings.temporal.mode == "external":
        raise UsageError("[temporal].mode is external and no address is set", "export TEMPORAL_ADDRESS=HOST:7233")
    return None


def connect_config(home: Home, settings: Settings) -> dict[str, Any]:
    """Return the arguments of `Client.connect`."""
    if external := external_config(settings):
        return external
    try:
        address = str(json.loads(home.daemon_state.read_text())["temporal_address"])
    except (OSError, ValueError, KeyError):  # no daemon runs: its server would listen here
        address = f"127.0.0.1:{settings.temporal.port}"
    return {"target_host": address, "namespace": settings.temporal.namespace}


def namespace_of(home: Home, settings: Settings) -> str:
    """Return the namespace in which this home works."""
    return str(connect_config(home, settings)["namespace"])


def data_converter(home: Home, settings: Settings) -> "DataConverter":
    """Return the data converter of a home's clients and workers, with the seals of its keys; make a key if the home has
    none.
    """
    from activities.sealing.converter import sealing_converter

    return sealing_converter(home.ensure().root, encrypt=settings.temporal.encrypt)


@dataclass(frozen=True)
class _Reached:
    home: Path
    settings: Settings
    config: dict[str, Any]
    client: "Client"
    at: float


async def connect(home: Home, settings: Settings) -> "Client":
    """Return this process's client, which reconnects by itself; raise UnreachableError with the command that helps."""
    from temporalio.client import Client

    from activities.redaction.on_temporal import Hiding
    from activities.store.secret_hosts import kept_secrets

    kept = _KEPT.get("client")
    if kept and (kept.home, kept.settings) == (home.root, settings) and time.monotonic() - kept.at < FRESH_SECONDS:
        return kept.client
    config = connect_config(home, settings) | {"data_converter": data_converter(home, settings)}
    known = kept.client if kept and kept.config == config else None
    with _reaching(settings, config["target_host"]):
        hiding = [Hiding(kept_secrets(home, settings))]
        client = known or await _answer_in_time(Client.connect(**config, interceptors=hiding))
        await client.service_client.check_health(timeout=RPC_TIMEOUT)
        _KEPT["client"] = _Reached(home.root, settings, config, client, time.monotonic())
    return client


async def connect_to_look(home: Home, settings: Settings) -> "Client":
    """Connect without seals, for a caller that only reads from the server: no key is made in the home."""
    from temporalio.client import Client

    config = connect_config(home, settings)
    with _reaching(settings, config["target_host"]):
        client = await _answer_in_time(Client.connect(**config))
        await client.service_client.check_health(timeout=RPC_TIMEOUT)
    return client


async def _answer_in_time(connecting: "Awaitable[Client]") -> "Client":
    """Connect, or raise if the server does not answer in time."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await connecting
    except TimeoutError:
        raise OSError(f"it has not answered for {CONNECT_SECONDS:g} s") from None


@contextmanager
def _reaching(settings: Settings, address: str) -> Iterator[None]:
    from temporalio.service import RPCError

    try:
        yield
    except (RPCError, RuntimeError, OSError) as error:
        match = _MESSAGE.search(str(error))
        why = match[1] if match else str(error).partition("\n")[0].removeprefix("Failed client connect: ")[:200]
        raise UnreachableError(
            f"Temporal cannot be reached at {address}: {why}", way_to_server(settings, address)
        ) from None


def way_to_server(settings: Settings, address: str) -> str:
    """Return the command that starts the service's own server, or checks a foreign one."""
    if external_config(settings) is None:
        return "service daemon start"
    origin = "where the address is from: service config show --origin"
    return f"temporal operator cluster health --address {address}  ({origin})"
