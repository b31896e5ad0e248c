"""A box like bubblewrap's, made by a service that is root: the same root, processes and limits, without the program.

A supervisor that is the first process of a namespace of its own (`kernel.fork_as_first`) has a part of it already. What
bubblewrap would add costs a twentieth of all that a short job takes: its own start, a second process that waits for
the first, a list of all mounts that it reads for each piece it mounts, and a user namespace, which root does not need.
"""

import contextlib
import functools
import os
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from activities.boxes import bwrap, kernel, system
from activities.boxes.box import Box, BoxKind
from activities.boxes.firm_places import ways

ROOT = "/sys"
"""Where it is laid: every machine has this folder, and no box does."""

OWN = kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
NAME = "box"
PROCESSES = "hidepid=2"
"""A program sees what its own account runs in the box, not the supervisor or the proxy: those are in the machine's
network, and `/proc/<pid>/net` would tell of it.
"""

DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
STREAMS = {name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}
DEVICE_LINKS = {"fd": "/proc/self/fd", "core": "/proc/kcore", "ptmx": "pts/ptmx", **STREAMS}
TERMINALS = "newinstance,ptmxmode=0666,mode=620"


@dataclass(frozen=True)
class Root:
    """What is to be laid there, found out by looking at the machine. Who does it has little left to work out."""

    uid: int
    links: Mapping[str, str]
    """Of the system's folders, those that are links."""
    system: Mapping[str, str]
    """The others, and what stands in the place of /etc: read-only. From where on the machine each comes."""
    scratch: Sequence[str]
    places: Mapping[str, bool]
    """What the box names; whether it can be changed."""
    files: Sequence[str] = ()
    """Of all these, what is no folder."""

    def lay(self) -> None:
        """What this process and its children see from here on. It has to be the first of a namespace."""
        kernel.own_mounts(OWN)
        socket.sethostname(NAME)
        mask = os.umask(0)
        try:
            self._lay()
        finally:
            os.umask(mask)
        kernel.change_root(ROOT)
        kernel.give_no_capabilities()

    def _lay(self) -> None:
        with contextlib.suppress(OSError):  # it is no mount here
            kernel.detach(ROOT)
        kernel.mount("tmpfs", ROOT, "tmpfs", kernel.MS_NOSUID, f"mode=755,size={bwrap.TMP_BYTES}")
        os.mkdir(f"{ROOT}/proc", 0o755)
        kernel.mount("proc", f"{ROOT}/proc", "proc", kernel.PLAIN | kernel.MS_NOEXEC, PROCESSES)
        self._devices()
        for path, target in self.links.items():
            self._folder(os.path.dirname(path))
            os.symlink(target, ROOT + path)
        for path, source in self.system.items():
            self._put(source, path, writable=False)
        owned = f"mode=755,uid={self.uid},gid={self.uid},size={bwrap.TMP_BYTES}"
        for path in self.scratch:
            self._folder(path)
            kernel.mount("tmpfs", ROOT + path, "tmpfs", kernel.PLAIN, owned)
        self._folder(bwrap.TMPDIR)
        for path, writable in self.places.items():
            self._put(path, path, writable=writable)

    def _devices(self) -> None:
        """The harmless ones, terminals of its own, and memory to share."""
        folder = f"{ROOT}/dev"
        os.mkdir(folder, 0o755)
        kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID, f"mode=755,size={bwrap.TMP_BYTES}")
        for path in (f"{folder}/pts", f"{folder}/shm"):
            os.mkdir(path, 0o755)
        os.chown(f"{folder}/shm", self.uid, self.uid)
        for name, number in DEVICES.items():
            try:
                os.mknod(f"{folder}/{name}", stat.S_IFCHR | 0o666, os.makedev(*number))
            except PermissionError:  # a container's root may not make one
                os.mknod(f"{folder}/{name}", stat.S_IFREG | 0o666)
                kernel.mount(f"/dev/{name}", f"{folder}/{name}", None, kernel.MS_BIND)
        for name, target in DEVICE_LINKS.items():
            os.symlink(target, f"{folder}/{name}")
        kernel.mount("devpts", f"{folder}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, TERMINALS)

    def _put(self, source: str, path: str, *, writable: bool) -> None:
        """What is there on the machine is there in the box, with all that is mounted below it."""
        if path in self.files:
            self._folder(os.path.dirname(path))
            with contextlib.suppress(FileExistsError):
                os.mknod(ROOT + path, stat.S_IFREG | 0o644)
        else:
            self._folder(path)
        kernel.mount(source, ROOT + path, None, kernel.MS_BIND | kernel.MS_REC)
        kernel.restrict_mounts(ROOT + path, read_only=not writable)

    def _folder(self, path: str) -> None:
        """A folder to lay something over. Where the account may write, also those on the way are its own."""
        with contextlib.suppress(FileExistsError):
            try:
                os.mkdir(ROOT + path, 0o755)
            except FileNotFoundError:
                self._folder(os.path.dirname(path))
                os.mkdir(ROOT + path, 0o755)
            if path.startswith(self._in_scratch):
                os.chown(ROOT + path, self.uid, self.uid)

    @functools.cached_property
    def _in_scratch(self) -> tuple[str, ...]:
        return tuple(f"{path}/" for path in self.scratch)


def planned(box: Box) -> Root | None:
    """How the root is laid out for a box. None: bubblewrap has to do that itself, as the account of agents, since root
    would follow a link that an agent has made; or the box has no copy of /etc, in which that account has a name.
    """
    if not (box.own_root and box.kind is BoxKind.BWRAP and box.uid is not None and box.etc and _stands_apart(box)):
        return None
    way = ways(box.uid)
    if not all(way(str(path)).firm for path in box.places):
        return None
    links, folders = _system(system.moment())
    shared = {**folders, "/etc": str(box.etc)}
    places = {str(path): writable for path, writable in box.places.items()}
    sources = shared | {path: path for path in places}
    files = [path for path, source in sources.items() if not os.path.isdir(source)]
    return Root(box.uid, links, shared, bwrap.scratch(box), places, files)


def _stands_apart(box: Box) -> bool:
    """Whether no place of the box stands in another one, or where the root is laid."""
    places = [f"{path}/" for path in box.places]
    apart = not any(inner != outer and inner.startswith(outer) for inner in places for outer in places)
    known = (*box.places, box.home, *box.scratch)
    return apart and not any(f"{path}/".startswith(("//", f"{ROOT}/")) for path in known)


@functools.lru_cache(1)
def _system(moment: int) -> tuple[dict[str, str], dict[str, str]]:
    """The system's folders that are links, and the others: the same for every box of a second."""
    there = [str(path) for path in system.folders()]
    links = {path: os.readlink(path) for path in there if os.path.islink(path)}
    return links, {path: path for path in there if path not in links}
