"""A box that the service makes itself: its supervisor is the first process there, and no program gains by that (N2)."""

import os
import signal
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from activities.boxes import bwrap, kernel, try_boxes
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.enter import described, takes_first
from activities.boxes.probes import Proof, prove
from activities.boxes.try_boxes import look
from activities.runs import spawn
from activities.runs.os_processes import children, identity, is_first, this_process
from activities.runs.supervised_run import Claim, RunRequest, run
from activities.runs.supervisor import Command, EndKind, Signals
from tests.activities.boxes.world import UID, World, begun, needs_bubblewrap, why_not
from tests.activities.runs.processes import without_fork_server, zombies_of
from tests.waiting import until

pytestmark = pytest.mark.ruling("N2")

OTHERS = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
PIDFD_OPEN, PIDFD_GETFD = 434, 438
def tried(what, does):
    try:
        if does(): print(what, pid, flush=True)
    except OSError: pass
there = 0
for pid in range(1, 200):
    if pid == os.getpid(): continue
    try: descriptor = os.pidfd_open(pid)
    except OSError: continue  # nothing, or a thread: the proxy has one for each connection
    try: os.kill(pid, 0); there += 1
    except ProcessLookupError: continue
    except PermissionError: print("not ours", pid)
    tried("seen", lambda: os.stat(f"/proc/{pid}"))
    tried("network", lambda: open(f"/proc/{pid}/net/tcp").read())
    tried("memory", lambda: open(f"/proc/{pid}/mem", "rb"))
    tried("files", lambda: os.listdir(f"/proc/{pid}/fd"))
    tried("traced", lambda: libc.ptrace(16, pid, None, None) == 0)
    tried("descriptor", lambda: any(libc.syscall(PIDFD_GETFD, descriptor, each, 0) >= 0 for each in range(32)))
print("processes", there)
print(sorted(int(each) for each in os.listdir("/proc") if each.isdigit()) == [os.getpid()])
"""
CONNECTED = """
import socket
with socket.create_connection(("127.0.0.1", 3128)) as proxy:
    proxy.sendall(b"nonsense\\r\\n\\r\\n")
    assert proxy.recv(1000)
"""
AMBIENT_RAISE = 2
KEYS = """
import ctypes, os, sys
number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
found = libc.syscall(number, 10, -4, b"user", b"boxes-left", 0)  # a search of the account's keyring
made = libc.syscall(number - 2, b"user", b"boxes-left", b"open", 4, -4)
print("found" if found >= 0 else "not found", "made" if made >= 0 else "not made")
"""


@pytest.fixture
def world(world: World) -> World:
    """Skip if the service can't make such boxes here."""
    if why := why_not(BoxKind.BWRAP):
        pytest.skip(why)
    if not look(UID).own_root:
        pytest.skip("only root makes a box itself, on Linux 5.12 or newer")
    return world


def box_of(world: World, network: Network = Network.NONE) -> Box:
    box = world.box(BoxKind.BWRAP, network)
    assert takes_first(described(box, ("true",)))
    return box


async def supervised(request: RunRequest) -> int:
    """Return the supervisor's pid of a run that has begun."""
    claim = Claim.read(request.run_dir)
    assert claim is not None
    assert claim.pid is not None
    return claim.pid


async def said(world: World, box: Box, script: str) -> list[str]:
    end = await world.play(box, script)
    assert end.exit_code == 0, end.error + end.stderr.read_text()
    return end.stdout.read_text().splitlines()


async def test_a_program_sees_neither_its_supervisor_nor_the_proxy_and_gets_nothing_of_them(world: World) -> None:
    """Both are in the box's pid namespace, and the supervisor is root in the machine's files and network."""
    assert await said(world, box_of(world), OTHERS) == ["not ours 1", "processes 0", "True"]
    with_proxy = await said(world, box_of(world, Network.MODEL), f"{CONNECTED}\n{OTHERS}")
    assert with_proxy == ["not ours 1", "processes 1", "True"], "the proxy can be ended by what it serves, no more"


async def test_a_program_has_no_capability_and_gets_none(world: World) -> None:
    told = await said(world, box_of(world), "print(open('/proc/self/status').read())")
    status = dict(line.split(":\t") for line in told if line)
    assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert status["Uid"].split() == [str(UID)] * 4
    assert status["Groups"].strip() == ""


def test_ambient_capabilities_of_the_service_are_not_inherited(world: World) -> None:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            header, held = struct.pack("Ii", kernel.CAPABILITIES_OF_64, 0), struct.pack("6I", 1, 1, 1, 0, 0, 0)
            kernel.checked(kernel.libc().capset(header, held), "capset")
            kernel.checked(kernel.libc().prctl(kernel.PR_CAP_AMBIENT, AMBIENT_RAISE, 0, 0, 0), "prctl")
            before = capabilities()
            kernel.give_no_capabilities()
            none = {"Inh": 0, "Amb": 0, "Bnd": before["Bnd"]}  # to limit them takes a capability that is not kept here
            status = 0 if before["Amb"] == 1 and capabilities() == {"Prm": 1, "Eff": 1, **none} else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def capabilities() -> dict[str, int]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {line[3:6]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}


async def test_a_run_leaves_no_key_to_the_next_one(world: World, kind: BoxKind) -> None:
    """All processes of an account share its keyring, and agents share an account."""
    for _ in range(2):
        [told] = await said(world, world.box(kind), KEYS)
        assert told.startswith("not found")


async def test_hidden_processes_of_a_program_end_with_it(world: World) -> None:
    hidden = "(setsid sh -c 'env -i sleep 600 & env -i sleep 600' &) ; (env -i setsid sleep 600 &); echo up"
    request = world.request(box_of(world), hidden, shell=True)
    end = await run(request)
    assert (end.kind, end.exit_code, end.survivors) == (EndKind.EXITED, 0, 0)


async def test_a_supervisor_that_is_killed_takes_its_box_along(world: World) -> None:
    script = "(env -i setsid sleep 600 &); echo up; sleep 600"
    request = world.request(box_of(world), script, shell=True)
    task = await begun(request)
    supervisor = await supervised(request)
    inside = os.stat(f"/proc/{supervisor}/ns/pid").st_ino
    assert len(members(inside)) >= 4
    os.kill(supervisor, signal.SIGKILL)
    await until(lambda: not members(inside))
    assert (await task).kind is EndKind.UNKNOWN


def members(namespace: int) -> list[str]:
    """Return the living processes of a pid namespace."""
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{each}/ns/pid").st_ino == namespace:
                found.append(each)
        except OSError:  # it has ended by now
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_by_which_signal_a_program_ended_is_told(world: World, number: int) -> None:
    end = await world.play(box_of(world), f"kill -{number} $$", shell=True)
    assert (end.kind, end.signal) == (EndKind.EXITED, number)
    with_its_code = await world.play(box_of(world), f"exit {128 + number}", shell=True)
    assert with_its_code.exit_code == 128 + number, "which bubblewrap's own code could not tell apart"


async def test_without_a_fork_server_the_box_is_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    spawn.current(first=True).end()
    without_fork_server(monkeypatch)
    assert await said(world, box_of(world), OTHERS) == ["not ours 1", "processes 0", "True"]
    hidden = "(env -i setsid sleep 600 &); exit 5"
    end = await world.play(box_of(world), hidden, shell=True)
    assert (end.kind, end.exit_code, end.survivors) == (EndKind.EXITED, 5, 0)


async def test_where_no_bubblewrap_is_installed_there_is_the_same_box(world: World) -> None:
    there = try_boxes.tried(UID, ())
    assert there.bwrap == there.remedy == try_boxes.INSTALL
    assert not there.lacks(BoxKind.BWRAP)
    assert prove(BoxKind.BWRAP, Network.NONE, there) == Proof()
    assert await said(world, box_of(world), OTHERS) == ["not ours 1", "processes 0", "True"]


async def test_an_earlier_release_s_run_is_made_by_bubblewrap(world: World) -> None:
    from activities.boxes.enter import boxed

    box = box_of(world)
    told = described(box, ("true",)) | {
        "own_root": None,
        "root": {"uid": UID},
        "argv": ["bwrap", "--bind", "/sys", "/"],
    }
    with boxed(told, ("true",), {"PATH": os.defpath}) as held:
        assert held.in_bwrap
        assert "/sys" not in held.argv


def test_a_machine_that_forbids_it_has_bubblewrap(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_bubblewrap()

    def refuse() -> int:
        raise PermissionError("unshare: Operation not permitted")

    programs = bwrap.programs()
    assert try_boxes.tried(UID, programs).own_root
    monkeypatch.setattr(kernel, "fork_as_first", refuse)
    there = try_boxes.tried(UID, programs)
    assert (there.own_root, there.bwrap) == (False, "")


def test_a_process_that_is_not_first_signals_nobody(world: World) -> None:
    assert not is_first()
    assert this_process() == os.getpid()
    child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600")
    try:
        pid = os.fork()
        if pid == 0:
            try:
                Command(child, "no-such-mark", first=True).kill(Signals())
            except RuntimeError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        assert identity(child) is not None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


async def test_a_run_goes_on_without_its_fork_server(world: World) -> None:
    request = world.request(box_of(world), "echo up; read line; echo $line; exit 5", shell=True)
    os.mkfifo(fifo := world.work / "fifo")
    request = replace(request, argv=("sh", "-c", f"echo up; read line < {fifo}; exit $line"))
    task = await begun(request)
    server, supervisor = spawn.current(first=True).pid, await supervised(request)
    os.kill(server, signal.SIGKILL)
    await until(lambda: identity(server) is None)
    assert identity(supervisor) is not None
    fifo.write_text("5\n")
    assert (await task).exit_code == 5
    assert (await world.play(box_of(world), "exit 6", shell=True)).exit_code == 6
    assert spawn.current(first=True).pid != server


async def test_a_fork_server_collects_who_has_ended(world: World) -> None:
    for _ in range(3):
        await world.play(box_of(world), "true", shell=True)
    server = spawn.current(first=True).pid
    await until(lambda: not zombies_of(server) and not children(server))
