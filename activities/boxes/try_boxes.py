"""Try whether this machine can make boxes, in a separate program: the kernel may refuse any step.

`python -I -S try_boxes.py UID [BUBBLEWRAP ...]` prints the result. UID is the account that a root service's agents
become; the bubblewraps are tried in this order.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import agent_mounts, bwrap, kernel, network
from activities.boxes.box import Box, Network

SECONDS, AGAIN_SECONDS = 30.0, 20.0

INSTALL = "install bubblewrap (Debian, Ubuntu, Fedora: the package bubblewrap)"
FORBIDS = {
    "kernel.apparmor_restrict_unprivileged_userns": 1,
    "kernel.unprivileged_userns_clone": 0,
    "user.max_user_namespaces": 0,
}
"""Kernel settings by which systems forbid user namespaces, with the value that forbids them."""

KERNEL = Path("/proc/sys")
ALLOWS = {"kernel.apparmor_restrict_unprivileged_userns": 0, "kernel.unprivileged_userns_clone": 1}
ENOUGH = 15_000
"""Number of user namespaces to allow, where the system limits it."""

CONTAINER = "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"


@dataclass(frozen=True)
class Machine:
    """The parts of a box that this machine can make."""

    bwrap: str
    """The reason why no bubblewrap works; empty if one works."""
    own_network: bool = False
    """True if a run may have its own network namespace."""
    uid: int | None = None
    """The account of agents when the service is root; None for any other service, and where root may not change
    accounts.
    """
    program: str = "bwrap"
    """The bubblewrap that works."""

    @property
    def remedy(self) -> str:
        """Return the command that enables bubblewrap's box on this machine."""
        return INSTALL if self.bwrap == INSTALL else allowing()

    def lacks(self, network: Network = Network.FULL) -> str:
        """Return why this machine can't make a box with this network; empty if it can."""
        if self.bwrap or network is Network.FULL or self.own_network:
            return self.bwrap
        return f"network {network} needs a network namespace, which this machine refuses"


_seen: dict[int, tuple[float, Machine]] = {}


def look(uid: int) -> Machine:
    """Try what this machine can do, and cache the result. While bubblewrap fails, try again after `AGAIN_SECONDS`."""
    at, there = _seen.get(uid, (0.0, None))
    if there is None or (there.bwrap and time.monotonic() > at + AGAIN_SECONDS):
        there = _look(uid)
        _seen[uid] = (time.monotonic(), there)
    return there


def _look(uid: int) -> Machine:
    if sys.platform != "linux":
        return Machine(f"there are no boxes on {sys.platform}")
    command = [sys.executable, "-I", "-S", __file__, str(uid), *bwrap.programs()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd="/")
    if done.returncode:
        return Machine(f"it could not be tried: {done.stderr.strip()[-200:]}")
    return Machine(**json.loads(done.stdout))


def allowing() -> str:
    """Return the command that turns off the kernel setting that forbids user namespaces."""
    for name, forbidden in FORBIDS.items():
        with contextlib.suppress(OSError, ValueError):
            if int(KERNEL.joinpath(*name.split(".")).read_text()) == forbidden:
                setting = f"{name}={ALLOWS.get(name, ENOUGH)}"
                return f"echo {setting} | sudo tee /etc/sysctl.d/60-service.conf && sudo sysctl --system"
    return CONTAINER


def try_machine(uid: int, programs: Sequence[str]) -> Machine:
    """Try each mechanism in its own process."""
    is_root = os.geteuid() == 0
    account = uid if is_root and not _in_a_child(lambda: _become(_layout(bwrap.PROGRAM), uid)) else None
    own_network = not _in_a_child(lambda: network.enter(Network.NONE))
    faults = {program: _bwrap(program, account) for program in programs} or {bwrap.PROGRAM: INSTALL}
    best = min(faults, key=lambda program: bool(faults[program]))
    return Machine(faults[best], own_network, account, best)


def _layout(program: str) -> agent_mounts.Layout:
    return agent_mounts.plan(Box(Network.NONE, Path("/"), Path("/"), cwd_writable=False, program=program))


def _become(layout: agent_mounts.Layout, uid: int) -> None:
    layout.lay()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _bwrap(program: str, uid: int | None) -> str:
    if os.geteuid() == 0 and uid is None:
        return "it cannot confine root, and this process may not switch to another account"
    root = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--size", "4096", "--tmpfs", "/tmp")  # noqa: S108
    small = (*bwrap.APART, *root, "--", "true")

    def start() -> None:
        if uid is not None:
            _become(_layout(program), uid)
        kernel.no_new_privileges()
        os.execv(program, (program, *small))  # noqa: S606

    return _in_a_child(start)


def _in_a_child(what: Callable[[], None]) -> str:
    """Run a function in a forked child. Return its error; empty if it succeeded."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.dup2(write, 2)
            what()
            status = 0
        except OSError as error:
            os.write(2, str(error).encode())
        finally:
            os._exit(status)
    os.close(write)
    with open(read, "rb") as output:
        text = output.read().decode(errors="replace").strip()
    _, status = os.waitpid(pid, 0)
    return (text or "it failed") if status else ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(try_machine(int(sys.argv[1]), sys.argv[2:]))))
