"""Proof that a box holds: a program in it tries what it must not be able to do, on things made for the purpose.

`python -I -S probes.py KIND NETWORK UID` prints what worked, as JSON; a UID of 0 is none.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import etc_copy, kernel
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.enter import boxed, described, takes_first
from activities.boxes.machine import Machine
from activities.boxes.ownership import hand_over
from activities.boxes.programs import needed
from activities.boxes.start import start

SECONDS = 60.0
PROBES = {
    "read a key": "open(at['key']).read()",
    "write outside": "open(at['outside'] + '/planted', 'w').write('x'); os.stat(at['key'])",
    "remount": """
libc.unshare(0x10000000 | 0x20000)
for flags in (0x1020, 0x20):
    libc.mount(b"none", at["lent"].encode(), None, ctypes.c_ulong(flags), None)
open(at["lent"] + "/planted", "w")
""",
    "reach a host socket": "socket.socket(socket.AF_UNIX).connect(at['socket'])",
    "signal a host process": "os.kill(at['pid'], 0); open(f\"/proc/{at['pid']}/environ\").read()",
    "reach the host's loopback": "socket.create_connection(('127.0.0.1', at['port']), 5)",
}
OPEN_BY_NETWORK = "reach the host's loopback"
"""Not a fault where the settings ask for the whole network."""

WORKS = "work in its folder"
_PROGRAM = """
import ctypes, json, os, socket, sys
at, probes = json.loads(sys.argv[1]), json.loads(sys.argv[2])
libc = ctypes.CDLL(None)
for name, script in probes.items():
    if os.fork() == 0:
        try:
            exec(script)
            print(name, flush=True)
        finally:
            os._exit(0)
    os.wait()
"""


@dataclass(frozen=True)
class Proof:
    """What a box was tried for."""

    problem: str = ""
    """Why it could not be tried, or why nothing can be done in it."""
    escaped: tuple[str, ...] = ()
    """What worked although it must not."""


def prove(kind: BoxKind, network: Network, there: Machine) -> Proof:
    """Try a box of this machine, in a process of its own."""
    command = [sys.executable, "-I", "-S", __file__, kind.value, network.value, json.dumps(asdict(there))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=False, cwd="/")
    if done.returncode:
        return Proof(done.stderr.strip()[-300:])
    worked = set(json.loads(done.stdout))
    if WORKS not in worked:
        return Proof(f"nothing can be done in it: {done.stderr.strip()[-300:]}")
    if network is Network.FULL:
        worked.discard(OPEN_BY_NETWORK)
    return Proof(escaped=tuple(name for name in PROBES if name in worked))


def tried(kind: BoxKind, network: Network, there: Machine) -> list[str]:
    """What worked in the box."""
    with tempfile.TemporaryDirectory(prefix="service-box-") as folder, _things(Path(folder)) as at:
        work = Path(folder, "user", "work")
        read = (Path(folder, "lent"), *needed((sys.executable,), None, Path.home()))
        tmp = work.parent / "tmp"
        box = Box(
            kind,
            network,
            cwd=work,
            home=work.parent,
            tmp=tmp,
            read=read,
            etc=etc_copy.current(Path(folder, "etc"), there.uid) if there.own_root else None,
            uid=there.uid,
            own_network=there.own_network,
            own_root=there.own_root,
        )
        if there.uid is not None:
            hand_over((work, box.tmp), there.uid)
        probes = {WORKS: "open('made', 'w').write('x')", **PROBES}
        command = (sys.executable, "-I", "-S", "-c", _PROGRAM, json.dumps(at), json.dumps(probes))
        told = described(box, command)
        first = takes_first(told)
        with Path(folder, "said").open("w+b") as said:
            play = partial(_play, told, command, said.fileno(), first=first)
            _in_first(play) if first else play()
            said.seek(0)
            return said.read().decode().splitlines()


def _play(told: Mapping[str, Any], command: Sequence[str], said: int, *, first: bool) -> None:
    """As a supervisor does."""
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    with boxed(told, command, env, first=first) as held:
        streams = os.open(os.devnull, os.O_RDONLY), said, sys.stderr.fileno()
        _end(start(held.argv, told["box"]["cwd"], held.env, streams, held.enter, held.visit))


def _in_first(what: Callable[[], None]) -> None:
    """In a process that is the first of a namespace of its own."""
    if (pid := kernel.fork_as_first()) == 0:
        try:
            what()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(pid, 0)


def _end(pid: int) -> None:
    """Wait for the program, and kill it with its session if that takes too long."""
    killer = threading.Timer(SECONDS, os.killpg, (pid, signal.SIGKILL))
    killer.start()
    os.waitpid(pid, 0)
    killer.cancel()


@contextlib.contextmanager
def _things(folder: Path) -> Iterator[dict[str, object]]:
    """What is to be out of reach."""
    for name in ("user/work", "user/tmp", "lent", "outside"):
        (folder / name).mkdir(parents=True)
    (folder / "user" / "key").write_text("secret")
    folder.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as tcp:
        unix.bind(str(folder / "s"))
        unix.listen()
        yield {
            "key": str(folder / "user" / "key"),
            "outside": str(folder / "outside"),
            "lent": str(folder / "lent"),
            "socket": str(folder / "s"),
            "port": tcp.getsockname()[1],
            "pid": os.getpid(),
        }


if __name__ == "__main__":
    said, wide, machine = sys.argv[1:]
    sys.stdout.write(json.dumps(tried(BoxKind(said), Network(wide), Machine(**json.loads(machine)))))
