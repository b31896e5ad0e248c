"""A machine without user namespaces, like Ubuntu 24.04 and many containers: `auto` runs no agent there (N2)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from activities.agents.adapter import CannotLaunchError
from activities.boxes import bwrap, try_boxes
from activities.boxes.box import Network
from activities.boxes.try_boxes import Machine
from activities.host import boxing
from tests.activities.boxes.world import PYTHON, SOMEBODY

pytestmark = pytest.mark.ruling("N2")

FORBIDDING = """
import ctypes, os, sys
uid = int(sys.argv[1])
asks, answers = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(asks[1], b"x")
    os.read(answers[0], 1)
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.execv(sys.argv[2], sys.argv[2:])
os.read(asks[0], 1)
for name in ("uid_map", "gid_map"):
    open(f"/proc/{pid}/{name}", "w").write(f"0 0 1\\n{uid} {uid} 1\\n")
os.write(answers[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def there(*command: str) -> str:
    """Run a program as an account without rights, in a namespace that allows no further ones. Return its output."""
    if os.geteuid() or PYTHON is None or shutil.which("unshare") is None:
        pytest.skip("it takes root and a python3 of the system (apt-get install python3)")
    words = (PYTHON, "-I", "-S", "-c", FORBIDDING, str(SOMEBODY), PYTHON, "-I", "-S", *command)
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd="/", check=False)
    if "max_user_namespaces" in done.stderr:
        pytest.skip(f"this machine's root may not forbid them: {done.stderr.strip()[-100:]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_has_no_box_and_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = bwrap.programs()
    assert programs, "one comes with the service"
    machine = Machine(**json.loads(there(try_boxes.__file__, "1", *programs)))
    assert machine.bwrap
    monkeypatch.setattr(try_boxes, "allowing", lambda: "sudo allow it")
    with pytest.raises(CannotLaunchError) as refused:
        boxing.require(Network.NONE, "shell", machine)
    assert machine.bwrap in refused.value.message
    assert refused.value.hint.startswith("sudo allow it, or set [runtimes.shell].box = ")


@pytest.mark.parametrize(
    ("name", "value", "allows"),
    [
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel.unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user.max_user_namespaces", "0", "user.max_user_namespaces=15000"),
        ("user.max_user_namespaces", "1000", ""),
    ],
)
def test_the_command_that_allows_them_names_what_forbids_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, allows: str
) -> None:
    file = tmp_path.joinpath(*name.split("."))
    file.parent.mkdir()
    file.write_text(f"{value}\n")
    monkeypatch.setattr(try_boxes, "KERNEL", tmp_path)
    command = f"echo {allows} | sudo tee /etc/sysctl.d/60-service.conf && sudo sysctl --system"
    assert try_boxes.allowing() == (command if allows else try_boxes.CONTAINER)
