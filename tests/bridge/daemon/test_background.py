"""The whole life of a daemon: the real server, real signals, and a fake worker that only reports ready."""

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.settings.model import Settings
from activities.temporal import connect_config
from bridge.daemon import background
from bridge.daemon.background import ComingUp, ending
from bridge.daemon.options import DaemonOptions
from bridge.daemon.server import server_command
from bridge.machine.daemon_state import ChildPhase, ChildState, DaemonState, GroupPhase, status
from bridge.machine.locks import FileLock, holder
from bridge.machine.ports import choose_port
from tests.bridge.daemon.conftest import children, describe_namespace, is_gone
from tests.waiting import wait_for
from workflows.model.errors import ServiceError

REPO = (("SvcRepo", "Keyword"),)
MORE = (*REPO, ("SvcState", "Keyword"))


def told_address(home: Home) -> str:
    """Return the address that commands of this home connect to."""
    return str(connect_config(home, Settings())["target_host"])


@pytest.mark.ruling("engine:embedded")
def test_it_starts_whole_says_where_and_stops_without_a_trace(home: Home, options: DaemonOptions) -> None:
    steps: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wanted = options.model_copy(update={"temporal_port": port, "ui_port": 8233, "search_attributes": REPO})
        seen = background.start(home, wanted, steps.append)
    assert re.fullmatch(r"server [\d.]+ s, worker [\d.]+ s", steps[-1])
    assert "…" in "".join(steps), "it was said what is waited for"
    address = told_address(home)
    assert seen.state is not None
    assert seen.state.phase is GroupPhase.RUNNING
    moved, useless = seen.state.notes
    assert moved == f"port {port} is taken; Temporal listens on {address.partition(':')[2]}"
    assert useless == "ui_port has no effect any more: the bridge serves Temporal's web UI, on its own port"
    assert seen.state.ui_url is None, "no bridge runs"
    assert background.start(home, options).pid == seen.pid, "a second start finds the first"
    assert describe_namespace(address) == {"retention": "2592000s", "SvcRepo": "Keyword"}
    assert f"told to use {address}" in (home.logs / "worker.log").read_text()
    assert home.temporal_db.stat().st_mode & 0o077 == 0
    pids = [seen.pid or 0, *children(home).values()]
    assert len(pids) == 3
    assert background.stop(home, steps.append)
    assert steps[-1].startswith("stopping")
    wait_for(lambda: all(is_gone(pid) for pid in pids), "the end of all three")
    assert not status(home).running
    assert not background.stop(home), "stopping twice is stopping once"
    _a_later_release_goes_on_with_the_same_database(home, options)


def _a_later_release_goes_on_with_the_same_database(home: Home, options: DaemonOptions) -> None:
    """Part of this test because it needs a used database. The server is killed, and restarts at its address. The worker
    restarts too, since it does not poll the server again.
    """
    queues = (("nobody polls it", "WORKFLOW"),)
    background.start(home, options.model_copy(update={"search_attributes": MORE, "worker_queues": queues}))
    address, before = told_address(home), children(home)
    assert set(describe_namespace(address)) == {"retention", "SvcRepo", "SvcState"}
    os.kill(before["server"], signal.SIGKILL)
    wait_for(lambda: _restarts(home) == 2 and _phase(home) is GroupPhase.RUNNING, "both to be started again")
    assert not set(children(home).values()) & set(before.values())
    assert set(describe_namespace(address)) == {"retention", "SvcRepo", "SvcState"}
    assert "server ended (killed by SIGKILL); starting it again in 0.1 s" in (home.logs / "daemon.log").read_text()


@pytest.mark.ruling("engine:embedded")
def test_a_daemon_that_is_killed_leaves_no_child_and_no_lie_and_can_be_started_again(
    home: Home, options: DaemonOptions
) -> None:
    first = background.start(home, options)
    pids = children(home)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: all(is_gone(pid) for pid in pids.values()), "the children to go with it")
    wait_for(lambda: not status(home).running, "its own end to be seen")
    stale = status(home)
    assert stale.state is not None
    assert stale.state.phase is GroupPhase.RUNNING, "its last word is still there, and is not believed"
    assert background.start(home, options).pid != first.pid


@pytest.mark.ruling("engine:embedded")
def test_a_second_server_on_one_database_is_refused(home: Home, options: DaemonOptions) -> None:
    lock = FileLock.take(home.server_lock, wait=0)
    assert lock is not None
    other = subprocess.Popen(
        server_command(home, choose_port(0, "Temporal").port, None), pass_fds=(lock.fd,), stdout=subprocess.DEVNULL
    )
    lock.mark(other.pid)
    lock.release()
    try:
        with pytest.raises(ServiceError) as refused:
            background.start(home, options)
    finally:
        other.kill()
        other.wait()
    assert f"another Temporal server (process {other.pid}) has the database {home.temporal_db} open" in str(
        refused.value
    )
    assert refused.value.hint.endswith(f"kill {other.pid}")


def test_a_second_daemon_in_the_foreground_is_refused_and_harms_nothing(home: Home, options: DaemonOptions) -> None:
    lock = FileLock.take(home.daemon_lock, wait=0)
    assert lock is not None
    command = [sys.executable, "-m", "bridge.daemon", options.model_dump_json()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lock.release()
    assert done.returncode == 3
    assert f"error: a daemon (process {os.getpid()}) already runs for {home.root}" in done.stderr
    assert not home.daemon_state.exists()


def test_two_starts_at_once_make_one_daemon(home: Home, options: DaemonOptions) -> None:
    with ThreadPoolExecutor(2) as pool:
        seen = list(pool.map(lambda _: background.start(home, options), range(2)))
    assert {each.pid for each in seen} == {holder(home.daemon_lock)}


def test_a_stop_finds_a_daemon_that_has_hardly_begun(home: Home, options: DaemonOptions) -> None:
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(background.start, home, options)
        wait_for(lambda: holder(home.daemon_lock) not in (None, os.getpid()), "the daemon's process")
        assert background.stop(home)
        with pytest.raises(ServiceError, match="the daemon ended before it was ready"):
            starting.result()
    assert holder(home.server_lock) is None


def test_a_worker_that_cannot_start_is_said_with_its_last_words_and_the_server_goes_too(
    home: Home, options: DaemonOptions
) -> None:
    broken = options.model_copy(update={"worker_command": (sys.executable, "-c", "raise SystemExit('no settings')")})
    with pytest.raises(
        ServiceError, match=r"the worker ended \(status 1\) before it was ready\n  \| no settings"
    ) as no:
        background.start(home, broken)
    assert str(home.logs / "worker.log") in no.value.hint
    seen = status(home)
    assert not seen.running
    assert seen.state is not None
    assert seen.state.problem == no.value.message
    assert holder(home.server_lock) is None


def test_a_cluster_of_ones_own_needs_no_server_of_ours(home: Home, options: DaemonOptions) -> None:
    seen = background.start(home, options.model_copy(update={"embedded": False, "address": "cluster.example:7233"}))
    assert list(children(home)) == ["worker"]
    assert seen.state is not None
    assert seen.state.temporal_address == "cluster.example:7233"
    assert not home.temporal_db.exists()
    assert "told to use None" in (home.logs / "worker.log").read_text()


def test_fixed_ports_that_are_taken_are_refused_by_name(home: Home, options: DaemonOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServiceError, match=f"port {port}, fixed for Temporal, is taken"):
            background.start(home, options.model_copy(update={"strict_ports": True, "temporal_port": port}))


def test_a_home_that_cannot_be_written_is_refused_before_anything_starts(
    tmp_path: Path, options: DaemonOptions
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServiceError, match="cannot be the service home: Not a directory") as refused:
        background.start(Home(tmp_path / "file" / "home"), options)
    assert "SERVICE_HOME" in refused.value.hint


def _phase(home: Home) -> GroupPhase | None:
    state = status(home).state
    return state.phase if state else None


def _restarts(home: Home) -> int:
    state = status(home).state
    return sum(child.restarts for child in state.children) if state else 0


def state(**children: ChildPhase) -> DaemonState:
    members = tuple(ChildState(name=name, phase=phase, log="/l") for name, phase in children.items())
    return DaemonState(
        pid=os.getpid(), phase=GroupPhase.STARTING, started_at=datetime.now(UTC), version="1", children=members
    )


@pytest.mark.ruling("K6")
def test_it_tells_how_long_each_took_and_which_is_waited_for() -> None:
    times = iter([0.0, 1.0, 2.5, 4.5, 7.5])
    coming = ComingUp(lambda: next(times))
    starting, waiting, running = ChildPhase.STARTING, ChildPhase.WAITING, ChildPhase.RUNNING
    assert coming.look(state()) == ""
    assert coming.look(state(server=starting, worker=waiting)) == "server 0 s …"
    assert coming.look(state(server=running, worker=starting)) == "server 1.5 s, worker 0 s …"
    assert coming.look(state(server=running, worker=starting)) == "server 1.5 s, worker 2 s …"
    assert coming.look(state(server=running, worker=running)) == "server 1.5 s, worker 5.0 s"


@pytest.mark.ruling("K6")
def test_a_stop_names_what_still_runs_the_next_to_end_first() -> None:
    running, stopped = ChildPhase.RUNNING, ChildPhase.STOPPED
    assert ending(state(server=running, worker=running, bridge=stopped)) == "stopping worker, server"
    assert ending(state(server=stopped)) == "stopping"
