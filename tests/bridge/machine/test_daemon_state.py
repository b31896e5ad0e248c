"""The daemon's published state."""

from datetime import UTC, datetime
from pathlib import Path

from activities.settings.ready import pid_of
from bridge.machine.daemon_state import DaemonState, GroupPhase, StateFile, read_state

SAID = DaemonState(pid=1, phase=GroupPhase.STARTING, started_at=datetime.now(UTC), version="1")


def test_what_is_written_is_what_is_read_and_only_its_owner_may(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    file = StateFile(path, SAID)
    file.update(phase=GroupPhase.RUNNING, notes=("a note",))
    assert read_state(path) == SAID.model_copy(update={"phase": GroupPhase.RUNNING, "notes": ("a note",)})
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["daemon.json"]


def test_a_torn_or_missing_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    assert read_state(path) is None
    path.write_text('{"pid": 1, "pha')
    assert read_state(path) is None


def test_a_file_that_cannot_be_written_does_not_take_the_daemon_down(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "missing" / "daemon.json", SAID)
    file.update(phase=GroupPhase.RUNNING)
    assert file.state.phase is GroupPhase.RUNNING


def test_a_pid_is_read_only_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "worker.ready"
    assert pid_of(path) is None
    for text, pid in (("", None), ("[]", None), ('{"pid": "x"}', None), ('{"pid": 7}', 7)):
        path.write_text(text)
        assert pid_of(path) == pid
