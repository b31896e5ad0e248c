"""Progress of `service daemon start`: the awaited member, and the time each took."""

import os
from datetime import UTC, datetime

import pytest

from bridge.daemon.coming_up import ComingUp, ending
from bridge.machine.daemon_state import ChildPhase, ChildState, DaemonState, Phase

pytestmark = pytest.mark.ruling("K6")


def state(**children: ChildPhase) -> DaemonState:
    members = tuple(ChildState(name=name, phase=phase, log="/l") for name, phase in children.items())
    return DaemonState(
        pid=os.getpid(), phase=Phase.STARTING, started_at=datetime.now(UTC), version="1", children=members
    )


def test_it_tells_how_long_each_took_and_which_is_waited_for() -> None:
    times = iter([0.0, 1.0, 2.5, 4.5, 7.5])
    coming = ComingUp(lambda: next(times))
    starting, waiting, running = ChildPhase.STARTING, ChildPhase.WAITING, ChildPhase.RUNNING
    assert coming.look(state()) == ""
    assert coming.look(state(server=starting, worker=waiting)) == "server 0 s …"
    assert coming.look(state(server=running, worker=starting)) == "server 1.5 s, worker 0 s …"
    assert coming.look(state(server=running, worker=starting)) == "server 1.5 s, worker 2 s …"
    assert coming.waits_for == "worker"
    assert coming.look(state(server=running, worker=running)) == "server 1.5 s, worker 5.0 s"
    assert coming.waits_for == ""


def test_a_stop_names_what_still_runs_the_next_to_end_first() -> None:
    running, stopped = ChildPhase.RUNNING, ChildPhase.STOPPED
    assert ending(state(server=running, worker=running, bridge=stopped)) == "stopping worker, server"
    assert ending(state(server=stopped)) == "stopping"
