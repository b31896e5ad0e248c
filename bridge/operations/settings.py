"""The settings in force, and the running processes that still use older ones (ruling K4)."""

import os
import time
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from activities.redaction.redact import redact_text
from activities.runtimes.known_runtimes import DRIVEN
from activities.settings import ready, toml
from activities.settings.in_use import Change, SettingsInUse, changes
from activities.settings.load import SettingsError
from bridge.machine import daemon_state
from bridge.operations.service import Service
from workflows.model.errors import RefusedError

DAEMON_READS = ("temporal", "bridge")
"""The sections that the daemon itself reads; its members read all sections."""

RESTART = "service daemon stop && service daemon start"
SERVE_AGAIN = "end that process, then: service bridge serve"
_HANDED = "temporal.address"
"""The setting that the daemon overrides for its members with the embedded server's address."""

_NAMED = "bridge.url"
"""The one setting of the bridge that the worker uses, in notifications."""

_OTHERS_TOO = ("worker.host", "worker.agents_uid", "worker.free_disk")
"""The settings of the worker that other processes use: the host's name, and what doctor checks."""


@dataclass(frozen=True)
class Process:
    """A running process, the settings it has read, and those that have changed since."""

    name: str
    pid: int
    read: SettingsInUse
    changed: tuple[Change, ...]
    restart: str
    fault: str = ""
    """Why the settings are unreadable now; the process keeps using the settings that it has read."""


def lines(service: Service, *, origins: bool) -> Iterator[str]:
    """Yield a file that `service config check` accepts; comments name the settings that are not in force yet."""
    reading = service.reading
    notes = {path: reading.origin(path) for path in reading.values} if origins else {}
    yield from toml.lines({**reading.values, **reading.typed}, notes)
    remarks = [line for process in processes(service) for line in (*in_words(process), *way_to_force(process))]
    if remarks:
        yield ""
    yield from (f"# {line}" for line in remarks)


def put(service: Service, table: str, line: str) -> None:
    """Add a setting to its table in the file. A runtime's table may be named after the runtime's program."""
    file = service.home.config
    old = file.read_text() if file.exists() else ""
    text = f"\n{old}"
    driver = DRIVEN.get(table.removeprefix("runtimes."))
    if driver and f"\n[runtimes.{driver.name}]\n" in text:
        table = f"runtimes.{driver.name}"
    head = f"[{table}]\n"
    if f"\n{head}" in text:
        new = text.replace(f"\n{head}", f"\n{head}{line}\n", 1)[1:]
    else:
        new = f"{old.rstrip()}\n\n{head}{line}\n".lstrip()
    try:
        tomllib.loads(new)
    except tomllib.TOMLDecodeError as error:
        raise RefusedError(f"{file} cannot be changed: {error}", f"write into its table [{table}]: {line}") from None
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(new)
    draft.replace(file)


@dataclass(frozen=True)
class SettingInForce:
    """One setting in force, with its origin and without secrets, as one would type it."""

    section: str
    key: str
    value: str
    origin: str


def in_force(service: Service) -> tuple[SettingInForce, ...]:
    """Return every setting, without passwords."""
    reading = service.reading
    values = {**reading.values, **reading.typed}
    return tuple(
        SettingInForce(toml.dotted_name(path[:-1]), path[-1], redact_text(toml.value(given)), reading.origin(path))
        for path, given in values.items()
    )


def as_json(service: Service, *, origins: bool) -> dict[str, Any]:
    """Return the JSON for `--json`: the settings by name, the file, and the processes that have read it."""
    reading = service.reading
    values = {**reading.values, **reading.typed}
    return {
        "settings": {
            toml.dotted_name(path): {"value": value, "origin": reading.origin(path)} if origins else value
            for path, value in values.items()
        },
        "file": reading.file.model_dump(),
        "processes": [
            asdict(process)
            | {"read": process.read.file.model_dump(), "changed": [each.model_dump() for each in process.changed]}
            for process in processes(service)
        ],
    }


def processes(service: Service) -> tuple[Process, ...]:
    """Return the running processes of this home, each compared with the current settings."""
    running = []
    seen = daemon_state.status(service.home)
    state = seen.state if seen.running else None
    handed = toml.value(state.temporal_address) if state and state.temporal_address else None
    if state and state.settings:
        running.append(_process(service, "daemon", state.pid, state.settings, RESTART, DAEMON_READS, handed))
    members = {child.pid for child in state.children} if state else set()
    home = service.home
    for name, path in (("worker", home.worker_ready), ("bridge", home.bridge_ready), ("github", home.github_ready)):
        member = ready.read(path)
        if member and member.settings and member.alive:
            restart = SERVE_AGAIN if name == "bridge" and member.pid not in members else RESTART
            running.append(_process(service, name, member.pid, member.settings, restart, handed=handed))
    return tuple(running)


def stale_processes(service: Service) -> tuple[Process, ...]:
    """Return the processes that use other settings than the current ones."""
    return tuple(process for process in processes(service) if process.changed or process.fault)


def in_words(process: Process) -> Iterator[str]:
    """Yield sentences: what the process has read and, if that is outdated, each difference."""
    at = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(process.read.file.read_at))
    digest = f"sha256 {process.read.file.digest[:12]}" if process.read.file.digest else "not there"
    who = f"the {process.name} (process {process.pid}) read {process.read.file.path} ({digest}) at {at}"
    if process.fault:
        yield f"{who}, and goes on with that: {process.fault}"
    elif process.changed:
        yield f"{who}; changed since:"
        yield from (
            f"  {change.key} is {change.there or 'not set'} there, {change.here or 'not set'} now"
            for change in process.changed
        )
    else:
        yield f"{who}: it works with these settings"


def way_to_force(process: Process) -> tuple[str, ...]:
    """Return a line with the command that makes the process use the current settings; empty if it already does."""
    return (f"  to put that in force: {process.restart}",) if process.changed else ()


def _process(
    service: Service,
    name: str,
    pid: int,
    read: SettingsInUse,
    restart: str,
    sections: Collection[str] | None = None,
    handed: str | None = None,
) -> Process:
    try:
        now = service.reading.in_use(sections)
    except SettingsError as error:
        return Process(name, pid, read, (), restart, error.message)
    differences = changes(now, read)
    ours = tuple(each for each in differences if not _is_no_matter(each, name, handed))
    return Process(name, pid, read, ours, restart)


def _is_no_matter(change: Change, name: str, handed: str | None) -> bool:
    """Return whether a change doesn't matter to this process: the daemon passed it the address, or it doesn't read the
    setting.
    """
    if change.key == _HANDED:
        return handed is not None and handed in (change.there, change.here)
    if name == "worker":
        return change.key.startswith("bridge.") and change.key != _NAMED
    return change.key.startswith("worker.") and change.key not in _OTHERS_TOO
