"""A process that enters a box itself comes back with its state, and programs that it spawned there inherit none of
it.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from activities.boxes.start import Streams, start, way_back
from tests.activities.boxes.world import UID

pytestmark = [
    pytest.mark.ruling("N2"),
    pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="it takes Linux, and root"),
]

ROOT = Path(__file__).parents[3]
BEGIN = f"""
import contextlib, json, os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from activities.boxes import kernel
from activities.boxes.start import NAMESPACES, start, way_back

os.setgroups([7, 8])

def seen():
    links = [os.readlink(f"/proc/self/ns/{{name}}") for name in ("mnt", "net", "pid", "user", "ipc")]
    places = [[os.stat(path).st_dev, os.stat(path).st_ino] for path in ("/", ".")]
    return [links, places, os.getresuid(), os.getresgid(), os.getgroups(), sorted(os.listdir("/proc/self/fd"))]

@contextlib.contextmanager
def visit(streams):
    with way_back():
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWNET)
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("tmpfs", "/mnt", "tmpfs", 0)
        os.chdir("/mnt")
        os.setgroups([])
        os.setresgid({UID}, -1, -1)
        os.setresuid({UID}, -1, -1)
        yield

def refuse(streams):
    raise SystemExit("it was forked")

def visited(*argv, env={{"PATH": "/usr/bin:/bin"}}):
    before = seen()
    try:
        status = os.waitpid(start(argv, "/nowhere", env, (0, 1, 2), refuse, visit), 0)[1]
    except OSError as error:
        status = str(error)
    return status, seen() == before
"""
"""A process with one thread, like a supervisor: with more threads it can't leave a box again."""


def alone(script: str, *argv: str, **more: Any) -> list[str]:
    """Run a script in such a process, and return its output."""
    command = [sys.executable, "-I", "-S", "-c", BEGIN + script, *argv]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60, **more)
    assert done.returncode == 0, done.stderr.decode()
    return os.fsdecode(done.stdout).splitlines()


def test_a_spawned_program_is_in_the_box_with_the_account_alone() -> None:
    shown = (
        "grep -E '^(Uid|Gid|Groups|CapPrm|CapEff|SigIgn|SigBlk)' /proc/self/status; pwd; ls /; ls /proc/$$/fd; ls -A"
    )
    *told, came_back = alone("print(json.dumps(visited('sh', '-c', sys.argv[1])))", shown, input=b"")
    status = {name: value.split() for name, _, value in (line.partition(":") for line in told if ":" in line)}
    assert status["Uid"] == status["Gid"] == [str(UID)] * 4, "the saved one too: there is no way to be root again"
    assert status["Groups"] == []
    assert {int(status[name][0], 16) for name in ("CapPrm", "CapEff", "SigBlk")} == {0}
    assert not int(status["SigIgn"][0], 16) & 1 << 12, "Python ignores SIGPIPE, the program does not"
    assert "/mnt" in told, "it stands in the folder that was entered"
    assert told[-3:] == ["0", "1", "2"], "no other descriptor; and the folder there is empty"
    assert json.loads(came_back) == [0, True]


def test_it_leads_a_session_of_its_own() -> None:
    told = alone("print(os.getsid(0)); sys.stdout.flush(); visited('cut', '-d', ' ', '-f', '1,6', '/proc/self/stat')")
    pid, session = told[1].split()
    assert pid == session != told[0]


def test_a_failed_spawn_says_why_and_this_process_comes_back() -> None:
    [told] = alone("print(json.dumps(visited('no-such-tool')))")
    assert json.loads(told) == ["[Errno 2] No such file or directory: 'no-such-tool'", True]


def test_a_process_below_another_root_comes_back_to_it(tmp_path: Path) -> None:
    """Entering a mount namespace moves a process to its root, out of a chroot."""
    script = "os.chroot(sys.argv[1]); os.chdir('/mnt'); before = seen(); os.mkdir('made')\n"
    script += "with way_back(): kernel.unshare(kernel.CLONE_NEWNS)\nprint(seen() == before, os.listdir('.'))"
    for name in ("proc", "mnt"):
        (tmp_path / name).mkdir()
    subprocess.run(["mount", "--bind", "/proc", str(tmp_path / "proc")], check=True)
    try:
        assert alone(script, str(tmp_path)) == ["True ['made']"]
    finally:
        subprocess.run(["umount", str(tmp_path / "proc")], check=True)


def test_a_process_that_could_not_come_back_forks_instead(tmp_path: Path) -> None:
    """A process with threads is one, for example."""

    @contextmanager
    def visit(streams: Streams) -> Iterator[None]:
        with way_back():
            yield

    forked = tmp_path / "forked"
    waits = threading.Event()
    thread = threading.Thread(target=waits.wait)
    thread.start()
    try:
        pid = start(("true",), "/", {"PATH": "/usr/bin:/bin"}, (0, 1, 2), lambda _: forked.touch(), visit)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        waits.set()
        thread.join()
    assert forked.exists()


def test_a_process_that_cannot_leave_the_box_after_all_ends() -> None:
    script = """
whole, times = kernel.enter_namespace, []
def fails_later(descriptor):
    times.append(descriptor)
    if len(times) > len(NAMESPACES):
        raise OSError("the kernel says no")
    whole(descriptor)
kernel.enter_namespace = fails_later
try:
    visited("true")
except RuntimeError as error:
    print(error)
"""
    assert alone(script) == ["the box that was entered cannot be left: the kernel says no"]
