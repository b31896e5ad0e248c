"""A box as a value: what a program in it may read, write and reach. Bubblewrap enforces it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any


class Network(StrEnum):
    """The part of the network that a program reaches."""

    NONE = "none"
    MODEL = "model"
    """The listed hosts, through a proxy."""
    FULL = "full"
    """All that the machine reaches, its own loopback included."""


@dataclass(frozen=True)
class Box:
    """The rights of one run. Paths are the same inside the box and outside."""

    network: Network
    cwd: Path
    home: Path
    """The account's home folder. Inside the box it holds only the paths in `read` and `write`."""
    cwd_writable: bool = True
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    """Writable folders and files, which must exist."""
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
    """The account that runs the box, if the service is root and may make mounts for that account."""
    program: str = "bwrap"
    """The bubblewrap that makes the box."""

    def as_json(self) -> dict[str, Any]:
        """Serialise the box as the JSON of a run's specification."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        texts = {name: str(value) for name, value in values.items() if isinstance(value, Path)}
        lists = {name: list(map(str, values[name])) for name in ("read", "write", "scratch", "hosts")}
        return values | texts | lists

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Box":
        """Read a box that `as_json` wrote."""
        paths = {name: Path(value[name]) for name in ("cwd", "home", "etc") if value[name] is not None}
        lists = {name: tuple(map(Path, value[name])) for name in ("read", "write", "scratch")}
        return cls(**{**value, **paths, **lists, "hosts": tuple(value["hosts"]), "network": Network(value["network"])})

    @cached_property
    def places(self) -> dict[Path, bool]:
        """Return the paths that the box shows besides the system, outer folders first, and whether each is writable.

        A path inside another one with the same access is left out.
        """
        wanted = dict.fromkeys((*self.read, self.cwd), False)
        wanted |= dict.fromkeys((*self.write, *((self.cwd,) if self.cwd_writable else ())), True)
        places: dict[Path, bool] = {}
        for path in sorted(wanted, key=str):
            around = next((places[each] for each in path.parents if each in places), None)
            if around is not wanted[path]:
                places[path] = wanted[path]
        return places

    @property
    def writable(self) -> tuple[Path, ...]:
        """Return the writable paths whose changes persist after the run."""
        return tuple(path for path, writable in self.places.items() if writable)

    def __str__(self) -> str:
        return f"bwrap, network {self.network}"
