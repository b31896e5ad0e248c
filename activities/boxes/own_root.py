"""A box like bubblewrap's, made by a service that is root: equal root, processes and limits, without the program.

A supervisor that is the first process of its pid namespace (`kernel.fork_as_first`) has a part of it already. What
bubblewrap would add costs a twentieth of the time of a short job: its own start, a second process that waits for the
first, a list of all mounts that it reads for each mount, and a user namespace, which root does not need.
"""

import contextlib
import functools
import os
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from activities.boxes import bwrap, kernel, system_files
from activities.boxes.box import Box, BoxKind
from activities.boxes.ownership import ways

ROOT = "/sys"
"""Mount point of the new root: every machine has this folder, and no box does."""

OWN = kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
NAME = "box"
PROCESSES = "hidepid=2"
"""Programs see only their own account's processes in the box, not the supervisor or the proxy: those are in the
machine's network, and `/proc/<pid>/net` would reveal it.
"""

DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
STREAMS = {name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}
DEVICE_LINKS = {"fd": "/proc/self/fd", "core": "/proc/kcore", "ptmx": "pts/ptmx", **STREAMS}
TERMINALS = "newinstance,ptmxmode=0666,mode=620"


@dataclass(frozen=True)
class Root:
    """The mounts of a box, planned by looking at the machine, so that the process that makes them has little left to
    do.
    """

    uid: int
    links: Mapping[str, str]
    """System folders that are symlinks, with their targets."""
    system: Mapping[str, str]
    """Other system folders and /etc, read-only, with their source on the machine."""
    scratch: Sequence[str]
    places: Mapping[str, bool]
    """Paths of the box; the value says if they are writable."""
    files: Sequence[str] = ()
    """All of these paths that are not folders."""

    def lay(self) -> None:
        """Mount the root for this process and its children. This process has to be the first of a pid namespace."""
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
        with contextlib.suppress(OSError):  # not a mount on this machine
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
        """Make the harmless devices, terminals of its own, and shared memory."""
        folder = f"{ROOT}/dev"
        os.mkdir(folder, 0o755)
        kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID, f"mode=755,size={bwrap.TMP_BYTES}")
        for path in (f"{folder}/pts", f"{folder}/shm"):
            os.mkdir(path, 0o755)
        os.chown(f"{folder}/shm", self.uid, self.uid)
        for name, number in DEVICES.items():
            try:
                os.mknod(f"{folder}/{name}", stat.S_IFCHR | 0o666, os.makedev(*number))
            except PermissionError:  # a container's root may not make devices
                os.mknod(f"{folder}/{name}", stat.S_IFREG | 0o666)
                kernel.mount(f"/dev/{name}", f"{folder}/{name}", None, kernel.MS_BIND)
        for name, target in DEVICE_LINKS.items():
            os.symlink(target, f"{folder}/{name}")
        kernel.mount("devpts", f"{folder}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, TERMINALS)

    def _put(self, source: str, path: str, *, writable: bool) -> None:
        """Bind-mount a path of the machine in the box, with its submounts."""
        if path in self.files:
            self._folder(os.path.dirname(path))
            with contextlib.suppress(FileExistsError):
                os.mknod(ROOT + path, stat.S_IFREG | 0o644)
        else:
            self._folder(path)
        kernel.mount(source, ROOT + path, None, kernel.MS_BIND | kernel.MS_REC)
        kernel.restrict_mounts(ROOT + path, read_only=not writable)

    def _folder(self, path: str) -> None:
        """Make a mount point. In writable folders the account also owns its parents."""
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
    """Plan the root for a box; return None if bubblewrap has to make it.

    Bubblewrap acts as the account of agents where root would follow an agent's link. It also makes boxes without a copy
    of /etc, which names that account.
    """
    if not (box.own_root and box.kind is BoxKind.BWRAP and box.uid is not None and box.etc and _stands_apart(box)):
        return None
    way = ways(box.uid)
    if not all(way(str(path)).firm for path in box.places):
        return None
    links, folders = _system(system_files.moment())
    shared = {**folders, "/etc": str(box.etc)}
    places = {str(path): writable for path, writable in box.places.items()}
    sources = shared | {path: path for path in places}
    files = [path for path, source in sources.items() if not os.path.isdir(source)]
    return Root(box.uid, links, shared, bwrap.scratch(box), places, files)


def _stands_apart(box: Box) -> bool:
    """Return whether all paths of the box are disjoint, and none is at the mount point of the root."""
    places = [f"{path}/" for path in box.places]
    apart = not any(inner != outer and inner.startswith(outer) for inner in places for outer in places)
    known = (*box.places, box.home, *box.scratch)
    return apart and not any(f"{path}/".startswith(("//", f"{ROOT}/")) for path in known)


@functools.lru_cache(1)
def _system(moment: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return the system's folders that are symlinks, and the others. Cached for one second."""
    there = [str(path) for path in system_files.folders()]
    links = {path: os.readlink(path) for path in there if os.path.islink(path)}
    return links, {path: path for path in there if path not in links}
