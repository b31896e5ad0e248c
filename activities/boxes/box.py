"""A box as a value: what a program in it may read, write and reach. `BoxKind` says what enforces it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any


class BoxKind(StrEnum):
    """The mechanism that confines a program."""

    BWRAP = "bwrap"
    """Bubblewrap: its own root, processes and network."""
    LANDLOCK = "landlock"
    """The kernel's Landlock: the machine's own root, with access to most of it refused."""
    NONE = "none"


class Network(StrEnum):
    """The part of the network that a program reaches."""

    NONE = "none"
    MODEL = "model"
    """The listed hosts, through a proxy."""
    FULL = "full"
    """All that the machine reaches, its own loopback included."""


@dataclass(frozen=True)
class Box:
    """The rights of one run. Paths are the machine's, and the same inside."""

    kind: BoxKind
    network: Network
    cwd: Path
    home: Path
    """The account's home folder. Inside the box it holds only the paths in `read` and `write`."""
    tmp: Path
    """A private folder for temporary files, where the box has no /tmp of its own."""
    cwd_writable: bool = True
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    """Existing folders and files."""
    scratch: tuple[Path, ...] = ()
    """Further folders that start empty and writable, and are deleted afterwards."""
    etc: Path | None = None
    """A folder to mount over /etc: a copy of its files that hold no secrets. None mounts each of these files
    instead.
    """
    hosts: tuple[str, ...] = ()
    """With the network `model`: `name`, `name:port`, `*.name`, `*` (any host but this machine and its local
    network), `127.0.0.1:port` (a service of this machine).
    """
    upstream: str = ""
    """The machine's own outbound proxy, `http://host:port`, if it needs one."""
    uid: int | None = None
    """The account to become first, when the service is root and may make mounts for that account."""
    own_network: bool = True
    """True if this machine lets a run have its own network namespace."""
    program: str = "bwrap"
    """The bubblewrap that makes the box."""
    leaks: tuple[str, ...] = ()
    """Actions that a box should prevent, but this one was found to allow on this machine."""

    def as_json(self) -> dict[str, Any]:
        """Serialise the box as the JSON of a run's specification."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        texts = {name: str(value) for name, value in told.items() if isinstance(value, Path)}
        lists = {name: list(map(str, told[name])) for name in ("read", "write", "scratch", "hosts", "leaks")}
        return told | texts | lists

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Box":
        """Read a box that `as_json` wrote."""
        paths = {name: Path(value[name]) for name in ("cwd", "home", "tmp", "etc") if value[name] is not None}
        lists = {name: tuple(map(Path, value[name])) for name in ("read", "write", "scratch")}
        kinds: dict[str, Any] = {"kind": BoxKind(value["kind"]), "network": Network(value["network"])}
        kinds |= {name: tuple(value.get(name, ())) for name in ("hosts", "leaks")}
        told = {each.name: value[each.name] for each in fields(cls) if each.name in value}  # older releases
        return cls(**{**told, **paths, **lists, **kinds})

    @cached_property
    def places(self) -> dict[Path, bool]:
        """Map the paths that the box shows besides the system to whether they are writable, outer folders first.

        A path inside another one with the same access is left out.
        """
        own = (*((self.cwd,) if self.cwd_writable else ()), *((self.tmp,) if self.kind is BoxKind.LANDLOCK else ()))
        wanted = dict.fromkeys((*self.read, self.cwd), False) | dict.fromkeys((*self.write, *own), True)
        found: dict[Path, bool] = {}
        for path in sorted(wanted, key=str):
            around = next((found[each] for each in path.parents if each in found), None)
            if around is not wanted[path]:
                found[path] = wanted[path]
        return found

    @property
    def writable(self) -> tuple[Path, ...]:
        """Return the writable paths whose changes persist after the run."""
        return tuple(path for path, writable in self.places.items() if writable)

    @property
    def readable(self) -> tuple[Path, ...]:
        """Return the read-only paths that the box shows besides the system."""
        return tuple(path for path, writable in self.places.items() if not writable)

    def __str__(self) -> str:
        leaks = f"; in it a program can still {', '.join(self.leaks)}" if self.leaks else ""
        return f"{self.kind}, network {self.network}{leaks}"
