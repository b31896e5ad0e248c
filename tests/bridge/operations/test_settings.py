"""Finding processes that use other settings than the current ones (ruling K4)."""

import json
import os
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from activities.runs.regular_files import write_private
from activities.settings import ready
from activities.settings.home import Home
from activities.settings.load import load
from bridge.machine.daemon_state import ChildState, DaemonState, GroupPhase
from bridge.machine.locks import FileLock
from bridge.operations import settings
from bridge.operations.health import doctor
from bridge.operations.health.findings import Level
from bridge.operations.service import Service
from bridge.operations.settings import DAEMON_READS
from cli.main import main

pytestmark = pytest.mark.ruling("K4")


@pytest.fixture
def running(home: Home) -> Iterator[Home]:
    """Return a home whose daemon, worker and bridge are this very process; the worker got the server's address."""
    home.config.write_text("[worker]\nmax_parallel_jobs = 4\n")
    lock = FileLock.take(home.daemon_lock, wait=0)
    assert lock is not None
    state = DaemonState(
        pid=os.getpid(),
        phase=GroupPhase.RUNNING,
        started_at=datetime.now(UTC),
        version="1",
        temporal_address="127.0.0.1:7233",
        settings=load(home).reading.in_use(DAEMON_READS),
        children=(ChildState(name="worker", pid=os.getpid(), log="/l"),),
    )
    write_private(home.daemon_state, state.model_dump_json())
    handed = load(home, {"SERVICE_TEMPORAL_ADDRESS": "127.0.0.1:7233"}).reading.in_use()
    ready.say(home.worker_ready, handed)
    ready.say(home.bridge_ready, handed, "127.0.0.1:8791")
    yield home
    lock.release()


def changed(home: Home) -> dict[str, list[tuple[str, str | None, str | None]]]:
    processes = settings.stale_processes(Service(home))
    return {process.name: [(each.key, each.there, each.here) for each in process.changed] for process in processes}


def test_nothing_is_said_of_processes_that_have_read_what_there_is(running: Home) -> None:
    assert [process.name for process in settings.processes(Service(running))] == ["daemon", "worker", "bridge"]
    assert changed(running) == {}
    running.config.write_text("# only a remark\n[worker]\nmax_parallel_jobs = 4\n")
    assert changed(running) == {}


def test_a_member_that_asks_finds_nothing_changed_either(running: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TEMPORAL_ADDRESS", "127.0.0.1:7233")  # the bridge is started like this
    assert changed(running) == {}
    monkeypatch.setenv("SERVICE_TEMPORAL_ADDRESS", "127.0.0.1:7999")
    assert "daemon" in changed(running)


def test_the_worker_names_the_dashboard_so_it_is_told_where_that_is(running: Home) -> None:
    running.config.write_text('[worker]\nmax_parallel_jobs = 4\n[bridge]\nurl = "https://agents.example.org"\n')
    url = ("bridge.url", '""', '"https://agents.example.org"')
    assert changed(running) == {"daemon": [url], "worker": [url], "bridge": [url]}


def test_a_change_is_told_with_both_values_and_the_command_wherever_people_look(
    running: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    running.config.write_text("[worker]\nmax_parallel_jobs = 5\n[bridge]\nport = 8800\n")
    jobs, port = ("worker.max_parallel_jobs", "4", "5"), ("bridge.port", "8791", "8800")
    assert changed(running) == {"daemon": [port], "worker": [jobs], "bridge": [port]}, "each only what it uses"
    difference = "worker.max_parallel_jobs is 4 there, 5 now"
    for words in (["config", "show"], ["daemon", "status"], ["doctor"]):
        main(words)
        shown = capsys.readouterr().out
        assert difference in shown, words
        assert "service daemon stop && service daemon start" in shown
    assert main(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["settings"]["worker.max_parallel_jobs"] == 5
    assert shown["processes"][0]["changed"] == [{"key": "bridge.port", "here": "8800", "there": "8791"}]
    assert shown["processes"][1]["read"]["digest"] != shown["file"]["digest"]


def test_an_environment_that_says_otherwise_is_a_change_too(running: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_BRIDGE_PORT", "9000")
    assert changed(running)["bridge"] == [("bridge.port", "8791", "9000")]


def test_settings_that_cannot_be_read_any_more_are_told_and_status_still_works(
    running: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    running.config.write_text("[worker\n")
    assert all(
        "goes on with that" in " ".join(settings.in_words(process))
        for process in settings.stale_processes(Service(running))
    )
    assert main(["doctor"]) == 1
    assert "goes on with that" in capsys.readouterr().out


def test_a_process_that_is_gone_is_not_asked(running: Home) -> None:
    bridge = ready.read(running.bridge_ready)
    assert bridge is not None
    write_private(running.bridge_ready, bridge.model_copy(update={"identity": "before.1"}).model_dump_json())
    assert [process.name for process in settings.processes(Service(running))] == ["daemon", "worker"]


def test_what_is_shown_is_a_file_that_can_be_pasted_with_its_comments(
    running: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    running.config.write_text('[orchestrate]\nescalation_ttl = "24h"\n')
    for words in (["config", "show"], ["config", "show", "--origin"]):
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert tomllib.loads(shown)["orchestrate"]["escalation_ttl"] == "24h"
        running.config.write_text(shown)
        assert main(["config", "check"]) == 0
        capsys.readouterr()
    assert 'escalation_ttl = "24h"  # config.toml' in shown


def test_the_files_that_tell_it_are_private_and_the_arguments_of_processes_tell_none_of_it(running: Home) -> None:
    assert running.worker_ready.stat().st_mode & 0o777 == 0o600
    read = load(running).reading.in_use(DAEMON_READS)
    assert not any(key.startswith(("store.", "notify.")) for key in read.values)


def test_doctor_calls_it_a_warning(running: Home) -> None:
    running.config.write_text("[orchestrate]\nmax_delegation_width = 5\n")
    levels = [found.level for found in doctor.stale(Service(running))]
    assert levels == [Level.WARNING, Level.WARNING]
