"""Backing up a home in use, and restoring it."""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from activities.redaction.kept_secrets import KeptSecrets
from activities.sealing import seal_key
from activities.settings.home import Home
from bridge.machine import token
from bridge.machine.locks import FileLock
from bridge.operations.home import backup
from bridge.operations.home.backup import BackupError
from bridge.operations.service import Service
from tests.bridge import seeds
from workflows.model.errors import NotFoundError, RefusedError, UsageError


@pytest.fixture
def service(home: Home) -> Service:
    """Return a home with a store, a database of Temporal's, an artifact, settings and keys."""
    made = Service(home)
    seeds.write(made, seeds.task(), seeds.job())
    made.artifacts.put(b"what was found")
    KeptSecrets(home.root).folder.mkdir()
    (KeptSecrets(home.root).folder / "one").write_text("kept apart")
    home.config.write_text("[worker]\nhost = 'here'\n")
    token.ensure(home)
    seal_key.ensure(home.root)
    seal_key.add(home.root, seal_key.new())
    with closing(sqlite3.connect(home.temporal_db)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE steps (number INTEGER)")
        database.commit()
    return Service(home)


@contextmanager
def writing(home: Home) -> Iterator[None]:
    """Run a writer that counts in both databases, in the store first and never more than one ahead."""
    stop, begun = threading.Event(), threading.Event()

    def count() -> None:
        with closing(sqlite3.connect(home.store)) as first, closing(sqlite3.connect(home.temporal_db)) as second:
            first.execute("CREATE TABLE steps (number INTEGER)")
            number = 0
            while not stop.is_set():
                for database in (first, second):
                    database.execute("INSERT INTO steps VALUES (?)", (number,))
                    database.commit()
                number += 1
                begun.set()

    thread = threading.Thread(target=count)
    thread.start()
    begun.wait(20)
    try:
        yield
    finally:
        stop.set()
        thread.join()


def steps(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("SELECT count(*) FROM steps").fetchone()[0])


@pytest.mark.parametrize("pages", [1, 4096])
def test_both_databases_are_of_the_same_moment_while_both_are_written_to(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    """That holds however many pages are copied in one step."""
    monkeypatch.setattr(backup, "_PAGES", pages)
    copies = [tmp_path / f"copy{number}" for number in range(10)]
    with writing(service.home):
        for copy in copies:
            backup.make(service, copy)
    ahead = [steps(copy / "store.db") - steps(copy / "temporal.db") for copy in copies]
    assert set(ahead) <= {0, 1}
    assert steps(copies[0] / "store.db") < steps(copies[-1] / "store.db"), "the writer went on meanwhile"


def test_it_says_how_far_it_is(service: Service, tmp_path: Path) -> None:
    steps: list[str] = []
    backup.make(service, tmp_path / "copy", steps.append)
    assert steps[0] == "waiting until no process writes"
    assert [each for each in steps if each.startswith(("copying store.db, ", "copying temporal.db, "))]
    assert any(each.startswith("copying artifacts, settings and keys, 1 of ") for each in steps)
    steps.clear()
    backup.restore(Home(tmp_path / "other"), tmp_path / "copy", steps.append)
    assert steps[1].startswith("copying file 1 of ")


def test_a_restore_that_is_interrupted_leaves_nothing(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup.make(service, tmp_path / "copy")
    other = Home(tmp_path / "other").ensure()
    other.config.write_text("[worker]\n")
    copy, done = backup._copy, list[Path]()

    def interrupted(path: Path, target: Path) -> None:
        copy(path, target)
        done.append(target)
        if len(done) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backup, "_copy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            backup.restore(other, tmp_path / "copy")
    assert [path for path in other.root.rglob("*") if path.is_file()] == [other.config]
    assert backup.restore(other, tmp_path / "copy").files, "it can be tried again"


def test_what_is_restored_is_what_was_copied(service: Service, tmp_path: Path) -> None:
    made = backup.make(service, tmp_path / "copy")
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "copy", *files)} == {0}
    other = Home(tmp_path / "other")
    back = backup.restore(other, tmp_path / "copy")
    assert (back.files, back.bytes) == (made.files, made.bytes)
    assert seal_key.every(other.root) == seal_key.every(service.home.root)
    assert other.bridge_token.read_bytes() == service.home.bridge_token.read_bytes()
    restored = Service(other)
    assert restored.settings.host == "here"
    assert names(KeptSecrets(other.root).folder) == ["one"]
    assert names(restored.artifacts.root) == names(service.artifacts.root) != []
    with closing(sqlite3.connect(other.store)) as database:
        assert database.execute("SELECT root_job_id FROM tasks").fetchall() == [(seeds.ROOT,)]
    assert any("must not run again" in note for note in back.notes)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_another_machine_is_told_what_to_bring(service: Service, tmp_path: Path) -> None:
    backup.make(service, tmp_path / "copy")
    other = Home(tmp_path / "other").ensure()
    other.config.write_text("[worker]\nhost = 'there'\n")
    notes = backup.restore(other, tmp_path / "copy").notes
    assert any(f"{other.config} was there and is left" in note for note in notes)
    assert any('set host = "here"' in note for note in notes)


def test_a_home_that_is_in_use_is_not_restored_over(service: Service, tmp_path: Path) -> None:
    backup.make(service, tmp_path / "copy")
    with pytest.raises(RefusedError, match="holds a service already"):
        backup.restore(service.home, tmp_path / "copy")
    other = Home(tmp_path / "other").ensure()
    lock = FileLock.take(other.daemon_lock, wait=0)
    assert lock
    with pytest.raises(RefusedError, match="a daemon") as refused:
        backup.restore(other, tmp_path / "copy")
    assert refused.value.hint == "service daemon stop"
    lock.release()


@pytest.mark.parametrize("harm", ["changed", "missing", "more"])
def test_a_backup_that_is_not_whole_is_not_put_in_place(service: Service, tmp_path: Path, harm: str) -> None:
    backup.make(service, tmp_path / "copy")
    database = tmp_path / "copy" / "store.db"
    match harm:
        case "changed":
            database.write_bytes(database.read_bytes()[:-1] + b"x")
        case "missing":
            database.unlink()
        case _:
            (tmp_path / "copy" / "artifacts" / "more").write_bytes(b"x")
    other = Home(tmp_path / "other")
    with pytest.raises(BackupError, match="is incomplete"):
        backup.restore(other, tmp_path / "copy")
    assert not other.root.exists()


def as_link(file: Path, tmp_path: Path) -> None:
    """Replace a file by a link with the content that the manifest names."""
    file.rename(tmp_path / "outside")
    file.symlink_to(tmp_path / "outside")


def as_hard_link(file: Path, tmp_path: Path) -> None:
    os.link(file, tmp_path / "outside")


def as_pipe(file: Path, tmp_path: Path) -> None:
    os.mkfifo(file.with_name("pipe"))


def as_folder_link(file: Path, tmp_path: Path) -> None:
    file.parent.rename(tmp_path / "outside")
    file.parent.symlink_to(tmp_path / "outside")


def as_loop(file: Path, tmp_path: Path) -> None:
    file.with_name("loop").symlink_to("..")


@pytest.mark.ruling("N8")
@pytest.mark.parametrize("place", ["artifacts", "store.db", "config.toml", backup.MANIFEST])
@pytest.mark.parametrize("made", [as_link, as_hard_link, as_pipe, as_folder_link, as_loop])
def test_a_backup_with_links_or_devices_is_refused(
    service: Service, tmp_path: Path, place: str, made: Callable[[Path, Path], None]
) -> None:
    folder = tmp_path / "copy"
    backup.make(service, folder)
    [file, *_] = sorted(path for path in folder.rglob("*") if path.is_file() and place in path.parts)
    if made is as_folder_link and file.parent == folder:
        pytest.skip("the folder itself may lie behind a link: a person names it")
    made(file, tmp_path)
    other = Home(tmp_path / "other")
    with pytest.raises(BackupError, match=r"is a link|is not a plain file|has more than one name"):
        backup.restore(other, folder)
    assert not other.root.exists()


@pytest.mark.ruling("N8")
@pytest.mark.parametrize("name", ["artifacts", "store.db", "config.toml"])
def test_nothing_is_restored_through_a_link_in_the_home(service: Service, tmp_path: Path, name: str) -> None:
    backup.make(service, tmp_path / "copy")
    other = Home(tmp_path / "other").ensure()
    (other.root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="is a link"):
        backup.restore(other, tmp_path / "copy")
    assert not (tmp_path / "elsewhere").exists()
    assert sorted(path.name for path in other.root.iterdir()) == [name]


def test_a_name_that_leads_out_of_the_home_is_refused(service: Service, tmp_path: Path) -> None:
    backup.make(service, tmp_path / "copy")
    manifest = tmp_path / "copy" / backup.MANIFEST
    content = json.loads(manifest.read_text())
    content["files"]["../outside"] = "0"
    manifest.write_text(json.dumps(content))
    with pytest.raises(BackupError, match="is incomplete"):
        backup.restore(Home(tmp_path / "other"), tmp_path / "copy")


def test_a_folder_that_holds_something_is_no_place_for_a_backup(service: Service, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine").write_text("x")
    with pytest.raises(RefusedError, match="is there already"):
        backup.make(service, tmp_path / "copy")
    with pytest.raises(NotFoundError, match="is not a backup"):
        backup.restore(Home(tmp_path / "other"), tmp_path / "copy")


def test_half_a_service_is_not_backed_up(service: Service, tmp_path: Path) -> None:
    service.home.config.write_text('[temporal]\naddress = "127.0.0.1:7233"\n')
    with pytest.raises(UsageError, match="both must be of the same moment"):
        backup.make(Service(service.home), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_home_without_a_service_has_nothing_to_copy(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no service"):
        backup.make(Service(Home(tmp_path / "home")), tmp_path / "copy")
