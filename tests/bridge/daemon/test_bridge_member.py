"""The bridge as a member of the group: on its port or the next free one, restarted, stopped with the others."""

import json
import os
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from activities.settings.home import Home
from bridge.daemon import background
from bridge.daemon.options import DaemonOptions
from bridge.machine.daemon_state import DaemonState, GroupPhase, status
from tests.bridge.daemon.conftest import children, is_gone
from tests.waiting import wait_for
from workflows.model.errors import ServiceError

pytestmark = pytest.mark.long

COMMAND = (sys.executable, "-P", "-m", "bridge.http")


@pytest.fixture
def options(options: DaemonOptions) -> DaemonOptions:
    """Return options with a bridge on any port."""
    return options.model_copy(update={"bridge_command": COMMAND, "bridge_port": 0})


def alive(url: str | None) -> bool:
    with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
        return bool(json.load(answer) == {"status": "ok"})


def state(home: Home) -> DaemonState:
    seen = status(home).state
    assert seen is not None
    return seen


@pytest.mark.ruling("engine:embedded")
def test_it_comes_up_with_the_others_comes_back_and_goes_with_them(home: Home, options: DaemonOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        background.start(home, options.model_copy(update={"bridge_port": port}))
    url = state(home).bridge_url
    assert any(note.startswith(f"port {port} is taken; the bridge listens on") for note in state(home).notes)
    assert alive(url)
    first = children(home)["bridge"]
    os.kill(first, signal.SIGKILL)
    wait_for(
        lambda: state(home).phase is GroupPhase.RUNNING and children(home).get("bridge", first) != first, "the next"
    )
    assert alive(url)
    pids = list(children(home).values())
    assert len(pids) == 3
    assert background.stop(home)
    wait_for(lambda: all(is_gone(pid) for pid in pids), "the end of all three")


def test_an_address_that_cannot_be_had_is_said_in_a_sentence(home: Home, options: DaemonOptions) -> None:
    broken = options.model_copy(update={"bridge_addr": "0.0.0.0", "bridge_port": 0})
    with pytest.raises(ServiceError, match="can be reached from other machines"):
        background.start(home, broken)
    assert not status(home).running


def test_a_port_that_may_not_be_another_is_refused(home: Home, options: DaemonOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        strict = options.model_copy(update={"bridge_port": port, "strict_ports": True})
        with pytest.raises(ServiceError, match=f"port {port}, fixed for the bridge, is taken"):
            background.start(home, strict.model_copy(update={"temporal_port": free()}))


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_it_is_served_in_the_foreground_too(home: Home, tmp_path: Path) -> None:
    import subprocess

    words = [sys.executable, "-P", "-m", "cli.main", "bridge", "serve", "--addr", "127.0.0.1:0"]
    served = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert served.stdout is not None
    first, second = served.stdout.readline(), served.stdout.readline()
    assert alive(first.removeprefix("bridge listens on ").strip())
    assert second.strip() == f"token: {home.bridge_token}"
    served.send_signal(signal.SIGTERM)
    assert served.wait(10) in {0, -signal.SIGTERM}
