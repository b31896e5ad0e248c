"""Boxes of a service that is not root: it has no other account for agents, and may make no mounts."""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.boxes import bwrap, try_boxes
from activities.boxes.box import Box, Network
from activities.boxes.enter import describe
from activities.boxes.try_boxes import Machine
from activities.runs import records, supervisor
from activities.runs.records import RecordKind
from activities.runs.supervised_run import mark_of
from tests.activities.boxes.attacks import (
    ATTACKS,
    KEYS,
    LEFT,
    PREAMBLE,
    all_of,
    for_network,
    left,
    that_worked,
)
from tests.activities.boxes.world import PYTHON, SOMEBODY, World, built

pytestmark = pytest.mark.ruling("N2")
NOT_ASKED = {"use a descriptor that was left open", "change a control group", KEYS}


def as_somebody(*command: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command as an account without any rights."""
    become = ("setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups")
    return subprocess.run((*become, *command), input=given, capture_output=True, timeout=120, cwd="/")


@pytest.fixture(scope="module")
def theirs() -> Machine:
    """Return the box mechanisms that this machine has for that account."""
    if os.geteuid() or shutil.which("setpriv") is None or PYTHON is None:
        pytest.skip(
            "becoming another account takes root, setpriv and a python3 of the system (apt-get install python3)"
        )
    process = as_somebody(PYTHON, "-I", "-S", try_boxes.__file__, "1", *bwrap.programs())
    return Machine(**json.loads(process.stdout))


@pytest.fixture
def there(theirs: Machine) -> Iterator[World]:
    """Build a machine to attack that belongs to that account."""
    folder = Path(tempfile.mkdtemp(prefix="boxes-"))
    try:
        with built(folder / "all", SOMEBODY) as world:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, SOMEBODY, SOMEBODY)
            yield world
    finally:
        shutil.rmtree(folder)


def play(world: World, box: Box | None, script: str) -> tuple[str, dict[str, Any]]:
    """Run a script in its box. Return its output, and the record of its end."""
    assert PYTHON
    run_dir = world.tmp / "user" / ".service" / "runs" / "job-1.1"
    run_dir.mkdir()
    env = {"PATH": f"{os.environ['PATH']}:/usr/bin:/bin", "HOME": str(world.tmp / "user")}
    env["WORLD"] = json.dumps(world.facts | {"run_dir": str(run_dir)})
    argv = [PYTHON, "-I", "-S", "-c", script]
    spec = {"mark": mark_of(run_dir), "argv": argv, "cwd": str(world.work), "env": env}
    more = {"timeout_seconds": 60, "grace_seconds": 1, "box": describe(box, argv) if box else None}
    key, content = secrets.token_bytes(32), json.dumps(spec | more | {"prompt": None}).encode()
    (run_dir / "spec.json").write_bytes(records.with_seal(key, run_dir, RecordKind.SPEC, content))
    for path in (run_dir, run_dir / "spec.json"):
        os.chown(path, SOMEBODY, SOMEBODY)
    done = as_somebody(PYTHON, "-I", "-S", supervisor.__file__, str(run_dir), given=key)
    assert done.returncode == 0, done.stderr.decode()
    end = json.loads((run_dir / "exit.json").read_text().splitlines()[0])
    end["error"] += (run_dir / "stderr.log").read_text()
    return (run_dir / "stdout.log").read_text(), end


def box_of(world: World, there: Machine, *read: Path) -> Box:
    """Build the box that a service of that account would make."""
    if why := there.lacks(Network.NONE):
        pytest.skip(why)
    assert there.uid is None
    return world.box(read=read, uid=None, program=there.program)


@pytest.mark.parametrize("network", Network)
def test_all_of_them_fail_with_every_network_but_for_what_is_known(
    there: World, theirs: Machine, network: Network
) -> None:
    box = replace(box_of(there, theirs, there.tmp / "lent"), network=network)
    printed, end = play(there, box, all_of(for_network(network, NOT_ASKED)))
    known, some = left(network, same_account=True)
    assert that_worked(printed) - some == known, end["error"]
    assert not any(there.tmp.rglob("planted"))
    assert end["survivors"] == 0


@pytest.mark.long
@pytest.mark.parametrize("attack", [name for name in ATTACKS if name not in NOT_ASKED])
def test_it_fails_for_an_account_without_rights(there: World, theirs: Machine, attack: str) -> None:
    box = box_of(there, theirs, there.tmp / "lent")
    printed, end = play(there, box, f"{PREAMBLE}print('began', flush=True)\n{ATTACKS[attack]}")
    assert printed.startswith("began"), end["error"]
    assert ("got" in printed) is (attack == LEFT)
    assert not any(there.tmp.rglob("planted"))
    assert end["survivors"] == 0


def test_a_folder_that_is_not_there_is_named_and_nothing_is_started(there: World, theirs: Machine) -> None:
    gone = there.tmp / "gone"
    printed, end = play(there, box_of(there, theirs, gone), "print('up')")
    assert printed == ""
    assert str(gone) in end["error"]
