"""Output and exit codes of `service daemon`."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from activities.runs.regular_files import write_private
from activities.settings.home import Home
from activities.settings.in_use import Change, File, SettingsInUse
from activities.store.registry import host_rows
from activities.store.waiting_rows import Counts
from bridge.daemon import background
from bridge.daemon.options import DaemonOptions
from bridge.machine.daemon_state import RESTART, VIEWS, ChildPhase, ChildState, DaemonState, GroupPhase
from bridge.machine.locks import FileLock
from bridge.operations.health import doctor
from bridge.operations.health.findings import Level
from bridge.operations.home.overview import Disk, HostNow, Overview
from bridge.operations.jobs.spend import SpendSum
from bridge.operations.service import Service
from bridge.operations.settings import Process
from cli.daemon import app
from cli.drawing import daemon
from tests.bridge import seeds
from tests.cli.seat import seated
from workflows.model.errors import ServiceError
from workflows.model.states import TaskState

AGAIN = datetime.now(UTC) + timedelta(seconds=2)
STATE = DaemonState(
    pid=os.getpid(),
    phase=GroupPhase.DEGRADED,
    started_at=datetime.now(UTC) - timedelta(hours=2, minutes=3),
    version="1.2.3",
    temporal_address="127.0.0.1:7234",
    namespace="service",
    ui_url="http://127.0.0.1:8233",
    notes=("port 7233 is taken; Temporal listens on 7234",),
    children=(
        ChildState(name="server", phase=ChildPhase.RUNNING, pid=77, log="/l"),
        ChildState(
            name="worker", restarts=3, note="ended (status 1); starting it again in 2 s", log="/l", again_at=AGAIN
        ),
    ),
)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Create an empty home."""
    monkeypatch.setenv("SERVICE_HOME", str(tmp_path / "home"))
    return Home.locate().ensure()


@pytest.fixture
def running(own_home: Home) -> Iterator[Home]:
    """Create a home whose daemon is this very process."""
    lock = FileLock.take(own_home.daemon_lock, wait=0)
    assert lock is not None
    write_private(own_home.daemon_state, STATE.model_dump_json())
    yield own_home
    lock.release()


def test_status_of_nothing_exits_1_and_says_how_to_start(own_home: Home) -> None:
    done = CliRunner().invoke(app, ["status"])
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"not running      home {own_home.root}",
        "start it         service daemon start",
    ]


def test_status_says_why_the_last_start_failed(own_home: Home) -> None:
    state = STATE.model_copy(update={"phase": GroupPhase.FAILED, "problem": "the disk is full", "hint": "df -h"})
    write_private(own_home.daemon_state, state.model_dump_json())
    lines = CliRunner().invoke(app, ["status"]).stdout.splitlines()
    assert lines[1:3] == ["last start failed: the disk is full", "try: df -h"]


def test_status_shows_where_to_look_and_who_is_down(running: Home) -> None:
    done = CliRunner().invoke(app, ["status"])
    assert done.exit_code == 0
    when = f"{AGAIN.astimezone():%H:%M:%S}"
    first, *others = done.stdout.splitlines()
    assert re.fullmatch(rf"degraded         process {os.getpid()}, up 2h(\d+m)?(\d+s)?, version 1\.2\.3", first)
    views = [line.split(": ", 1) for line in others if line.startswith(" ")]
    assert [name.strip() for name, _ in views] == [name for name in VIEWS if name != "all"]
    assert all(link.startswith("http://127.0.0.1:8233/namespaces/service/workflows?query=%60") for _, link in views)
    assert [line for line in others if not line.startswith(" ")] == [
        "server           running, process 77",
        "worker           waiting, restarted 3 times, ended (status 1); starting it again in 2 s, at " + when,
        "note             port 7233 is taken; Temporal listens on 7234",
        f"home             {running.root}",
        "temporal         127.0.0.1:7234, namespace service",
        "web ui           http://127.0.0.1:8233/namespaces/service/workflows?query=%60WorkflowType%60%21%3D%22Notify%22",
    ]


def test_status_and_doctor_say_what_is_frozen_and_what_was(running: Home) -> None:
    at = datetime.now(UTC) - timedelta(minutes=5)
    worker = ChildState(name="worker", phase=ChildPhase.RUNNING, pid=78, restarts=1, frozen_at=at, log="/l")
    write_private(running.daemon_state, STATE.model_copy(update={"children": (worker,)}).model_dump_json())
    output = CliRunner().invoke(app, ["status"]).stdout
    assert (
        f"worker           running, process 78, restarted 1 time, frozen at {at.astimezone():%Y-%m-%d %H:%M:%S}"
        in output
    )
    assert "no sign of life" not in output
    findings = {finding.about: finding for finding in doctor.daemon(Service(running))}
    assert (findings["daemon"].level, findings["worker"].level) == (Level.OK, Level.WARNING)
    assert findings["worker"].fix == "service daemon logs worker"
    os.utime(running.daemon_state, (at.timestamp(), at.timestamp()))
    output = CliRunner().invoke(app, ["status"]).stdout
    silence = (
        f"the daemon (process {os.getpid()}) has given no sign of life since {at.astimezone():%Y-%m-%d %H:%M:%S %Z}"
    )
    assert f"frozen           {silence} (service daemon stop && service daemon start)" in output
    (first, *_) = doctor.daemon(Service(running))
    assert (first.level, first.fix) == (Level.WRONG, RESTART)


def test_a_start_does_not_wait_for_a_frozen_daemon(running: Home) -> None:
    os.utime(running.daemon_state, (0, 0))
    with pytest.raises(ServiceError, match="has given no sign of life since 1970") as refused:
        background.start(running, DaemonOptions())
    assert refused.value.hint == RESTART


def test_status_is_json_for_programs(running: Home) -> None:
    seen = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert seen["running"] is True
    assert seen["pid"] == os.getpid()
    assert seen["state"]["ui_url"] == "http://127.0.0.1:8233"
    assert [child["name"] for child in seen["state"]["children"]] == ["server", "worker"]


def test_stop_of_nothing_is_no_fault(own_home: Home) -> None:
    done = CliRunner().invoke(app, ["stop"])
    assert (done.exit_code, done.stdout) == (0, "not running\n")


def test_status_says_how_to_open_the_dashboard_when_there_is_one(running: Home) -> None:
    assert "dashboard" not in CliRunner().invoke(app, ["status"]).stdout
    state = STATE.model_copy(update={"bridge_url": "http://127.0.0.1:8791"})
    write_private(running.daemon_state, state.model_dump_json())
    assert "dashboard        service dashboard" in CliRunner().invoke(app, ["status"]).stdout.splitlines()


@pytest.mark.ruling("K6", "C8")
def test_no_more_jobs_run_than_there_are_slots(home: Home) -> None:
    counts, now = Counts(queued=2, running=15, paused=0, blocked=0), HostNow("a", slots=8, running=15, works=True)
    overview = Overview(counts, (now, replace(now, name="b", slots=0, running=0)), SpendSum(), Disk(0, True, (), 0))
    _, queue, hosts, *_ = map(str, daemon.figures(overview))
    assert queue == "queue            8 running on 8 slots, 7 waiting to be tried again or just ended, 2 queued"
    assert hosts == "hosts            a 8 of 8, b 0 of 0"


@pytest.mark.ruling("K6")
def test_status_fits_a_screen_of_80_by_24_and_lists_are_links(running: Home) -> None:
    names = ("server", "worker", "bridge", "github", "commands")
    children = tuple(ChildState(name=name, phase=ChildPhase.RUNNING, pid=77, log="/l") for name in names)
    notes = tuple(f"port {port} is taken; Temporal listens on 1{port}" for port in (7233, 8233, 8791))
    state = STATE.model_copy(update={"children": children, "notes": notes, "bridge_url": "http://127.0.0.1:8791"})
    write_private(running.daemon_state, state.model_dump_json())
    service = Service(running)
    seeds.write(
        service, seeds.task(state=TaskState.BLOCKED, waits_for="retry"), seeds.job(state="failed", ended_at=1.0)
    )
    for name in ("a", "b"):
        host_rows.see(service.store, name, slots=8, started_at=1.0)
    service.store.dispose()
    running.config.write_text("[worker]\nmax_parallel_jobs = 3\n")
    with seated(("daemon", "status")) as seat:
        assert seat.end() == 0
    assert len(seat.screen.everything) < 24, seat.screen.everything
    text = "\n".join(seat.screen.everything)
    assert "web ui           http://127.0.0.1:8233, open trees, waiting, open legs," in text
    assert "%60SvcAttention%60" in seat.written, "behind the names"
    assert "queue            0 running on 16 slots, 0 queued" in text
    assert "hosts            a 0 of 8, b 0 of 8" in text
    assert "needs you        0 paused, 1 blocked (service attention)" in text
    assert "spent today      0 tokens, $0.00 (UTC)" in text
    assert re.search(r"^disk             .* free: store ", text, re.MULTILINE)


def test_settings_that_changed_are_told_briefly_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    read = SettingsInUse(file=File(path="/c", digest=None, read_at=1.0), values={})
    changed = tuple(Change(key=f"worker.k{number}", there="1", here=None) for number in range(5))
    processes = [Process(name, 7, read, changed, "service daemon stop && service daemon start") for name in ("a", "b")]
    assert len(daemon.settings(processes, whole=False)) == 14, "in a pipe all of it"
    monkeypatch.setattr(daemon, "can_move", lambda _: True)
    first = "; ".join(f"worker.k{number} 1, now not set" for number in range(3))
    assert daemon.settings(processes, whole=False) == [
        f"settings         a, b: restart needed for 5 settings: {first}; 2 more (--all)",
        "                 service daemon stop && service daemon start",
    ]
    assert len(daemon.settings(processes, whole=True)) == 14
    faulty = [Process("a", 7, read, (), "", "no TOML")]
    assert daemon.settings(faulty, whole=False) == ["settings         a: still uses what it has read: no TOML"]


def test_status_says_the_same_figures_to_programs(running: Home) -> None:
    document = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert (document["counts"], document["slots"], document["spent_today"]) == (None, None, None)
    Service(running).store.dispose()
    document = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert document["counts"] == {"queued": 0, "running": 0, "paused": 0, "blocked": 0, "stalled": 0}
    assert document["disk"]["whole"] is True
