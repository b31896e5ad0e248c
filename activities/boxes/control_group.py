"""The control group of all agents of a service: how much memory and how many processes they may take together.

What forks supervisors enters it, so every program is born in it: to move a process takes milliseconds each time. Where
the machine lets this account make none, nothing bounds them. Standard library only, for supervisors load it.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MEMORY, PROCESSES = "memory", "pids"
LIMIT_FILES = {MEMORY: ("memory.max", "memory.limit_in_bytes"), PROCESSES: ("pids.max",)}
"""Where a limit is written: in groups of the second version, and of the first."""

KILL_FILES = ("memory.events", "memory.oom_control")
MEMBERS, HANDED_DOWN = "cgroup.procs", "cgroup.subtree_control"
FOLDERS = "SERVICE_CONTROL_GROUP"
"""The variable by which a program of ours is told which folders to enter. No agent's program gets it."""

MOST_PROCESSES = 8192


@dataclass(frozen=True)
class Group:
    """One that was made."""

    folders: Mapping[str, Path]
    """By what they limit: one and the same, or one in each of the hierarchies of the first version."""
    limits: Mapping[str, int]
    """Bytes and processes, by the same names."""

    @property
    def environment(self) -> dict[str, str]:
        """What a program of ours needs, to `join`."""
        return {FOLDERS: os.pathsep.join(dict.fromkeys(map(str, self.folders.values())))}

    @property
    def kills(self) -> int:
        """How many processes in it the kernel has ended because it had no more memory."""
        for name in KILL_FILES if MEMORY in self.folders else ():
            with contextlib.suppress(OSError):
                words = (self.folders[MEMORY] / name).read_text().split()
                return int(words[words.index("oom_kill") + 1])
        return 0

    def holds(self, pid: int) -> bool:
        """Whether this process is in it."""
        with contextlib.suppress(OSError):
            return all(str(pid) in (each / MEMBERS).read_text().split() for each in self.folders.values())
        return False

    def ensure(self) -> None:
        """Have it there: a worker that ends removes the one that it shares with the next."""
        for controller, folder in self.folders.items():
            _limited(folder, controller, self.limits[controller])

    def remove(self) -> bool:
        """Remove it, unless somebody is in it; whether it is gone."""
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return not any(folder.exists() for folder in self.folders.values())


def limits(percent: int) -> dict[str, int]:
    """This share of the machine's memory, none if it is 0; and a number of processes that only a fault reaches."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {PROCESSES: MOST_PROCESSES} | ({MEMORY: whole * percent // 100} if percent else {})


def made(name: str, limits: Mapping[str, int]) -> Group | None:
    """The group with those of these limits that this account may set here; None if it may set none."""
    try:
        mounts, own = Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
    except OSError:  # there are none on this system
        return None
    found = {}
    for controller, around in bases(mounts, own).items():
        if (limit := limits.get(controller)) is not None and _limited(around / name, controller, limit):
            found[controller] = around / name
    return Group(found, limits) if found else None


def join() -> None:
    """Be in the group that this program was told of, with all that comes of it from here on."""
    for folder in filter(None, os.environ.get(FOLDERS, "").split(os.pathsep)):
        with contextlib.suppress(OSError):
            Path(folder, MEMBERS).write_text("0")


def bases(mounts: str, own: str) -> dict[str, Path]:
    """The folders in which a group can be made, by what it would limit: `mountinfo` and `cgroup` as /proc has them."""
    paths = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        words = line.split()
        kind, options = words[words.index("-") + 1], words[-1].split(",")
        root, top = words[3], Path(words[4])
        if kind == "cgroup2" and "" in paths:
            whole = _below(top, root, paths[""])
            for controller in LIMIT_FILES:
                around = next((each for each in _around(top, whole) if _hands_down(each, controller)), None)
                if around is not None:
                    found[controller] = around
        for controller in LIMIT_FILES if kind == "cgroup" else ():
            if controller in options and os.access(there := _below(top, root, paths.get(controller, "/")), os.W_OK):
                found[controller] = there
    return found


def _below(top: Path, root: str, path: str) -> Path:
    """Where a group stands in what is mounted; a container may have mounted a part only."""
    return top / os.path.relpath(path, root) if f"{path}/".startswith(f"{root.rstrip('/')}/") else top


def _around(top: Path, own: Path) -> Iterator[Path]:
    """Beside this process's own group, which has members and so may not hand limits down; or in the machine's own."""
    if own != top:
        yield own.parent
    yield top


def _hands_down(folder: Path, controller: str) -> bool:
    """Whether a group in it can have such a limit, and a process of this account be moved there."""
    handed_down = folder / HANDED_DOWN
    with contextlib.suppress(OSError):
        if controller not in handed_down.read_text().split():
            handed_down.write_text(f"+{controller}")
        return os.access(folder, os.W_OK) and os.access(folder / MEMBERS, os.W_OK)
    return False


def _limited(folder: Path, controller: str, limit: int) -> bool:
    """Whether the group is there with this limit; one without it is not left behind."""
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        for name in LIMIT_FILES[controller]:
            if (folder / name).exists():
                (folder / name).write_text(str(limit))
                return True
    with contextlib.suppress(OSError):
        folder.rmdir()
    return False
