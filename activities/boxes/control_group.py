"""Control groups of agents: limits for all agents of a service together, and for each job.

The group of a host holds one subgroup for the service's own processes (fork server, supervisors), and one for each job.
A supervisor enters a job's group so that the command is born in it. Then it leaves, so that it survives a job that runs
out of memory.

Where the machine lets this account make no groups, agents run without limits. Standard library only: supervisors load
this module.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MEMORY, PROCESSES, CPU = "memory", "pids", "cpu"
LIMIT_FILES = {
    MEMORY: ("memory.max", "memory.limit_in_bytes"),
    PROCESSES: ("pids.max",),
    CPU: ("cpu.weight", "cpu.shares"),
}
"""The files that set a limit, in cgroup v2 and v1."""

KILL_FILES = ("memory.events", "memory.oom_control")
AS_ONE, BELOW_TOO = "memory.oom.group", "memory.use_hierarchy"
MEMBERS, HANDED_DOWN = "cgroup.procs", "cgroup.subtree_control"
THREADS = "tasks"
"""The members of a group of cgroup v1, by thread. A thread moves itself in 0.3 ms. Before a whole process moves, the
kernel waits for an RCU grace period: 5 to 20 ms.
"""
OWN = "own"
"""Subgroup of the service's own processes. In cgroup v2 a group with subgroups can't have members itself."""

VARIABLE = "SERVICE_CONTROL_GROUP"
"""Environment variable that passes the group to the service's programs. Agents do not get it."""

MOST_PROCESSES = 8192
WEIGHT, SHARES = 50, 4096
"""CPU weight of all jobs together. In v2 it is half the default weight of a group. In v1, which weighs groups against
single processes, it is as much as four processes. Jobs have equal weight among themselves.
"""

OUT_OF_ITS_OWN = "it used all of its memory: {} MiB, see [worker].job_memory"
OUT_OF_ALL = "the kernel killed it for lack of memory{}, see [worker].agents_memory"
NO_MORE_PROCESSES = "it was refused more processes: it may have {} with their threads, see [worker].job_pids"
MIB = 1 << 20


@dataclass(frozen=True)
class Group:
    """The group of a host's agents. Without folders every method is a no-op."""

    folders: Mapping[str, Path]
    """Folder by controller: the same folder for all in cgroup v2, one in each hierarchy in v1."""
    limits: Mapping[str, int]
    """Limits of all jobs together, by controller: bytes, processes, weight."""
    jobs: Mapping[str, int] = field(default_factory=dict)
    """Limits of each single job, by controller."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variable that passes this group to a program of the service."""
        folders = {controller: str(folder) for controller, folder in self.folders.items()}
        return {VARIABLE: json.dumps([folders, dict(self.limits), dict(self.jobs)])}

    def holds(self, pid: int) -> bool:
        """Return whether the process is in the subgroup of the service's own processes."""
        with contextlib.suppress(OSError):
            return all(str(pid) in (each / OWN / MEMBERS).read_text().split() for each in self.folders.values())
        return False

    def ensure(self) -> None:
        """Create the group if it is missing: the previous worker, which shares it, may have removed it when it
        ended.
        """
        for controller, folder in self.folders.items():
            _set_limit(folder, controller, self.limits.get(controller))
            if (folder / HANDED_DOWN).exists():
                _hands_down(folder, controller)
            with contextlib.suppress(OSError):
                (folder / OWN).mkdir(exist_ok=True)

    def enter(self) -> None:
        """Move this process, and so its future children, to the subgroup of the service's own processes."""
        for folder in set(self.folders.values()):
            _enter(folder / OWN)

    def job(self) -> "JobGroup":
        """Return a group with a unique name for one job. `enter` creates it."""
        return JobGroup(self, os.urandom(8).hex())

    def sweep(self) -> None:
        """Remove the subgroups without processes."""
        for subgroup in (below for folder in set(self.folders.values()) for below in folder.glob("*/")):
            with contextlib.suppress(OSError):
                subgroup.rmdir()

    def remove(self) -> bool:
        """Remove the group if it has no processes. Return whether it is gone."""
        self.sweep()
        return _remove(self.folders)


@dataclass(frozen=True)
class JobGroup:
    """The control group of one job."""

    around: Group
    name: str

    @property
    def folders(self) -> dict[str, Path]:
        """Return the group's folder by controller."""
        return {controller: folder / self.name for controller, folder in self.around.folders.items()}

    def make(self) -> set[str]:
        """Create the group. Return the controllers whose limits apply."""
        limits = self.around.jobs
        made = {each for each, folder in self.folders.items() if _set_limit(folder, each, limits.get(each))}
        if self._ends_as_one:
            with contextlib.suppress(OSError):
                (self.folders[MEMORY] / AS_ONE).write_text("1")
        return made & limits.keys()

    def enter(self) -> None:
        """Create the group, and move this process and so its future children into it."""
        self.make()
        for folder in set(self.folders.values()):
            _enter(folder)

    def leave(self) -> None:
        """Move this process out of the job's memory group, so that the job's out-of-memory kill spares it; its children
        stay.
        """
        if MEMORY in self.folders:
            _enter(self.around.folders[MEMORY] / OWN)

    def remove(self) -> bool:
        """Remove the group if it has no processes. Return whether it is gone."""
        return _remove(self.folders)

    @property
    def needs_watch(self) -> bool:
        """Return whether an out-of-memory kill can leave processes of the job alive, which the service must end."""
        return MEMORY in self.folders and not self._ends_as_one

    @property
    def kills(self) -> int:
        """Count the out-of-memory kills in the group."""
        return sum(_count(self.folders[MEMORY] / name, "oom_kill") for name in KILL_FILES if MEMORY in self.folders)

    def ran_out(self) -> str:
        """Describe the limit that the job reached; empty if it reached none."""
        own, all_jobs = self.around.jobs, self.around.limits
        if self.kills and MEMORY in own and self._met_its_memory:
            return OUT_OF_ITS_OWN.format(own[MEMORY] // MIB)
        if self.kills:
            bound = f": all agents together may take {all_jobs[MEMORY] // MIB} MiB" if MEMORY in all_jobs else ""
            return OUT_OF_ALL.format(bound)
        if PROCESSES in own.keys() & self.folders.keys() and _count(self.folders[PROCESSES] / "pids.events", "max"):
            return NO_MORE_PROCESSES.format(own[PROCESSES])
        return ""

    @property
    def _ends_as_one(self) -> bool:
        return MEMORY in self.folders and (self.folders[MEMORY] / AS_ONE).exists()

    @property
    def _met_its_memory(self) -> bool:
        """Return whether the job reached its own memory limit, not the limit of all jobs together."""
        folder = self.folders[MEMORY]
        with contextlib.suppress(OSError, ValueError):  # cgroup v1
            return int((folder / "memory.failcnt").read_text()) > 0
        return _count(folder / "memory.events", "oom") > 0


NONE = Group({}, {})


def limits(percent: int) -> dict[str, int]:
    """Return the limits of all jobs together: this percentage of the machine's memory (0: no limit), and a number of
    processes so high that only runaway jobs reach it.
    """
    return {PROCESSES: MOST_PROCESSES, CPU: WEIGHT} | _memory(percent)


def job_limits(percent: int, processes: int) -> dict[str, int]:
    """Return the limits of each job: this percentage of the machine's memory (0: no limit), and this number of
    processes and threads.
    """
    return {PROCESSES: processes} | _memory(percent)


def _memory(percent: int) -> dict[str, int]:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {MEMORY: whole * percent // 100} if percent else {}


def make(
    name: str, limits: Mapping[str, int], jobs: Mapping[str, int] = NONE.jobs, pid: int | None = None
) -> Group | None:
    """Make the group with the limits that this account may set here; return None if it may set none of them.

    `pid` makes the group where that process could make it, instead of this process.
    """
    try:
        mounts, own = Path("/proc/self/mountinfo").read_text(), Path(f"/proc/{pid or 'self'}/cgroup").read_text()
    except OSError:  # this system has no control groups
        return None
    wanted = limits.keys() | jobs.keys()
    tried = {each: around / name for each, around in bases(mounts, own).items() if each in wanted}
    folders = {each: folder for each, folder in tried.items() if _set_limit(folder, each, limits.get(each))}
    _remove({each: folder for each, folder in tried.items() if folder not in folders.values()})
    if not folders:
        return None
    group = Group(folders, limits, jobs)
    group.ensure()
    return group


def from_environment() -> Group:
    """Return the agents' control group that the service passed in the environment; an empty group if it passed none."""
    with contextlib.suppress(KeyError, ValueError):
        folders, limits, jobs = json.loads(os.environ[VARIABLE])
        return Group({controller: Path(folder) for controller, folder in folders.items()}, limits, jobs)
    return NONE


def bases(mounts: str, own: str) -> dict[str, Path]:
    """Return the folders in which a group can be made, by controller. `mounts` and `own` are /proc's `mountinfo` and
    `cgroup`.
    """
    paths = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    folders: dict[str, Path] = {}
    for line in mounts.splitlines():
        words = line.split()
        kind, options = words[words.index("-") + 1], words[-1].split(",")
        root, top = words[3], Path(words[4])
        if kind == "cgroup2" and "" in paths:
            folders |= _of_the_second(top, _below(top, root, paths[""]))
        for controller in LIMIT_FILES if kind == "cgroup" else ():
            if controller in options and os.access(there := _below(top, root, paths.get(controller, "/")), os.W_OK):
                folders[controller] = there
    return folders


def _below(top: Path, root: str, path: str) -> Path:
    """Return the folder of a group below a mount point, which in a container may show only a part of the hierarchy."""
    return top / os.path.relpath(path, root) if f"{path}/".startswith(f"{root.rstrip('/')}/") else top


def _of_the_second(top: Path, own: Path) -> dict[str, Path]:
    """Return the cgroup v2 folder in which most limits can be set, for all controllers: in v2 a process is in one group
    only.
    """
    return max(
        ({each: around for each in LIMIT_FILES if _hands_down(around, each)} for around in _around(top, own)), key=len
    )


def _around(top: Path, own: Path) -> Iterator[Path]:
    """Yield the parent of this process's own group (a group with members can't hand down controllers), then the root
    group.
    """
    if own != top:
        yield own.parent
    yield top


def _hands_down(folder: Path, controller: str) -> bool:
    """Enable the controller for subgroups. Return whether this account may create subgroups and move
    processes there.
    """
    handed_down = folder / HANDED_DOWN
    with contextlib.suppress(OSError):
        if controller not in handed_down.read_text().split():
            handed_down.write_text(f"+{controller}")
        return os.access(folder, os.W_OK) and os.access(folder / MEMBERS, os.W_OK)
    return False


def _set_limit(folder: Path, controller: str, limit: int | None) -> bool:
    """Create the group with this limit, and return whether that worked. With None, only check that a limit could be
    set.
    """
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        if (below_too := folder / BELOW_TOO).exists() and below_too.read_text() != "1\n":
            below_too.write_text("1")
        for name in LIMIT_FILES[controller]:
            if (folder / name).exists():
                if limit is not None:
                    (folder / name).write_text(str(SHARES if name == "cpu.shares" else limit))
                return True
    return False


def _enter(folder: Path) -> None:
    """Move this process, which must have a single thread, to the group."""
    by_thread = folder / THREADS
    with contextlib.suppress(OSError):
        (by_thread if by_thread.exists() else folder / MEMBERS).write_text("0")


def _remove(folders: Mapping[str, Path]) -> bool:
    for folder in set(folders.values()):
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not any(folder.exists() for folder in folders.values())


def _count(file: Path, word: str) -> int:
    """Return the number after a word in a file; 0 if the word is missing."""
    with contextlib.suppress(OSError, ValueError):
        words = file.read_text().split()
        return int(words[words.index(word) + 1])
    return 0
