"""Control groups of agents: limits for all agents of a service together, and for each job.

The group of a host holds one subgroup for the service's own processes (fork server, supervisors), and one for each job.
A supervisor enters a job's group so that the command is born in it. Then it leaves, so that it survives a job that runs
out of memory.

Where the machine lets this account make no groups of version 2, agents run without limits. Standard library only:
supervisors load this module.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MEMORY, PROCESSES, CPU = "memory", "pids", "cpu"
LIMIT_FILES = {MEMORY: "memory.max", PROCESSES: "pids.max", CPU: "cpu.weight"}
AS_ONE, EVENTS = "memory.oom.group", "memory.events"
MEMBERS, HANDED_DOWN = "cgroup.procs", "cgroup.subtree_control"
OWN = "own"
"""Subgroup of the service's own processes: a group with subgroups has no members of its own."""

TOLD = "SERVICE_CONTROL_GROUP"
"""Environment variable that passes the group to the service's programs. Agents do not get it."""

MOST_PROCESSES = 8192
WEIGHT = 50
"""CPU weight of all jobs together, half the default weight of a group. Jobs have equal weight among themselves."""

OUT_OF_ITS_OWN = "it used all of its memory: {} MiB, see [worker].job_memory"
OUT_OF_ALL = "the kernel killed it for lack of memory{}, see [worker].agents_memory"
NO_MORE_PROCESSES = "it was refused more processes: it may have {} with their threads, see [worker].job_pids"
MIB = 1 << 20


@dataclass(frozen=True)
class Group:
    """The group of a host's agents. Without a folder every method is a no-op."""

    folder: Path | None
    limits: Mapping[str, int]
    """Limits of all jobs together, by controller: bytes, processes, weight."""
    jobs: Mapping[str, int] = field(default_factory=dict)
    """Limits of each job, by controller."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variable that passes this group to a program of the service."""
        return {TOLD: json.dumps([str(self.folder), dict(self.limits), dict(self.jobs)])} if self.folder else {}

    def holds(self, pid: int) -> bool:
        """Return whether the process is in the subgroup of the service's own processes, or there is no group."""
        with contextlib.suppress(OSError):
            return self.folder is None or str(pid) in (self.folder / OWN / MEMBERS).read_text().split()
        return False

    def ensure(self) -> None:
        """Create the group if it is missing: a worker that ends removes the group that it shares with the next
        worker.
        """
        if self.folder is None:
            return
        _limited(self.folder, self.limits)
        for controller in LIMIT_FILES:
            _hands_down(self.folder, controller)
        with contextlib.suppress(OSError):
            (self.folder / OWN).mkdir(exist_ok=True)

    def enter(self) -> None:
        """Move this process, and so its future children, to the subgroup of the service's own processes."""
        if self.folder:
            _enter(self.folder / OWN)

    def job(self) -> "JobGroup":
        """Return a group with a unique name for one job. `enter` creates it."""
        return JobGroup(self, os.urandom(8).hex())

    def sweep(self) -> None:
        """Remove the subgroups without processes."""
        for subgroup in self.folder.glob("*/") if self.folder else ():
            _removed(subgroup)

    def remove(self) -> bool:
        """Remove the group if it has no processes. Return whether it is gone."""
        self.sweep()
        return self.folder is None or _removed(self.folder)


@dataclass(frozen=True)
class JobGroup:
    """The control group of one job."""

    around: Group
    name: str

    @property
    def folder(self) -> Path | None:
        return self.around.folder / self.name if self.around.folder else None

    def make(self) -> set[str]:
        """Create the group, which the kernel ends as a whole if it runs out of memory. Return the controllers whose
        limits apply.
        """
        if self.folder is None:
            return set()
        made = _limited(self.folder, self.around.jobs)
        with contextlib.suppress(OSError):
            (self.folder / AS_ONE).write_text("1")
        return made

    def enter(self) -> None:
        """Create the group, and move this process and so its future children into it."""
        if self.folder:
            self.make()
            _enter(self.folder)

    def leave(self) -> None:
        """Move this process out of the group, so that the job's out-of-memory kill spares it; its children stay."""
        self.around.enter()

    def remove(self) -> bool:
        """Remove the group if it has no processes. Return whether it is gone."""
        return self.folder is None or _removed(self.folder)

    def ran_out(self) -> str:
        """Describe the limit that the job's processes reached; empty if none."""
        if self.folder is None:
            return ""
        own, all_jobs = self.around.jobs, self.around.limits
        if _count(self.folder / EVENTS, "oom_kill"):
            if MEMORY in own and _count(self.folder / EVENTS, "oom"):  # the group around it can run out as well
                return OUT_OF_ITS_OWN.format(own[MEMORY] // MIB)
            bound = f": all agents together may take {all_jobs[MEMORY] // MIB} MiB" if MEMORY in all_jobs else ""
            return OUT_OF_ALL.format(bound)
        if PROCESSES in own and _count(self.folder / "pids.events", "max"):
            return NO_MORE_PROCESSES.format(own[PROCESSES])
        return ""


NONE = Group(None, {})


def limits(percent: int) -> dict[str, int]:
    """Return the limits of all jobs together: this percentage of the machine's memory (0: no limit), and a number of
    processes that only a fault reaches.
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


def made(
    name: str, limits: Mapping[str, int], jobs: Mapping[str, int] = NONE.jobs, pid: int | None = None
) -> Group | None:
    """Make the group with those of these limits that this account may set here; return None if it may set none.

    `pid` makes the group where that process could make it, instead of this process.
    """
    try:
        mounts, own = Path("/proc/self/mountinfo").read_text(), Path(f"/proc/{pid or 'self'}/cgroup").read_text()
    except OSError:  # this system has no control groups
        return None
    if (around := base(mounts, own)) is None:
        return None
    applied = _limited(around / name, limits)
    group = Group(around / name, {each: limit for each, limit in limits.items() if each in applied}, jobs)
    if not applied:
        group.remove()
        return None
    group.ensure()
    return group


def told() -> Group:
    """Read the agents' control group from the environment that the service gave this program; else return an
    empty one.
    """
    with contextlib.suppress(KeyError, ValueError):
        folder, limits, jobs = json.loads(os.environ[TOLD])
        return Group(Path(folder), limits, jobs)
    return NONE


def base(mounts: str, own: str) -> Path | None:
    """Return the folder in which a group with the most limits can be made; None if none can be. `mounts` and `own` are
    /proc's `mountinfo` and `cgroup`.
    """
    path = next((line.removeprefix("0::") for line in own.splitlines() if line.startswith("0::")), "")
    settable: dict[Path, int] = {}
    for words in map(str.split, mounts.splitlines() if path else ()):
        if words[words.index("-") + 1] == "cgroup2":
            top = Path(words[4])
            for folder in _around(top, _below(top, words[3], path)):
                settable.setdefault(folder, sum(_hands_down(folder, controller) for controller in LIMIT_FILES))
    best = max(settable, key=lambda folder: settable[folder], default=None)
    return best if best and settable[best] else None


def _below(top: Path, root: str, path: str) -> Path:
    """Return the folder of a group below a mount point. A container may have mounted only a part of the hierarchy."""
    return top / os.path.relpath(path, root) if f"{path}/".startswith(f"{root.rstrip('/')}/") else top


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


def _limited(folder: Path, limits: Mapping[str, int]) -> set[str]:
    """Create the group with these limits. Return the controllers of those that apply."""
    applied = set()
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
    for controller, limit in limits.items():
        file = folder / LIMIT_FILES[controller]
        with contextlib.suppress(OSError):
            if file.exists():
                file.write_text(str(limit))
                applied.add(controller)
    return applied


def _enter(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / MEMBERS).write_text("0")


def _removed(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _count(file: Path, word: str) -> int:
    """Return the number after a word; 0 if the file does not have it."""
    with contextlib.suppress(OSError, ValueError):
        words = file.read_text().split()
        return int(words[words.index(word) + 1])
    return 0
