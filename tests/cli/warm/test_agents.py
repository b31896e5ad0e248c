"""An agent talks to the warm process itself: boxed or not, as root and as an unprivileged account (N5)."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from activities.boxes import bwrap, try_boxes
from activities.boxes.box import Box, Network
from activities.boxes.enter import describe
from activities.boxes.ownership import hand_over
from activities.boxes.try_boxes import Machine
from activities.runs import records, supervisor
from activities.runs.records import RecordKind
from activities.runs.supervised_run import mark_of
from cli.warm.order import Order
from tests.activities.boxes.world import PYTHON, World, built
from tests.cli.warm.conftest import FRESH, ONLY_HANDED, ROOT, Warm

pytestmark = [
    pytest.mark.ruling("N5"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the warm process"),
]
SOMEBODY = 64_321
ORDERS = {"doctor": ["doctor"], "agent add": ["agent", "add", "mole", "--runtime", "shell", "--command", "true"]}
WAYS = '''
import json, os, pathlib, socket, struct, sys
home, (doctor, add) = sys.argv[1], [pathlib.Path(name).read_bytes() for name in sys.argv[2:]]

def word(line):
    said = b""
    while not said.endswith(b"\\n"):
        try: more = line.recv(64)
        except ConnectionResetError: more = b""
        if not more: return ""
        said += more
    return said.decode().strip()

def key(flags=os.O_RDONLY):
    try: return os.open(home + "/commands.key", flags)
    except OSError: return os.open("own", os.O_RDWR | os.O_CREAT)

def connected():
    line = socket.socket(socket.AF_UNIX)
    try: line.connect(home + "/commands.sock")
    except OSError: return None
    line.settimeout(100)
    return line

def order(shown, said=doctor, line=None):
    line = line or connected()
    if line is None: return "unreachable"
    try:
        word(line)
        folder = os.open(".", os.O_PATH)
        socket.send_fds(line, [struct.pack("Q", len(said))], [null, null, null, folder, shown][: 5 if shown else 4])
        line.sendall(said)
        if word(line) != "ready": return "refused"
        line.sendall(b"!")
        while word(line): pass
        return "served"
    except (BrokenPipeError, ConnectionResetError): return "refused"

def in_child(does):
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.write(writes, does().encode()); os._exit(0)
    os.close(writes)
    said = b""
    while more := os.read(reads, 64): said += more
    return said.decode()

def from_double_fork():
    os.setsid()
    return in_child(lambda: order(key()))

def by_one_that_ends_at_once():
    """It says all there is to say, and is gone; only what was planted tells whether that was carried out."""
    pid = os.fork()
    if pid == 0:
        if line := connected():
            socket.send_fds(line, [struct.pack("Q", len(doctor))], [null, null, null, os.open(".", os.O_PATH), key()])
            line.sendall(doctor + b"!")
        os._exit(0)
    os.waitpid(pid, 0)
    return order(key())

def by_one_that_has_ended():
    line = socket.socket(socket.AF_UNIX)
    pid = os.fork()
    if pid == 0:
        try: line.connect(home + "/commands.sock"); os._exit(0)
        except OSError: os._exit(1)
    return order(key(), line=line) if os.waitpid(pid, 0)[1] == 0 else "unreachable"

null = os.open("/dev/null", os.O_RDWR)
came = {
    "without a key": order(None),
    "with a file of its own": order(os.open("own", os.O_RDWR | os.O_CREAT)),
    "with the key by O_PATH": order(key(os.O_PATH)),
    "with the key for neither reading nor writing": order(key(3)),
    "with the key for writing": order(key(os.O_WRONLY)),
    "with the key": order(key()),
    "with the key, from a double fork": in_child(from_double_fork),
    "with the key, by one that ends at once": by_one_that_ends_at_once(),
    "with the key, by one that has ended": by_one_that_has_ended(),
    "without a key, another order": order(None, add),
    "with the key, another order": order(key(), add),
}
print(json.dumps(came))
'''


@dataclass
class Door:
    """A home of an account, its warm process, and a work folder for an agent of that account."""

    world: World
    account: int | None
    warm: Warm

    @property
    def proof(self) -> Path:
        """The file an agent's program leaves if it ran outside the box."""
        return self.world.tmp / "shop" / "planted"

    def typed(self, *words: str, entry: str = ONLY_HANDED) -> "subprocess.CompletedProcess[bytes]":
        """Type a command as a person with this account."""
        command = (*self.become, *self.warm.command(words, entry))
        return subprocess.run(command, env=self.warm.environment, cwd="/", capture_output=True, check=False)

    @property
    def become(self) -> tuple[str, ...]:
        if self.account is None:
            return ()
        return ("setpriv", f"--reuid={self.account}", f"--regid={self.account}", "--clear-groups")

    def lay_out(self) -> list[str]:
        """Write the orders, with the agent's own environment; return the arguments of its script."""
        git = self.world.work / "bin" / "git"
        git.parent.mkdir(exist_ok=True)
        git.write_text(f"#!/bin/sh\necho ran > '{self.proof}'\n")
        git.chmod(0o755)
        path = {"PATH": f"{git.parent}:{os.environ['PATH']}"}
        says = "from cli.warm.order import stamp; print(stamp(), end='')"
        installed = self.typed(entry=says).stdout.decode()
        for name, words in ORDERS.items():
            environment = {k.encode(): v.encode() for k, v in (self.warm.environment | path).items()}
            order = Order(
                installed,
                ["service", *words],
                environment,
                streams=[("strict", False, False)] * 3,
                umask=0o77,
                ignored=[],
            )
            (self.world.work / name).write_bytes(order.encode())
        return [str(self.world.home), *ORDERS]

    def box(self) -> Box:
        """Return the box that the service of this account would make."""
        if self.account is None:
            return self.world.box(Network.FULL)
        assert PYTHON
        look = (*self.become, PYTHON, "-I", "-S", try_boxes.__file__, "1", *bwrap.programs())
        there = Machine(**json.loads(subprocess.run(look, capture_output=True).stdout))
        if why := there.lacks():
            pytest.skip(why)
        return self.world.box(Network.FULL, uid=None, program=there.program, read=(self.world.tmp / "lent",))

    def play(self, *, boxed: bool) -> dict[str, str]:
        """Return the outcome of each way, from an agent's run."""
        self.proof.unlink(missing_ok=True)
        assert PYTHON
        argv = [PYTHON, "-I", "-S", "-c", WAYS, *self.lay_out()]
        box = self.box() if boxed else None
        run_dir = self.world.home / "runs" / f"job-{secrets.token_hex(6)}.1"
        run_dir.mkdir()
        spec: dict[str, Any] = {"mark": mark_of(run_dir), "argv": argv, "cwd": str(self.world.work)}
        spec["env"] = {"PATH": "/usr/bin:/bin"}
        more = {
            "timeout_seconds": 300,
            "grace_seconds": 1,
            "box": describe(box, argv) if box else None,
            "prompt": None,
        }
        key, content = secrets.token_bytes(32), json.dumps(spec | more).encode()
        (run_dir / "spec.json").write_bytes(records.with_seal(key, run_dir, RecordKind.SPEC, content))
        if self.account is not None:
            for path in (run_dir, *run_dir.iterdir(), *self.world.work.rglob("*")):
                os.chown(path, self.account, self.account)
        command = (*self.become, PYTHON, "-I", "-S", supervisor.__file__, str(run_dir))
        done = subprocess.run(command, input=key, capture_output=True, timeout=400, cwd="/")
        text = (run_dir / "stdout.log").read_text()
        assert text, done.stderr.decode() + (run_dir / "stderr.log").read_text() + (run_dir / "exit.json").read_text()
        came: dict[str, str] = json.loads(text)
        return came


@pytest.fixture(params=[None, SOMEBODY], ids=["root", "an account without rights"], scope="module")
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    if os.geteuid() or shutil.which("setpriv") is None or PYTHON is None:
        pytest.skip("becoming another account takes root, setpriv and a python3 of the system")
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    folder.chmod(0o755)
    try:
        with built(folder / "all") as world:
            there = Door(world, request.param, Warm(world.home, folder, {"HOME": str(world.tmp / "user")}))
            (world.home / "store.db").unlink()
            if request.param is not None:
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, request.param, request.param)
            try:
                there.warm.start(there.become)
                yield there
            finally:
                there.warm.end()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("boxed", [True, False])
def test_an_agent_that_speaks_to_the_warm_process_is_refused_before_anything_is_done(door: Door, boxed: bool) -> None:
    came = door.play(boxed=boxed)
    assert set(came.values()) == {"unreachable" if boxed else "refused"}, came
    assert not door.proof.exists(), "no program of the agent's was run outside its box"
    assert b"mole" not in door.typed("agent", "list", entry=FRESH).stdout


def test_who_cannot_open_the_key_is_refused_whatever_is_above_it(door: Door) -> None:
    """It may open the key by O_PATH."""
    assert PYTHON
    door.proof.unlink(missing_ok=True)
    powerless = door.become or ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    command = (*powerless, PYTHON, "-I", "-S", "-c", WAYS, *door.lay_out())
    hand_over((door.world.work,), door.account or 0)
    (key := door.world.home / "commands.key").chmod(0)
    try:
        done = subprocess.run(command, cwd=door.world.work, capture_output=True, timeout=400)
    finally:
        key.chmod(0o600)
    assert done.returncode == 0, done.stderr.decode()
    came = json.loads(done.stdout)
    assert set(came.values()) == {"refused"}, came
    assert not door.proof.exists()


def test_what_a_person_s_command_starts_is_a_person_s(tmp_path: Path) -> None:
    """Its parent is the warm process then, and no longer the person's shell."""
    answer, git = tmp_path / "said", tmp_path / "bin" / "git"
    asks = f"import sys; sys.path[:0] = [{str(ROOT)!r}]; from activities.runs.ancestry import agent_of; "
    asks += f"import os; open({str(answer)!r}, 'w').write(str((agent_of(os.getpid()), os.getppid())))"
    git.parent.mkdir()
    git.write_text(f"#!{sys.executable} -IS\n{asks}\n")
    git.chmod(0o755)
    warm = Warm(tmp_path / "home", tmp_path, {"PATH": f"{git.parent}:{os.environ['PATH']}"})
    warm.home.mkdir()
    warm.start()
    try:
        assert warm.type("repo", "add", "acme/shop", str(tmp_path)).returncode == 2
    finally:
        warm.end()
    assert answer.read_text().startswith("(None, ")


def test_a_person_of_the_account_is_served(door: Door) -> None:
    done = door.typed("agent", "list")
    assert done.returncode == 0, done
