"""The box of a run: what its settings, its program and its policy come to on this machine (ruling N2)."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from activities.agents.adapter import CannotLaunchError, Launch
from activities.boxes import bwrap, etc_copy, machine, own_root, ownership, system
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.firm_places import LinkError
from activities.boxes.machine import Machine
from activities.boxes.network import LOOPBACK
from activities.boxes.programs import needed
from activities.runtimes.table import program_of
from activities.settings.home import Home
from activities.settings.model import RuntimeSection, Settings

WAYS_OUT = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_REFUSALS = (
    *("no such file or directory", "not found", "permission denied", "operation not permitted"),
    *("read-only file system", "network is unreachable", "could not resolve", "name resolution", "connection refused"),
)
"""Words of programs that miss something, as those do that a box keeps it from."""

BASE_URL = "BASE_URL"
"""How the variables end by which an operator sends a program to another provider."""


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
    """Whether it may change its work folder."""
    lent: tuple[Path, ...] = ()
    """Folders that its work folder is of no use without: objects of the operator's repository."""


def box_of(home: Home, settings: Settings, environ: Mapping[str, str], wanted: Wanted) -> Box | None:
    """The box, or None where the settings say that there is to be none. No box to be had is a fault with a way out."""
    section, uid = settings.runtime(wanted.runtime), settings.worker.agents_uid
    if section.box == "none":
        return None
    there = machine.look(uid)
    kind = kind_of(section, wanted.runtime, there)
    program = program_of(wanted.runtime, section.adapter)
    network = _network_of(section, wanted.runtime)
    if network is not Network.FULL and kind is BoxKind.BWRAP and not there.own_network:
        raise CannotLaunchError(
            f"this machine lets {wanted.runtime} have no network of its own, which network {network} takes",
            f'set [runtimes.{wanted.runtime}].network = "full", or box = "landlock"; then: service doctor',
        )
    users_home, root = Path(environ.get("HOME") or Path.home()), home.root.resolve()
    read = (*_said(section.read, home, wanted.runtime, users_home), *wanted.launch.read, *wanted.lent)
    write = (*_said(section.write, home, wanted.runtime, users_home), *map(_made, wanted.launch.write))
    parts = _needed(wanted.command, wanted.launch.env.get("PATH"), users_home, root, system.moment())
    box = Box(
        kind=kind,
        network=network,
        cwd=wanted.cwd,
        home=users_home,
        tmp=wanted.run_dir / "tmp",
        cwd_writable=wanted.writes,
        read=_there([*parts, *read]),
        write=_there(write),
        scratch=wanted.launch.scratch,
        etc=_etc(home, kind, there.uid, (*read, *write)),
        hosts=(*(program.hosts if program else ()), *section.hosts, *_addressed(wanted.launch.env)),
        upstream=next((environ[name] for name in WAYS_OUT if environ.get(name)), ""),
        uid=there.uid,
        own_network=there.own_network,
        own_root=there.own_root,
    )
    without_bubblewrap = kind is BoxKind.BWRAP and there.bwrap and not _can_be_planned(box)
    return _fallen_back(box, section, wanted.runtime, machine.look(uid, itself=True)) if without_bubblewrap else box


def kind_of(section: RuntimeSection, runtime: str, there: Machine) -> BoxKind:
    """What the settings ask for, if this machine has it."""
    kind = there.best if section.box == "auto" else BoxKind(section.box)
    if kind is None or (why := there.lacks(kind)):
        why = why if kind else f"{there.lacks(BoxKind.BWRAP)}; {there.lacks(BoxKind.LANDLOCK)}"
        raise CannotLaunchError(
            f"there is no box for {runtime} on this machine, and without one no agent is run: {why}",
            f'{machine.INSTALL}, or set [runtimes.{runtime}].box = "none"; then: service doctor',
        )
    return kind


def _can_be_planned(box: Box) -> bool:
    """Whether a service that is root can make it without bubblewrap."""
    try:
        return own_root.planned(box) is not None
    except OSError:
        return False


def _fallen_back(box: Box, section: RuntimeSection, runtime: str, there: Machine) -> Box:
    """What is had in the place of a box that only bubblewrap itself could make."""
    if not there.bwrap:  # it was installed meanwhile
        return box
    if section.box == "auto" and not there.lacks(BoxKind.LANDLOCK):
        return replace(box, kind=BoxKind.LANDLOCK, etc=None)
    raise CannotLaunchError(
        f"the box of {runtime} takes bubblewrap, for what [runtimes.{runtime}] lets it read or write: {there.bwrap}",
        f'{machine.INSTALL}, or set [runtimes.{runtime}].box = "landlock"; then: service doctor',
    )


def _network_of(section: RuntimeSection, runtime: str) -> Network:
    """What the settings say, else what programs of this kind need."""
    if section.network:
        return Network(section.network)
    return Network.MODEL if program_of(runtime, section.adapter) else Network.FULL


def environment(box: Box, env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a program in its box: its temporary files go where it may write."""
    return {**env, "TMPDIR": bwrap.TMPDIR if box.kind is BoxKind.BWRAP else str(box.tmp)}


def hand_over(box: Box) -> None:
    """Make its folders the account's that the program runs as: also a work folder that it may only read."""
    for folder in (box.tmp.parent, box.tmp) if box.kind is BoxKind.LANDLOCK else ():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if box.uid is not None:
        try:
            ownership.hand_over(dict.fromkeys((*box.writable, box.cwd)), box.uid)
        except LinkError as error:
            raise CannotLaunchError(str(error), "service help boxes") from None


def take_back(cwd: Path, *, kept: bool) -> None:
    """A work folder is the service's again, once nothing of the run is alive, whatever box it was in.

    Where it is `kept`, so is all that is in it. Otherwise it is about to be deleted, and it stands in a folder that
    only the service may enter.
    """
    if os.geteuid() == 0 and cwd.exists() and cwd.stat().st_uid != 0:
        ownership.hand_over((cwd,), 0, within=kept)


def _etc(home: Home, kind: BoxKind, uid: int | None, places: Iterable[Path]) -> Path | None:
    """One copy serves all boxes but those that are to have more of /etc."""
    if kind is not BoxKind.BWRAP or any(path.is_relative_to("/etc") for path in places):
        return None
    return _etc_copy(home.boxes, uid, system.moment())


@lru_cache(1)
def _etc_copy(folder: Path, uid: int | None, moment: int) -> Path:
    return etc_copy.current(folder, uid)


@lru_cache(256)
def _needed(command: tuple[str, ...], search: str | None, home: Path, root: Path, moment: int) -> tuple[Path, ...]:
    """What the command needs of the machine, without what holds or lies in the service home, which is `root`."""
    return tuple(path for path in needed(command, search, home) if not _meets(path, root))


def _said(places: Iterable[str], home: Home, runtime: str, users_home: Path) -> list[Path]:
    """The settings' folders; one that holds the service's own home, or lies in it, is none to be handed out."""
    paths = [users_home / place[2:] if place.startswith("~/") else Path(place) for place in places]
    if bad := next((path for path in paths if _meets(path, home.root.resolve())), None):
        raise CannotLaunchError(
            f"[runtimes.{runtime}] hands {bad} to agents, which holds the service's own secrets",
            f"edit {home.config}: name what the agents need, not a folder around it; then: service config check",
        )
    return paths


def _meets(path: Path, root: Path) -> bool:
    """Whether one of the two holds the other."""
    real = path.resolve()
    return root.is_relative_to(real) or real.is_relative_to(root)


def _made(path: Path) -> Path:
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600) if path.suffix else path.mkdir(mode=0o700)
    return path


def _there(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for path in paths if path.exists()))


def _addressed(env: Mapping[str, str]) -> list[str]:
    """The provider that the operator's own variables name."""
    found = [urlsplit(value) for name, value in env.items() if name.endswith(BASE_URL) and "://" in value]
    ports = {"http": 80, "https": 443}
    named = [(each.hostname or "", each.port or ports.get(each.scheme, 443)) for each in found]
    return [f"{LOOPBACK if host == 'localhost' else host}:{port}" for host, port in named if host]


def may_be_why(box: Box | None, runtime: str, said: str) -> str:
    """What to add to a failure that may come of the box; empty where nothing looks like it."""
    if box is None or not any(word in said.lower() for word in _REFUSALS):
        return ""
    return (
        f" (it ran in a box: {box}; what it lacks there, [runtimes.{runtime}] lets it have by read, write or network)"
    )


def told(box: Box | None) -> str:
    """How a run's record names its box."""
    return str(box) if box else BoxKind.NONE.value
