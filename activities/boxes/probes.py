"""Prove that a box confines its program: a program in it tries forbidden actions, on targets made for that.

`python -I -S probes.py NETWORK MACHINE` prints as JSON what worked; MACHINE is a `Machine` as JSON.
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
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":  # isolated mode knows the standard library only
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from activities.boxes import kernel
from activities.boxes.box import Box, Network
from activities.boxes.enter import describe, prepare
from activities.boxes.ownership import hand_over
from activities.boxes.programs import required_files
from activities.boxes.start import start
from activities.boxes.try_boxes import Machine

SECONDS, AGAIN_SECONDS = 60.0, 20.0
IPC_CREAT, IPC_RMID = 0o1000, 0
PROBES = {
    "read a key": "open(at['key']).read()",
    "write outside": "open(at['outside'] + '/planted', 'w').write('x'); os.stat(at['key'])",
    "remount": """
libc.unshare(0x10000000 | 0x20000)
for flags in (0x1020, 0x20):
    libc.mount(b"none", at["lent"].encode(), None, ctypes.c_ulong(flags), None)
open(at["lent"] + "/planted", "w")
""",
    "change who may read a key": "os.chmod(at['key'], 0o644)",
    "reach a host socket": "socket.socket(socket.AF_UNIX).connect(at['socket'])",
    "signal a host process": "os.kill(at['pid'], 0); open(f\"/proc/{at['pid']}/environ\").read()",
    "see a host process": "assert open(f\"/proc/{at['pid']}/cmdline\").read() == at['command']",
    "read shared memory": "open(at['shared']).read()",
    "attach shared memory": "assert libc.shmget(at['segment'], 16, 0) >= 0",
    "reach an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0' + at['abstract'])",
    "reach the host's loopback": "socket.create_connection(('127.0.0.1', at['port']), 5)",
    "send packets to the host's loopback": """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.settimeout(5)
one.connect(('127.0.0.1', at['udp']))
one.send(b'x')
one.recv(1)
""",
    "see the host's connections": "assert f\":{at['port']:04X}\" in open('/proc/1/net/tcp').read()",
}
OPEN_BY_NETWORK = {
    "reach an abstract socket",
    "reach the host's loopback",
    "send packets to the host's loopback",
    "see the host's connections",
}
"""Probes that may succeed where the settings give the box the whole network."""

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
    """The result of trying a box."""

    problem: str = ""
    """The reason why the box could not be tried, or why nothing works in it."""
    escaped: tuple[str, ...] = ()
    """Forbidden actions that worked."""

    @property
    def holds(self) -> bool:
        return not self.problem and not self.escaped

    def __str__(self) -> str:
        return self.problem or f"in it a program can {', '.join(self.escaped)}"


_proofs: dict[tuple[Network, Machine], tuple[float, Proof]] = {}
_proving = threading.Lock()


def proof_of(network: Network, there: Machine) -> Proof:
    """Try a box once per process, and cache the proof. While the box doesn't confine its program, try again after
    `AGAIN_SECONDS`.
    """
    with _proving:
        at, proof = _proofs.get((network, there), (0.0, None))
        if proof is None or (not proof.holds and time.monotonic() > at + AGAIN_SECONDS):
            proof = prove(network, there)
            _proofs[network, there] = (time.monotonic(), proof)
        return proof


def prove(network: Network, there: Machine) -> Proof:
    """Try a box of this machine in a separate process. `proof_of` caches the result."""
    command = [sys.executable, "-I", "-S", __file__, network.value, json.dumps(asdict(there))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=False, cwd="/")
    if done.returncode:
        return Proof(done.stderr.strip()[-300:])
    worked = set(json.loads(done.stdout))
    if WORKS not in worked:
        return Proof(f"nothing can be done in it: {done.stderr.strip()[-300:]}")
    if network is Network.FULL:
        worked -= OPEN_BY_NETWORK
    return Proof(escaped=tuple(name for name in PROBES if name in worked))


def try_probes(network: Network, there: Machine) -> list[str]:
    """List the probes that worked in the box."""
    with tempfile.TemporaryDirectory(prefix="service-box-") as folder, _things(Path(folder)) as at:
        work = Path(folder, "user", "work")
        read = (Path(folder, "lent"), *required_files((sys.executable,), None, Path.home()))
        box = Box(
            network,
            cwd=work,
            home=work.parent,
            read=read,
            uid=there.uid,
            program=there.program,
        )
        if there.uid is not None:
            hand_over((work,), there.uid)
        probes = {WORKS: "open('made', 'w').write('x')", **PROBES}
        command = (sys.executable, "-I", "-S", "-c", _PROGRAM, json.dumps(at), json.dumps(probes))
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        with Path(folder, "said").open("w+b") as output:
            with prepare(describe(box, command), command, env) as prepared:
                streams = os.open(os.devnull, os.O_RDONLY), output.fileno(), sys.stderr.fileno()
                pid = start(prepared.argv, str(work), prepared.env, streams, prepared.enter)
            _end(pid)
            output.seek(0)
            return output.read().decode().splitlines()


def _end(pid: int) -> None:
    killer = threading.Timer(SECONDS, os.killpg, (pid, signal.SIGKILL))
    killer.start()
    os.waitpid(pid, 0)
    killer.cancel()


@contextlib.contextmanager
def _things(folder: Path) -> Iterator[dict[str, object]]:
    """Make the probes' targets: files, sockets and shared memory that a box must not reach."""
    for name in ("user/work", "lent", "outside"):
        (folder / name).mkdir(parents=True)
    (folder / "user" / "key").write_text("secret")
    folder.chmod(0o755)
    name = folder.name
    with contextlib.ExitStack() as stack:
        for address in (str(folder / "s"), f"\0{name}"):
            unix = stack.enter_context(socket.socket(socket.AF_UNIX))
            unix.bind(address)
            unix.listen()
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        threading.Thread(target=_echo, args=(udp,), daemon=True).start()
        yield {
            "key": str(folder / "user" / "key"),
            "outside": str(folder / "outside"),
            "lent": str(folder / "lent"),
            "socket": str(folder / "s"),
            "abstract": name,
            "shared": _shared_memory(f"shared-{name}", stack),  # not the folder itself, which may be there
            "segment": _segment(stack),
            "port": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "pid": os.getpid(),
            "command": Path("/proc/self/cmdline").read_text(),
        }


def _echo(udp: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data, where = udp.recvfrom(1)
            udp.sendto(data, where)


def _shared_memory(name: str, stack: contextlib.ExitStack) -> str:
    """Make a file of shared memory that every account may read, if the machine has a folder for shared memory."""
    path = Path("/dev/shm", name)  # noqa: S108
    with contextlib.suppress(OSError):
        path.write_text("shared")
        stack.callback(path.unlink)
        path.chmod(0o644)
    return str(path)


def _segment(stack: contextlib.ExitStack) -> int:
    """Make a segment of System V shared memory that every account may attach. Return its key."""
    key = int.from_bytes(os.urandom(3), "big") + 1
    segment = kernel.libc().shmget(key, 16, IPC_CREAT | 0o666)
    if segment >= 0:
        stack.callback(kernel.libc().shmctl, segment, IPC_RMID, None)
    return key


if __name__ == "__main__":
    wide, machine = sys.argv[1:]
    sys.stdout.write(json.dumps(try_probes(Network(wide), Machine(**json.loads(machine)))))
