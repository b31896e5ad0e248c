"""Copying a service home while it is in use, and restoring the copy into a new home.

Both databases are copied as of one moment, as a crash at that moment would leave them. Artifacts never change once they
are written, so they are copied afterwards.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from activities.redaction.kept_secrets import KeptSecrets
from activities.runs.regular_files import create, open_to_read, private_folder
from activities.sealing import seal_key
from activities.settings.home import Home
from activities.store.registry.host_rows import release
from activities.temporal import external_config
from bridge.machine.locks import holder
from bridge.machine.step_messages import Step, megabytes, unheard
from bridge.operations.home.home_lock import by_itself
from bridge.operations.service import Service
from workflows.contract.faults import first
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UsageError
from workflows.text.demands import demand

MANIFEST = "backup.json"
_PAGES = 4096
"""Pages of a database that are copied in one step."""
LOCKED_SECONDS = 30.0
"""Seconds to wait until no process writes to either database."""


class BackupError(ServiceError):
    """The copy cannot be made, or does not match its manifest."""


class Manifest(BaseModel):
    """The content of a backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    made_at: datetime
    version: str
    host: str
    """The host that has the repositories' checkouts."""
    home: str
    files: dict[str, str]
    """The SHA-256 of each file, by its path in the home."""


class Backup(BaseModel):
    """A backup that was made or restored."""

    model_config = ConfigDict(frozen=True)

    folder: str
    home: str
    made_at: datetime
    version: str
    host: str
    files: int
    bytes: int
    notes: tuple[str, ...] = ()
    """Sentences on parts that the backup lacks, and on steps to do by hand."""


@by_itself
def make(service: Service, folder: Path, step: Step = unheard) -> Backup:
    """Copy the home into a new folder, which appears once it is complete."""
    home, notes = service.home, _left_out(service)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RefusedError(f"{folder} is there already", "service backup ANOTHER_FOLDER")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise ServiceError(f"{folder} cannot be made: {error.strerror}", "service backup ANOTHER_FOLDER") from None
    try:
        _databases([path for path in _databases_of(service) if path.exists()], part, step)
        others = list(_others(service))
        for number, path in enumerate(others, 1):
            step(f"copying artifacts, settings and keys, {number} of {len(others)}")
            _copy(path, part / path.relative_to(home.root))
        step("reading all of it once more")
        host = service.settings.host
        manifest = Manifest(
            made_at=datetime.now(UTC), version=release(), host=host, home=str(home.root), files=dict(_digests(part))
        )
        with open(create(part / MANIFEST), "w") as made:
            made.write(manifest.model_dump_json(indent=2))
        part.replace(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return _answer(folder, home, manifest, notes)


def restore(home: Home, folder: Path, step: Step = unheard) -> Backup:
    """Restore a backup into an empty home. Existing settings are kept.

    If anything stops it before the end, all that was restored is removed again.
    """
    _refuse_links(folder)
    manifest = _read(folder)
    if (pid := holder(home.daemon_lock)) is not None:
        raise RefusedError(f"a daemon (process {pid}) runs for {home.root}", "service daemon stop")
    for path in home.root.iterdir() if home.root.is_dir() else ():
        if path.is_symlink():
            raise RefusedError(f"{path} is a link: nothing is restored through it", f"ls -l {path}")
    if there := [path.name for path in (home.store, home.temporal_db, home.artifacts) if path.exists()]:
        raise RefusedError(
            f"{home.root} holds a service already ({', '.join(there)})", "export SERVICE_HOME=/an/empty/folder"
        )
    step("reading all of it, to see whether it is whole")
    _check(folder, manifest)
    notes = [f"the service at {manifest.home} must not run again: both would do the same work"]
    notes += [f"{path} was there and is left as it is" for path in _put_in_place(home, folder, manifest, step)]
    if (here := Service(home).settings.host) != manifest.host:
        notes.append(
            f"its repositories are checked out on {manifest.host}, and this is {here}: bring them here to the same "
            f'places, and set host = "{manifest.host}" in [worker] of {home.config}'
        )
    return _answer(folder, home, manifest, notes)


def _put_in_place(home: Home, folder: Path, manifest: Manifest, step: Step) -> list[Path]:
    """Copy all files of the backup, or none; return the existing files that were left unchanged."""
    kept, made = list[Path](), list[Path]()
    try:
        for number, name in enumerate(manifest.files, 1):
            step(f"copying file {number} of {len(manifest.files)}")
            target = home.ensure().root / name
            if target.exists():
                kept.append(target)
                continue
            made.append(target)
            _copy(folder / name, target)
    except BaseException:
        _undo(home, made)
        raise
    return kept


def _undo(home: Home, made: list[Path]) -> None:
    """Remove what was created, and then the folders that are empty."""
    for target in made:
        target.unlink(missing_ok=True)
    for folder in sorted({*(target.parent for target in made)} - {home.root}, reverse=True):
        while folder != home.root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def _databases_of(service: Service) -> list[Path]:
    own_store = [] if service.settings.store.url else [service.home.store]
    return own_store if external_config(service.settings) else [*own_store, service.home.temporal_db]


def _left_out(service: Service) -> list[str]:
    """Name the external database and server that a backup lacks. Raise if only one of them is external, since both must
    be copied as of one moment.
    """
    elsewhere = []
    if service.settings.store.url:
        elsewhere.append("the store is a PostgreSQL database: pg_dump")
    if external_config(service.settings):
        elsewhere.append("Temporal is a cluster of your own: its operator's backup")
    if elsewhere and len(elsewhere) < 2:
        raise UsageError(
            f"{elsewhere[0].partition(':')[0]}, the other half is in the home, and both must be of the same moment",
            "stop the service (service daemon stop), copy the home, and back up the other half by its own means",
        )
    if not elsewhere and not service.home.store.exists():
        raise NotFoundError(f"there is no service in {service.home.root}", "service daemon start")
    return [*elsewhere, "not included: your repositories (git), output of runs"]


def _databases(paths: list[Path], into: Path, step: Step) -> None:
    """Copy all databases as of one moment: lock out writers, begin to read each database, release the writers."""
    with ExitStack() as stack:
        try:
            step("waiting until no process writes")
            with ExitStack() as still:
                for path in paths:
                    still.enter_context(_nobody_writes(path))
                readers = [stack.enter_context(_reading(path)) for path in paths]
            for path, reader in zip(paths, readers, strict=True):
                _copy_database(reader, into / path.name, step)
        except sqlite3.Error as error:
            raise BackupError(f"the databases cannot be copied: {error}", "service backup FOLDER  (again)") from None


@contextmanager
def _nobody_writes(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield connection


def _copy_database(reader: sqlite3.Connection, target: Path, step: Step) -> None:
    page = reader.execute("PRAGMA page_size").fetchone()[0]

    def report(_: int, left: int, pages: int) -> None:
        step(f"copying {target.name}, {megabytes((pages - left) * page, pages * page)}")

    with closing(sqlite3.connect(os.fspath(target), isolation_level=None)) as copy:
        target.chmod(0o600)
        reader.backup(copy, pages=_PAGES, progress=report)
        step(f"checking the copy of {target.name}")
        fault = copy.execute("PRAGMA quick_check").fetchone()[0]
        if fault != "ok":
            raise BackupError(f"the copy of {target.name} is damaged: {fault}", "service doctor")
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without journals beside it


def _others(service: Service) -> Iterator[Path]:
    """Yield the files besides the databases: settings, keys, tokens, artifacts and stored secrets."""
    home = service.home
    single = (home.config, home.bridge_token, home.bridge_tokens, home.seal_key)
    for path in (*single, *seal_key.files(home.root)):
        if path.is_file():
            yield path
    own = () if service.artifacts.is_cache else (home.artifacts,)
    for folder in (*own, KeptSecrets(home.root).folder):
        yield from sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _copy(path: Path, target: Path) -> None:
    private_folder(target.parent)
    with open_to_read(path.resolve(), ours=False) as source, open(create(target), "wb") as made:
        shutil.copyfileobj(source, made, 1024 * 1024)
        made.flush()
        os.fsync(made.fileno())


def _digests(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                yield str(path.relative_to(folder)), hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_links(folder: Path) -> None:
    """Raise if a backup contains anything but folders and plain files, since a link would lead out of the backup."""
    for path in folder.rglob("*"):
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            continue
        what = "is a link" if stat.S_ISLNK(status.st_mode) else "is not a plain file"
        if stat.S_ISREG(status.st_mode):
            again = f"cp -r {folder} {folder}.copy; service restore {folder}.copy"
            raise BackupError(f"{path} has more than one name (a hard link); nothing of {folder} is restored", again)
        raise BackupError(f"{path} {what}; nothing of {folder} is restored", "service restore ANOTHER_BACKUP")


def _read(folder: Path) -> Manifest:
    try:
        return Manifest.model_validate(json.loads((folder / MANIFEST).read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{folder} is not a backup: it has no {MANIFEST}", "service backup FOLDER") from None
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc']))}: {demand(each['msg'])}" for each in error.errors()]
        why = "; ".join(first(faults))
        raise BackupError(f"{folder / MANIFEST} cannot be read: {why}", "service backup FOLDER") from None
    except ValueError as error:
        raise BackupError(f"{folder / MANIFEST} cannot be read: {error}", "service backup FOLDER") from None


def _check(folder: Path, manifest: Manifest) -> None:
    """Compare every file with its digest, before anything is restored."""
    digests = dict(_digests(folder))
    digests.pop(MANIFEST)
    for name in sorted({*digests, *manifest.files}):
        if digests.get(name) != manifest.files.get(name):
            what = (
                "is missing"
                if name not in digests
                else "does not belong to it"
                if name not in manifest.files
                else "was changed"
            )
            raise BackupError(f"{folder} is incomplete: {name} {what}", "service restore ANOTHER_BACKUP")


def _answer(folder: Path, home: Home, manifest: Manifest, notes: list[str]) -> Backup:
    return Backup(
        folder=str(folder),
        home=str(home.root),
        made_at=manifest.made_at,
        version=manifest.version,
        host=manifest.host,
        files=len(manifest.files),
        bytes=sum((folder / name).stat().st_size for name in manifest.files),
        notes=tuple(notes),
    )
