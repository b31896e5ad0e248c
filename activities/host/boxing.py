"""The box of a run, from its settings, its program and its policy, on this machine (ruling N2)."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from activities.agents.adapter import CannotLaunchError, Launch
from activities.boxes import bwrap, etc_copy, ownership, probes, system_files, try_boxes
from activities.boxes.allowed_hosts import ANY, Entry
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.network import LOOPBACK
from activities.boxes.ownership import LinkError
from activities.boxes.programs import needed
from activities.boxes.try_boxes import Machine
from activities.runtimes.table import SHELL, program_of
from activities.settings.home import Home
from activities.settings.model import RuntimeSection, Settings

WAYS_OUT = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_REFUSALS = (
    *("no such file or directory", "not found", "permission denied", "operation not permitted"),
    *("read-only file system", "network is unreachable", "could not resolve", "name resolution", "connection refused"),
)
"""Words in errors of programs that lack something, as inside a box."""

BASE_URL = "BASE_URL"
"""Suffix of variables by which an operator sends a program to another provider."""


@dataclass(frozen=True)
class Wanted:
    """A program that is about to be run."""

    runtime: str
    launch: Launch
    command: tuple[str, ...]
    """The part of its command line that an operator wrote."""
    cwd: Path
    run_dir: Path
    writes: bool = True
    """True if it may change its work folder."""
    lent: tuple[Path, ...] = ()
    """Folders that its work folder needs: objects of the operator's repository."""


def kind_for(settings: Settings, runtime: str) -> BoxKind:
    """Choose the kind of box for programs of a runtime on this machine."""
    section = settings.runtime(runtime)
    if section.box == "none":
        return BoxKind.NONE
    there = try_boxes.look(settings.worker.agents_uid)
    return kind_of(section, runtime, network_of(section, runtime)[0], there)[0]


def box_of(home: Home, settings: Settings, environ: Mapping[str, str], wanted: Wanted) -> Box | None:
    """Build the box; None if the settings forbid one. Raise CannotLaunchError if no box works here."""
    section, uid = settings.runtime(wanted.runtime), settings.worker.agents_uid
    if section.box == "none":
        return None
    there = try_boxes.look(uid)
    network, hosts = network_of(section, wanted.runtime)
    kind, leaks = kind_of(section, wanted.runtime, network, there)
    users_home, root = Path(environ.get("HOME") or Path.home()), home.root.resolve()
    own_read, own_write = _own_files(kind, there, wanted.launch)
    read = (*_said(section.read, home, wanted.runtime, users_home), *own_read, *wanted.lent)
    write = (*_said(section.write, home, wanted.runtime, users_home), *map(_made, own_write))
    parts = _needed(wanted.command, wanted.launch.env.get("PATH"), users_home, root, system_files.moment())
    return Box(
        kind=kind,
        network=network,
        cwd=wanted.cwd,
        home=users_home,
        tmp=wanted.run_dir / "tmp",
        cwd_writable=wanted.writes,
        read=_there([*parts, *read]),
        write=_there(write),
        scratch=wanted.launch.scratch,
        etc=_etc(home, kind, (*read, *write)),
        hosts=(*hosts, *_addressed(wanted.launch.env)) if network is Network.MODEL else (),
        upstream=next((environ[name] for name in WAYS_OUT if environ.get(name)), ""),
        uid=there.uid,
        own_network=there.own_network,
        program=there.program,
        leaks=leaks,
    )


def kind_of(section: RuntimeSection, runtime: str, network: Network, there: Machine) -> tuple[BoxKind, tuple[str, ...]]:
    """Choose the box that the settings ask for. Return it with the actions that it fails to prevent on this machine.

    Only a Landlock box that the settings name may leak; `auto` takes a box that holds, or none.
    """
    wanted = (BoxKind.BWRAP, BoxKind.LANDLOCK) if section.box == "auto" else (BoxKind(section.box),)
    faults = []
    for kind in wanted:
        fault = there.lacks(kind, network)
        if not fault:
            proof = probes.proved(kind, network, there)
            if proof.holds or (section.box == "landlock" and not proof.problem):
                return kind, proof.escaped
            fault = str(proof)
        faults.append(f"{kind}: {fault}")
    named = "none" if section.box == "landlock" else weaker(there)
    raise CannotLaunchError(
        f"no box of this machine holds agents of {runtime}, and without one none is run: {'; '.join(faults)}",
        f'{there.remedy}, or set [runtimes.{runtime}].box = "{named}"; then: service doctor',
    )


def weaker(there: Machine) -> str:
    """Return the box that settings may ask for on a machine where no box holds."""
    return "none" if there.lacks(BoxKind.LANDLOCK) else "landlock"


def refused(settings: Settings, runtime: str) -> CannotLaunchError | None:
    """Return the reason why agents of a runtime are not run here; None if they get the box of its settings."""
    section = settings.runtime(runtime)
    try:
        if section.box != "none":
            kind_of(section, runtime, network_of(section, runtime)[0], try_boxes.look(settings.worker.agents_uid))
    except CannotLaunchError as error:
        return error
    return None


def prove(settings: Settings) -> None:
    """Try the boxes of the runtimes before their first jobs, so that these need not wait for the trial."""
    for name in (*settings.configured_runtimes, SHELL):
        refused(settings, name)


def network_of(section: RuntimeSection, runtime: str) -> tuple[Network, tuple[str, ...]]:
    """Return the network of a runtime's agents, and the hosts that they reach with `model`.

    The default is the provider for the agents' programs, and for all others the internet without this machine and its
    neighbours.
    """
    program = program_of(runtime, section.adapter)
    usual = program.hosts if program else () if section.network else (ANY,)
    return Network(section.network or Network.MODEL), (*usual, *section.hosts)


def environment(box: Box, env: Mapping[str, str]) -> dict[str, str]:
    """Return a program's environment in its box, with a writable folder for temporary files."""
    return {**env, "TMPDIR": bwrap.TMPDIR if box.kind is BoxKind.BWRAP else str(box.tmp)}


def _own_files(kind: BoxKind, there: Machine, launch: Launch) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the paths that the program itself may read, and may change.

    Landlock mounts nothing, so a service that is not root cannot make the program's folder read-only but for sessions.
    There the program may change the whole folder, and no rule follows a link that it left inside.
    """
    if kind is not BoxKind.LANDLOCK or there.uid is not None:
        return launch.read, launch.write
    read, write = (
        tuple(path for path in paths if not any(path.is_relative_to(folder) for folder in launch.scratch))
        for paths in (launch.read, launch.write)
    )
    return read, (*write, *launch.scratch)


def hand_over(box: Box, settings: Iterable[Path] = ()) -> None:
    """Give the program's folders to the account of agents, including a work folder that it may only read.

    Let that account read the copies of the operator's `settings` in the program's folder.
    """
    for folder in (box.tmp.parent, box.tmp) if box.kind is BoxKind.LANDLOCK else ():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if box.uid is not None:
        try:
            ownership.hand_over(dict.fromkeys((*box.writable, box.cwd)), box.uid)
        except LinkError as error:
            raise CannotLaunchError(str(error), "service help boxes") from None
        ownership.let_read(settings, box.uid)
        for path in box.read:
            if path.parent == box.tmp.parent:  # of the run, as its prompt is: for the group of agents only
                os.chown(path, -1, box.uid)
                path.chmod(0o640)


def take_back(cwd: Path, *, kept: bool) -> None:
    """Give a work folder back to the service, once no process of the run is alive, whatever box it was in.

    Where it is `kept`, so is all that is in it. Otherwise it is about to be deleted, and is in a folder that only the
    service may enter.
    """
    if os.geteuid() == 0 and cwd.exists() and cwd.stat().st_uid != 0:
        ownership.hand_over((cwd,), 0, within=kept)


def _etc(home: Home, kind: BoxKind, places: Iterable[Path]) -> Path | None:
    """Return the copy of /etc, which serves all boxes but those with more of /etc. A missing home is not made for
    it.
    """
    if kind is not BoxKind.BWRAP or not home.root.exists() or any(path.is_relative_to("/etc") for path in places):
        return None
    return _etc_copy(home.boxes, system_files.moment())


@lru_cache(1)
def _etc_copy(folder: Path, moment: int) -> Path:
    return etc_copy.current(folder)


@lru_cache(256)
def _needed(command: tuple[str, ...], search: str | None, home: Path, root: Path, moment: int) -> tuple[Path, ...]:
    """List the paths that the command needs, without those that contain the service home `root`, or are inside it."""
    return tuple(path for path in needed(command, search, home) if not _meets(path, root))


def _said(places: Iterable[str], home: Home, runtime: str, users_home: Path) -> list[Path]:
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


def _made(path: Path) -> Path:
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600) if path.suffix else path.mkdir(mode=0o700, exist_ok=True)
    return path


def _there(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for path in paths if path.exists()))


def _addressed(env: Mapping[str, str]) -> list[str]:
    """Return the providers that the operator's own variables name, in the form of entries of the setting `hosts`."""
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
        Entry.read(entry)
    except ValueError:
        raise CannotLaunchError(
            f"{name} names the host {host!r}, which network model cannot let through",
            f"set {name} to an address with a valid host name and port; then: service doctor",
        ) from None
    return entry


def may_be_why(box: Box | None, runtime: str, said: str) -> str:
    """Return a note for the message of a failure that the box may have caused; empty if nothing suggests that."""
    if box is None or not any(word in said.lower() for word in _REFUSALS):
        return ""
    return (
        f" (it ran in a box: {box}; what it lacks there, [runtimes.{runtime}] lets it have by read, write or network)"
    )


def told(box: Box | None) -> str:
    """Return the name of the box for a run's record."""
    return str(box) if box else BoxKind.NONE.value
