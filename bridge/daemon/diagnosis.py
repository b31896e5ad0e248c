"""Diagnosis of a failed start: the server's last output, turned into a cause and the next command to type.

The server's exit codes don't tell causes apart.
"""

import re

from activities.settings.home import Home
from bridge.machine.ports import port_in_use
from bridge.machine.writable import not_writable
from workflows.model.errors import ServiceError

_PORT = re.compile(r"can't set (frontend|UI) port (\d+)")
_PORT_LOST = re.compile(r"listen tcp \S*:(\d+): bind: address already in use")
"""Matches the server's message for a port that was free when checked and in use when it listened."""
_BRIDGE_PORT = re.compile(r"error: port (\d+), fixed for the bridge, is taken")
_ERROR = re.compile(r"^error: (.*?)(?:\ntry: (.*?))?\Z", re.MULTILINE | re.DOTALL)
_UNREADABLE = re.compile(
    r"file is not a database|disk image is malformed|no such table|database corruption", re.IGNORECASE
)
_DISK_FULL = re.compile(r"disk is full|no space left|disk I/O error", re.IGNORECASE)
_NO_ACCESS = re.compile(
    r"permission denied|readonly database|unable to open database|read-only file system", re.IGNORECASE
)
_LOCKED = re.compile(r"database is locked", re.IGNORECASE)


def diagnose_server(log: str, home: Home) -> ServiceError | None:
    """Return the known cause in the server's output, or None."""
    if port := _PORT.search(log):
        return port_in_use(int(port[2]), "the web UI" if port[1] == "UI" else "Temporal")
    if lost := _PORT_LOST.search(log):
        return port_in_use(int(lost[1]), "Temporal")
    if _UNREADABLE.search(log):
        aside = home.root / "temporal-unreadable"
        return ServiceError(
            f"the Temporal database {home.temporal_db} cannot be read: it is damaged or not a Temporal database; "
            "restore a backup, or set it aside and start empty (running trees are lost, records stay)",
            f"mkdir -p '{aside}' && mv '{home.temporal_db}'* '{aside}'/ && service daemon start",
        )
    if _DISK_FULL.search(log):
        return ServiceError(
            f"the disk that holds {home.root} is full",
            f"df -h {home.root}  (make room, then start again)",
        )
    if _NO_ACCESS.search(log):
        return not_writable(home, "the server may not write its database")
    if _LOCKED.search(log):
        return ServiceError(f"another program keeps {home.temporal_db} locked", f"fuser -v {home.temporal_db}")
    return None


def database_in_use(home: Home, pid: int | None) -> ServiceError:
    """Return the refusal of a second server: two on one database file corrupt it."""
    return ServiceError(
        f"another Temporal server (process {pid or 'unknown'}) has the database {home.temporal_db} open; "
        "two servers on one database corrupt it",
        f"kill {pid}" if pid else f"fuser -v {home.temporal_db}",
    )


def diagnose_bridge(log: str) -> ServiceError | None:
    """Return the error that the bridge printed, or the error for a port in use."""
    if port := _BRIDGE_PORT.search(log):
        return port_in_use(int(port[1]), "the bridge")
    return diagnose_program(log)


def diagnose_program(log: str) -> ServiceError | None:
    """Return the error that one of the service's own programs printed, with the command to type."""
    match = _ERROR.search(log.rstrip())
    return ServiceError(match[1], match[2] or "") if match else None
