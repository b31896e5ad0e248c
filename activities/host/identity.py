"""This host's identity in the fleet: its home on its machine, its keys, its labels, and the address of its bridge."""

import hashlib
import platform
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url

from activities.runtimes import programs
from activities.runtimes.known_runtimes import SHELL, program_of
from activities.sealing import seal_key
from activities.settings import ready
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store.registry import host_rows
from workflows.policy.placement import NAMED, RUNTIME

if TYPE_CHECKING:
    from activities.host.context import Context

MACHINE_ID = Path("/etc/machine-id")
_ANY, _LOOPBACK = ("0.0.0.0", "[::]"), ("127.", "localhost", "[::1]")  # noqa: S104


@cache
def machine(home: Path) -> str:
    """Return an id of this home on this machine, which distinguishes two hosts of the same name.

    Containers of one image share its `machine-id`, so the host name counts too. Only the digest leaves the machine.
    """
    known = ""
    with suppress(OSError):
        known = MACHINE_ID.read_text().strip()
    return hashlib.sha256("\0".join((known, socket.gethostname(), str(home.resolve()))).encode()).hexdigest()


def bridge_address(home: Home, settings: Settings) -> str:
    """Return the URL at which other hosts reach this home's bridge; empty if it only listens for this machine."""
    bridge = ready.read(home.bridge_ready)
    if bridge is None or not bridge.alive or not bridge.address:
        return ""
    host, _, port = bridge.address.rpartition(":")
    if host.startswith(_LOOPBACK):
        return settings.bridge.url
    return f"http://{_own_address(settings) if host in _ANY else host}:{port}"


def _own_address(settings: Settings) -> str:
    """Return this machine's address on the way to the database, or else its name. Nothing is sent."""
    with suppress(OSError, ValueError):
        url = make_url(settings.store.url)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.connect((url.host, url.port or 5432))
            own = str(way.getsockname()[0])
        if not own.startswith(_LOOPBACK):
            return own
    return socket.gethostname()


def _labels(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return this host's labels; a runtime counts if its program is installed."""
    own = {*settings.worker.labels, f"{NAMED}{settings.host}", f"os:{platform.system().lower()}"}
    return tuple(sorted({*own, f"arch:{platform.machine()}", *_runtimes(settings, environ)}))


def _runtimes(settings: Settings, environ: Mapping[str, str]) -> set[str]:
    labels = {f"{RUNTIME}{SHELL}"}
    for name in {*settings.every_runtime} - {SHELL}:
        section = settings.runtime(name)
        program = program_of(name, section.adapter)
        if program and programs.find(program, section.command, environ):
            labels |= {f"{RUNTIME}{name}", f"{RUNTIME}{program.name}"}
        elif not program and section.command and shutil.which(section.command[0], path=environ.get("PATH")):
            labels |= {f"{RUNTIME}{name}"}
    return labels


def see(context: "Context", started_at: float) -> bool:
    """Record in the store that this host's worker is running. Return False if another machine has its name."""
    home, settings = context.home, context.settings
    return host_rows.see(
        context.store,
        context.host,
        slots=settings.worker.max_parallel_jobs,
        started_at=started_at,
        held=context.room.held,
        machine=machine(home.root),
        key=seal_key.fingerprint(seal_key.ensure(home.root)),
        address=bridge_address(home, settings),
        labels=_labels(settings, context.environ),
        taken=context.load(),
    )
