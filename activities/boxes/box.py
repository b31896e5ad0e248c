"""A box as a value: what a program in it may read, write and reach. Who makes it says the kind of box."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any


class BoxKind(StrEnum):
    """What holds a program."""

    BWRAP = "bwrap"
    """Bubblewrap: a root, processes and a network of its own."""
    LANDLOCK = "landlock"
    """The kernel's Landlock: the machine's own root, and most of it refused."""
    NONE = "none"


class Network(StrEnum):
    """What a program reaches of the network."""

    NONE = "none"
    MODEL = "model"
    """The hosts that are named, through a proxy."""
    FULL = "full"
    """Whatever the machine reaches, its own loopback included."""


@dataclass(frozen=True)
class Box:
    """What one run may do. Paths are the machine's, and the same inside."""

    kind: BoxKind
    network: Network
    cwd: Path
    home: Path
    """The home folder of the account; inside it is empty but for what `read` and `write` name."""
    tmp: Path
    """A private folder for temporary files, where the box has no /tmp of its own."""
    cwd_writable: bool = True
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    """Folders and files that are there."""
    scratch: tuple[Path, ...] = ()
    """Further folders that are empty and can be written, and are gone afterwards."""
    etc: Path | None = None
    """What stands in the place of /etc: a copy of what there is no secret. None: each of the files is laid there."""
    hosts: tuple[str, ...] = ()
    """With the network `model`: `name`, `name:port`, `*.name`, `*` (any that is no address of this machine or its
    local network), `127.0.0.1:port` (a service of this machine)."""
    upstream: str = ""
    """The machine's own way out, `http://host:port`, if it has to go through a proxy."""
    uid: int | None = None
    """The account to become first, when the service is root and the machine lets it lay things out for that account."""
    own_network: bool = True
    """Whether this machine lets a run have a network of its own."""
    own_root: bool = False
    """Whether a service that is root may make the box itself, as bubblewrap would."""
    program: str = "bwrap"
    """The bubblewrap that makes the box, where it takes one."""
    leaks: tuple[str, ...] = ()
    """Actions that a box should prevent and this one was found to allow on this machine."""

    def as_json(self) -> dict[str, Any]:
        """In the form that a run's specification holds."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        texts = {name: str(value) for name, value in told.items() if isinstance(value, Path)}
        lists = {name: list(map(str, told[name])) for name in ("read", "write", "scratch", "hosts", "leaks")}
        return told | texts | lists

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Box":
        """What `as_json` wrote."""
        paths = {name: Path(value[name]) for name in ("cwd", "home", "tmp", "etc") if value[name] is not None}
        lists = {name: tuple(map(Path, value[name])) for name in ("read", "write", "scratch")}
        kinds: dict[str, Any] = {"kind": BoxKind(value["kind"]), "network": Network(value["network"])}
        kinds |= {name: tuple(value.get(name, ())) for name in ("hosts", "leaks")}
        told = {each.name: value[each.name] for each in fields(cls) if each.name in value}  # earlier ones knew fewer
        return cls(**{**told, **paths, **lists, **kinds})

    @cached_property
    def places(self) -> dict[Path, bool]:
        """What is there beside the system, and whether it can be changed: outer folders first.

        What stands in one that is the same to the box is not named again.
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
        """All that can be changed in it and is there afterwards."""
        return tuple(path for path, writable in self.places.items() if writable)

    @property
    def readable(self) -> tuple[Path, ...]:
        """All that is there and cannot be changed, beside the system."""
        return tuple(path for path, writable in self.places.items() if not writable)

    def __str__(self) -> str:
        leaks = f"; in it a program can still {', '.join(self.leaks)}" if self.leaks else ""
        return f"{self.kind}, network {self.network}{leaks}"
