"""What boxes this machine can make, found out by trying: as a program of its own, which the kernel may refuse anything.

`python -I -S machine.py UID` prints it; UID is the account that a root service's agents become.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import bwrap, kernel, keys, landlock, network, own_root, stage
from activities.boxes.box import Box, BoxKind, Network

SECONDS, AGAIN_SECONDS = 30.0, 20.0
SHOWN = Path("/usr")
"""A folder that every machine has and every box may see."""

INSTALL = "install bubblewrap (Debian, Ubuntu, Fedora: the package bubblewrap)"


@dataclass(frozen=True)
class Machine:
    """What there is."""

    bwrap: str
    """Why there is no bubblewrap that works; empty when there is one."""
    landlock: int
    """The version of the kernel's Landlock; 0 when it has none."""
    own_network: bool = False
    uid: int | None = None
    """The account that agents get when the service is root; None for any other service, and where root may not."""
    own_root: bool = False
    """Whether a service that is root may make a box like bubblewrap's without it, as long as the box can be planned."""

    @property
    def best(self) -> BoxKind | None:
        """The box that holds most."""
        return next((kind for kind in (BoxKind.BWRAP, BoxKind.LANDLOCK) if not self.lacks(kind)), None)

    def lacks(self, kind: BoxKind) -> str:
        """Why there is no such box here; empty when there is."""
        match kind:
            case BoxKind.BWRAP:
                return "" if self.own_root else self.bwrap
            case BoxKind.LANDLOCK:
                return "" if self.landlock else "the kernel has no Landlock (Linux 5.13 or newer, switched on)"
        return ""


_seen: dict[int, tuple[float, Machine]] = {}


def look(uid: int, *, itself: bool = False) -> Machine:
    """What this machine has; tried again now and then as long as the best is missing, for somebody may install it.

    `itself`: what is wanted is bubblewrap, and not only a box like it.
    """
    at, there = _seen.get(uid, (0.0, None))
    missing = there is not None and (there.bwrap if itself else there.lacks(BoxKind.BWRAP))
    if there is None or (missing and time.monotonic() > at + AGAIN_SECONDS):
        there = _look(uid)
        _seen[uid] = (time.monotonic(), there)
    return there


def _look(uid: int) -> Machine:
    if sys.platform != "linux":
        return Machine(f"there are no boxes on {sys.platform}", 0)
    command = [sys.executable, "-I", "-S", __file__, str(uid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd="/")
    if done.returncode:
        return Machine(f"it could not be tried: {done.stderr.strip()[-200:]}", 0)
    return Machine(**json.loads(done.stdout))


def tried(uid: int) -> Machine:
    """Try everything, each in a process of its own."""
    box = Box(BoxKind.BWRAP, Network.NONE, Path("/"), Path("/"), Path("/"), cwd_writable=False)
    account = uid if os.geteuid() == 0 and not _in_a_child(lambda: _become(stage.planned(box), uid)) else None
    own_network = not _in_a_child(lambda: network.enter(replace(box, kind=BoxKind.LANDLOCK)))
    shown = replace(box, cwd=SHOWN, home=Path("/root"), etc=SHOWN, uid=account, own_root=True)
    whole = account is not None and _takes_own_root(shown)
    return Machine(_bwrap(box, account), landlock.abi(), own_network, account, whole)


def _become(layout: stage.Layout | own_root.Root, uid: int) -> None:
    layout.lay()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _bwrap(box: Box, uid: int | None) -> str:
    if shutil.which(bwrap.PROGRAM) is None:
        return INSTALL
    if os.geteuid() == 0 and uid is None:
        return "as root it holds nothing, and this root may not become another account"
    small = (*bwrap.APART, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true")

    def start() -> None:
        if uid is not None:
            _become(stage.planned(box), uid)
        kernel.no_new_privileges()
        os.execvp(bwrap.PROGRAM, (bwrap.PROGRAM, *small))  # noqa: S606

    return _in_a_child(start)


def _takes_own_root(box: Box) -> bool:
    if (layout := own_root.planned(box)) is None:
        return False

    def start() -> None:
        _become(layout, layout.uid)
        kernel.no_new_privileges()
        keys.keep_none()
        os.execvp("true", ("true",))  # noqa: S606

    try:
        return not _in_a_child(start, kernel.fork_as_first)
    except OSError:
        return False


def _in_a_child(what: Callable[[], None], fork: Callable[[], int] = os.fork) -> str:
    """What went wrong; empty when nothing did."""
    read, write = os.pipe()
    pid = fork()
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
    with open(read, "rb") as said:
        text = said.read().decode(errors="replace").strip()
    _, status = os.waitpid(pid, 0)
    return (text or "it failed") if status else ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(tried(int(sys.argv[1])))))
