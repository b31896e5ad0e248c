"""A machine with targets for attacks, and programs that run in a box on it."""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from activities.boxes import enter, etc_copy, kernel
from activities.boxes.box import Box, Network
from activities.boxes.ownership import hand_over
from activities.boxes.programs import required_files
from activities.boxes.try_boxes import look
from activities.runs.supervised_run import RunEnd, RunRequest, run
from tests.waiting import until

UID = 64_100
SOMEBODY = 64_321
"""An account without any rights."""
IPC_CREAT, IPC_RMID = 0o1000, 0


@dataclass
class World:
    """The paths and facts of the machine."""

    tmp: Path
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        """Return the job's work folder."""
        return self.tmp / "user" / ".service" / "worktrees" / "mine"

    @property
    def home(self) -> Path:
        """Return the service home."""
        return self.tmp / "user" / ".service"

    def box(self, network: Network = Network.NONE, **changes: object) -> Box:
        """Build a box around the job's work folder. Skip the test if this machine can make none."""
        there = look(UID)
        if why := there.lacks(network):
            pytest.skip(why)
        given: dict[str, object] = {
            "network": network,
            "cwd": self.work,
            "home": self.tmp / "user",
            "etc": etc_copy.current(Path(_folder().name)),
            "read": (self.tmp / "lent", *required_files((sys.executable,), None, Path.home())),
            "uid": there.uid,
            "program": there.program,
        }
        box = Box(**(given | changes))  # type: ignore[arg-type]
        if box.uid is not None:
            hand_over(box.writable, box.uid)
        return box

    def request(self, box: Box | None, script: str, *, shell: bool = False, **changes: object) -> RunRequest:
        """Build a request for a program in the box, or in none."""
        run_dir = self.tmp / "user" / ".service" / "runs" / f"job-{uuid.uuid4().hex[:12]}.1"
        argv = ("sh", "-c", script) if shell else (sys.executable, "-I", "-S", "-c", script)
        env = {"PATH": os.environ["PATH"], "HOME": str(self.tmp / "user")}
        env["WORLD"] = json.dumps(self.facts | {"run_dir": str(run_dir)})
        given: dict[str, object] = {"env": env, "grace_seconds": 2.0, "timeout_seconds": 60.0, "argv": argv}
        return RunRequest(run_dir=run_dir, cwd=self.work, box=box, **(given | changes))  # type: ignore[arg-type]

    async def play(self, box: Box | None, script: str, *, shell: bool = False, **changes: object) -> RunEnd:
        return await run(self.request(box, script, shell=shell, **changes))


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Make a folder for copies of /etc, which all worlds share: to make one takes longer than most tests of boxes."""
    folder = tempfile.TemporaryDirectory(prefix="boxes-etc-")
    Path(folder.name).chmod(0o755)
    return folder


@contextlib.contextmanager
def built(tmp: Path, uid: int | None = None) -> Iterator[World]:
    """Build the machine, with live sockets, keys and processes. The worker has this account."""
    world = World(tmp)
    user, home = tmp / "user", tmp / "user" / ".service"
    for folder in (world.work, home / "worktrees" / "other", home / "runs", user / ".ssh", tmp / "shop", tmp / "lent"):
        folder.mkdir(parents=True)
    for secret in (home / "bridge.token", home / "store.db", user / ".ssh" / "id_ed25519"):
        secret.write_text("secret")
    with contextlib.suppress(OSError):  # a file system without attributes
        os.setxattr(home / "bridge.token", "user.kept", b"1")
    (home / "worktrees" / "other" / "work.txt").write_text("theirs")
    (tmp / "lent" / "object").write_text("lent")
    home.chmod(0o700)
    shm = Path("/dev/shm", f"boxes-{uuid.uuid4().hex}")
    shm.write_text("shared")
    shm.chmod(0o644)
    with contextlib.ExitStack() as stack:
        stack.callback(shm.unlink)
        worker = subprocess.Popen(
            ["sleep", "600"], env={"PATH": os.environ["PATH"], "MAGIC": "sesame"}, user=uid, group=uid
        )
        stack.callback(worker.wait)
        stack.callback(worker.kill)
        abstract = f"boxes-{uuid.uuid4().hex}"
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(tmp / "s"))
        (tmp / "s").chmod(0o777)
        hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind(f"\0{abstract}")
        tcp = stack.enter_context(socket.socket())
        tcp.bind(("127.0.0.1", 0))
        for listening in (unix, hidden, tcp):
            listening.listen()
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        threading.Thread(target=_echo, args=(udp,), daemon=True).start()
        key = 1 + secrets.randbelow(2**31 - 1)  # a key of this world alone: others run at the same time on this machine
        segment = kernel.libc().shmget(key, 16, IPC_CREAT | 0o666)
        assert segment >= 0
        stack.callback(lambda: kernel.libc().shmctl(segment, IPC_RMID, None))
        world.facts = {
            "home": str(home),
            "user": str(user),
            "checkout": str(tmp / "shop"),
            "lent": str(tmp / "lent"),
            "other": str(home / "worktrees" / "other"),
            "worker": worker.pid,
            "socket": str(tmp / "s"),
            "abstract": abstract,
            "port": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "shm": str(shm),
            "key": key,
        }
        yield world


async def begun(request: RunRequest) -> "asyncio.Task[RunEnd]":
    """Start a run and wait for its first output."""
    task = asyncio.create_task(run(request))
    stdout = request.run_dir / "stdout.log"
    await until(lambda: task.done() or (stdout.exists() and stdout.stat().st_size))
    return task


def _echo(udp: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data, where = udp.recvfrom(100)
            udp.sendto(data, where)


def put_key() -> None:
    """Put a key into the session keyring of this process."""
    control = enter.keyctl()
    assert control is not None
    kernel.libc().syscall(control - 2, b"user", b"boxes-test", b"open", 4, -3)


PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin")
"""A Python that every account of this machine may run."""
