"""The box of a run, from its settings, its program and its policy, on this machine (ruling N2)."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from activities.agents.adapter import CannotLaunchError, Launch
from activities.boxes import bwrap, etc_copy, ownership, probes, system_files, try_boxes
from activities.boxes.allowed_hosts import ANY, HostEntry
from activities.boxes.box import Box, Network
from activities.boxes.network import LOOPBACK
from activities.boxes.ownership import LinkError
from activities.boxes.programs import required_files
from activities.boxes.try_boxes import Machine
from activities.runtimes.known_runtimes import SHELL, program_of
from activities.settings.home import Home
from activities.settings.model import RuntimeSection, Settings

WAYS_OUT = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_REFUSALS = (
    *("no such file or directory", "not found", "permission denied", "operation not permitted"),
    *("read-only file system", "network is unreachable", "could not resolve", "name resolution", "connection refused"),
)
"""Words in error messages that a box may have caused by hiding or forbidding something."""

BASE_URL = "BASE_URL"
"""Suffix of variables by which an operator sends a program to another provider."""


@dataclass(frozen=True)
class Wanted:
    """A program that is about to run in a box."""

    runtime: str
    launch: Launch
    command: tuple[str, ...]
    """The part of the program's command line that an operator wrote."""
    cwd: Path
    writes: bool = True
    """True if the program may change its work folder."""
    lent: tuple[Path, ...] = ()
    """Folders with objects of the operator's repository, which the work folder borrows."""


def box_of(home: Home, settings: Settings, environ: Mapping[str, str], wanted: Wanted) -> Box | None:
    """Build the box; None if the settings forbid one. Raise CannotLaunchError if no box works here."""
    section, uid = settings.runtime(wanted.runtime), settings.worker.agents_uid
    if section.box == "none":
        return None
    there = try_boxes.look(uid)
    network, hosts = network_of(section, wanted.runtime)
    require(network, wanted.runtime, there)
    users_home, root = Path(environ.get("HOME") or Path.home()), home.root.resolve()
    read = (*_settings_paths(section.read, home, wanted.runtime, users_home), *wanted.launch.read, *wanted.lent)
    write = (*_settings_paths(section.write, home, wanted.runtime, users_home), *map(_make, wanted.launch.write))
    parts = _program_files(wanted.command, wanted.launch.env.get("PATH"), users_home, root, system_files.moment())
    return Box(
        network=network,
        cwd=wanted.cwd,
        home=users_home,
        cwd_writable=wanted.writes,
        read=_there([*parts, *read]),
        write=_there(write),
        scratch=wanted.launch.scratch,
        etc=_etc(home, (*read, *write)),
        hosts=(*hosts, *_providers(wanted.launch.env)) if network is Network.MODEL else (),
        upstream=next((environ[name] for name in WAYS_OUT if environ.get(name)), ""),
        uid=there.uid,
        program=there.program,
    )


def require(network: Network, runtime: str, there: Machine) -> None:
    """Raise CannotLaunchError unless this machine can make the box, and a test program could not escape from it."""
    if not (fault := there.lacks(network)):
        proof = probes.proof_of(network, there)
        if proof.holds:
            return
        fault = str(proof)
    raise CannotLaunchError(
        f"no box of this machine holds agents of {runtime}, and without one none is run: bwrap: {fault}",
        f'{there.remedy}, or set [runtimes.{runtime}].box = "none" (in a container, the container is the box); '
        "then: service doctor",
    )


def refusal(settings: Settings, runtime: str) -> CannotLaunchError | None:
    """Return why agents of a runtime can't run on this machine; None if it can make the box that the settings
    require.
    """
    section = settings.runtime(runtime)
    try:
        if section.box != "none":
            require(network_of(section, runtime)[0], runtime, try_boxes.look(settings.worker.agents_uid))
    except CannotLaunchError as error:
        return error
    return None


def prove(settings: Settings) -> None:
    """Try the runtimes' boxes ahead of their first jobs, so that the jobs need not wait for the trial."""
    for name in (*settings.configured_runtimes, *settings.acp_runtimes, SHELL):
        refusal(settings, name)


def network_of(section: RuntimeSection, runtime: str) -> tuple[Network, tuple[str, ...]]:
    """Return the network of a runtime's agents, and the hosts that they reach with `model`.

    By default, agent programs of a known provider reach it; others reach the internet, but not this machine and its
    local network.
    """
    program = program_of(runtime, section.adapter)
    usual = program.hosts if program and program.hosts else () if section.network else (ANY,)
    return Network(section.network or Network.MODEL), (*usual, *section.hosts)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return a program's environment in its box, with a writable folder for temporary files."""
    return {**env, "TMPDIR": bwrap.TMPDIR}


def hand_over(box: Box, settings: Iterable[Path] = ()) -> None:
    """Give the program's folders to the account of agents, including a work folder that it may only read.

    Let that account read `settings`: the prompt, and the copies of the operator's settings in the program's folder.
    """
    if box.uid is not None:
        try:
            ownership.hand_over(dict.fromkeys((*box.writable, box.cwd)), box.uid)
        except LinkError as error:
            raise CannotLaunchError(str(error), "service help boxes") from None
        ownership.let_read(settings, box.uid)


def take_back(cwd: Path, *, kept: bool) -> None:
    """Give a work folder back to the service's account, after the run's last process has ended.

    With `kept`, all its content is given back, too. Otherwise it is about to be deleted, inside a folder that only the
    service may enter.
    """
    if os.geteuid() == 0 and cwd.exists() and cwd.stat().st_uid != 0:
        ownership.hand_over((cwd,), 0, within=kept)


def _etc(home: Home, places: Iterable[Path]) -> Path | None:
    """Return the shared copy of /etc; None for boxes that show more of /etc, and if the service home is missing."""
    if not home.root.exists() or any(path.is_relative_to("/etc") for path in places):
        return None
    return _etc_copy(home.boxes, system_files.moment())


@lru_cache(1)
def _etc_copy(folder: Path, moment: int) -> Path:
    return etc_copy.current(folder)


@lru_cache(256)
def _program_files(
    command: tuple[str, ...], search: str | None, home: Path, root: Path, moment: int
) -> tuple[Path, ...]:
    """List the paths that the command needs, without those that contain the service home `root`, or are inside it."""
    return tuple(path for path in required_files(command, search, home) if not _meets(path, root))


def _settings_paths(places: Iterable[str], home: Home, runtime: str, users_home: Path) -> list[Path]:
    """Resolve the settings' folders. Refuse a folder that contains the service home, or is inside it."""
    paths = [users_home / place[2:] if place.startswith("~/") else Path(place) for place in places]
    if bad := next((path for path in paths if _meets(path, home.root.resolve())), None):
        raise CannotLaunchError(
            f"[runtimes.{runtime}] hands {bad} to agents, which holds the service's own secrets",
            f"edit {home.config}: name what the agents need, not a folder around it; then: service config check",
        )
    return paths


def _meets(path: Path, root: Path) -> bool:
    """Return whether one of the two contains the other."""
    real = path.resolve()
    return root.is_relative_to(real) or real.is_relative_to(root)


def _make(path: Path) -> Path:
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600) if path.suffix else path.mkdir(mode=0o700, exist_ok=True)
    return path


def _there(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for path in paths if path.exists()))


def _providers(env: Mapping[str, str]) -> list[str]:
    """Return the providers' hosts that the operator's variables name, written like entries of the setting `hosts`."""
    urls = ((name, value) for name, value in env.items() if name.endswith(BASE_URL) and "://" in value)
    return [entry for name, value in urls if (entry := _provider(name, value))]


def _provider(name: str, url: str) -> str:
    """Return the host and port of a URL in a variable; empty if it has no host."""
    host = ""
    try:
        parts = urlsplit(url)
        if not (host := parts.hostname or ""):
            return ""
        named = LOOPBACK if host == "localhost" else f"[{host}]" if ":" in host else host
        entry = f"{named}:{parts.port or (80 if parts.scheme == 'http' else 443)}"
        HostEntry.read(entry)
    except ValueError:
        raise CannotLaunchError(
            f"{name} names the host {host!r}, which network model cannot let through",
            f"set {name} to an address with a valid host name and port; then: service doctor",
        ) from None
    return entry


def may_be_why(box: Box | None, runtime: str, message: str) -> str:
    """Return a note to add to a failure's message if the box may have caused the failure; else empty."""
    if box is None or not any(word in message.lower() for word in _REFUSALS):
        return ""
    return (
        f" (it ran in a box: {box}; what it lacks there, [runtimes.{runtime}] lets it have by read, write or network)"
    )


def name_of(box: Box | None) -> str:
    """Return the name of the box for a run's record."""
    return str(box) if box else "none"
