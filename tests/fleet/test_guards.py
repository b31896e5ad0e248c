"""A host that must not work."""

import subprocess
import sys

import pytest

from tests.fleet.machines import Fleet, Machine

pytestmark = pytest.mark.long


def names(machine: Machine) -> list[str]:
    return [host["name"] for host in machine.json("host", "list")]


def worker(machine: Machine) -> str:
    """Start only the worker, without what the daemon looks at first; return the reason why it ends."""
    command = (sys.executable, "-m", "activities")
    done = subprocess.run(command, env=machine.environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.ruling("Q1")
def test_a_host_with_another_key_polls_nothing_and_says_what_to_type(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two")
    one("daemon", "start")
    (two.home / "seal.key").write_bytes(b"x" * 32)
    for message in (two("daemon", "start", code=5).stderr, worker(two), two("doctor", code=1).stdout):
        assert "this home's seal.key is " in message
        assert f"scp one:.service/seal.key {two.home}/seal.key" in message
    assert names(one) == ["one"]
    (two.home / "seal.key").write_bytes((one.home / "seal.key").read_bytes())
    two("daemon", "start")
    assert names(one) == ["one", "two"]


@pytest.mark.ruling("Q1")
def test_the_name_of_a_host_that_works_is_not_taken_over(fleet: Fleet) -> None:
    one, two = fleet.host("one"), fleet.host("two", host='"one"')
    one("daemon", "start")
    for message in (two("daemon", "start", code=5).stderr, worker(two), two("doctor", code=1).stdout):
        assert "the host name one is in use on another machine or in another home" in message
        assert 'set host = "ANOTHER_NAME" in [worker]' in message
    one("daemon", "stop")
    two("daemon", "start")
    assert "the host name one is in use" in one("daemon", "start", code=5).stderr
