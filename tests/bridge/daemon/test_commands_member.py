"""The warm process as a member of the group: its start is not awaited, it is restarted, and stopped with the others."""

import os
import signal
import sys

import pytest

from activities.settings.home import Home
from bridge.daemon import background
from bridge.daemon.options import DaemonOptions
from bridge.machine.daemon_state import GroupPhase, status
from tests.bridge.daemon.conftest import children, is_gone
from tests.cli.warm.warming import warmed
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.ruling("K7")]


def test_it_listens_comes_back_and_goes_with_the_others(home: Home, options: DaemonOptions) -> None:
    home.commands_socket.touch()
    background.start(home, options.model_copy(update={"commands_command": (sys.executable, "-P", "-m", "cli.warm")}))
    wait_for(home.commands_socket.is_socket)
    first = children(home)["commands"]
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: children(home).get("commands", first) != first)
    state = status(home).state
    assert state is not None
    wait_for(lambda: (status(home).state or state).phase is GroupPhase.RUNNING)
    warmed(home.commands_socket)
    pids = list(children(home).values())
    assert len(pids) == 3
    assert background.stop(home)
    wait_for(lambda: all(is_gone(pid) for pid in pids))
