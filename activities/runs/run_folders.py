"""The folders of runs: each is the service's own, private, and has a name that cannot be guessed (ruling N4)."""

import os
import re
import secrets
import stat
from pathlib import Path

from activities.runs import records
from activities.runs.records import RecordKind, UnbelievedError
from activities.sealing import seal_key
from workflows.model.errors import ServiceError

_RUN = re.compile(r"(?P<job>.+)\.(?P<attempt>\d+)(?:-[0-9a-f]{32})?(?:\.[a-z]+\d*)*")
_TRIES = 8

Key = tuple[str, int]
"""Job and attempt."""


class RunError(ServiceError):
    """The run could not be prepared, or its supervisor could not take it; nothing was started."""

    code = "run_not_started"


def key_of(name: str) -> Key | None:
    """Return the job and attempt of a run's folder, or of a mark without its home.

    `<job>.<attempt>-<random>` is the folder of the first program, `<job>.<attempt>-<random>.again` of a further one.
    """
    match = _RUN.fullmatch(name)
    return (match["job"], int(match["attempt"])) if match else None


def new(runs: Path, job_id: str, attempt: int) -> Path:
    """Make the folder of an attempt under a new, random name; never use a folder that exists."""
    for _ in range(_TRIES):
        run_dir = runs / f"{job_id}.{attempt}-{secrets.token_hex(16)}"
        if _make(run_dir):
            return run_dir
    raise RunError(f"no folder for a run can be made in {runs}", f"ls -ld {runs}")


def ready(run_dir: Path) -> Path:
    """Make the folder if it is missing; refuse a folder that is not the service's own."""
    run_dir = run_dir.absolute()
    if not _make(run_dir):
        _check(run_dir)
    return run_dir


def run_key(run_dir: Path) -> bytes | None:
    """Return the key that seals this run's records; None if the home has no key."""
    home = run_dir.absolute().parent.parent
    return None if seal_key.read(home) is None else made_run_key(run_dir)


def made_run_key(run_dir: Path) -> bytes:
    """Return the key that seals this run's records: the key of its first record, else one derived from the home's
    current key, which is made if it is missing.
    """
    home = run_dir.absolute().parent.parent
    seal_key.ensure(home)
    derived = [seal_key.derive(key, "run", run_dir.name) for key in seal_key.every(home)]
    earlier = (
        key for key in derived[1:] if any(_seals(key, run_dir, kind) for kind in (RecordKind.SPEC, RecordKind.CLAIM))
    )
    return next(earlier, derived[0])


def _seals(key: bytes, run_dir: Path, kind: RecordKind) -> bool:
    try:
        records.read(key, run_dir, kind)
    except (FileNotFoundError, UnbelievedError):
        return False
    return True


def _make(run_dir: Path) -> bool:
    _ensure_runs(run_dir.parent)
    try:
        run_dir.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def _check(run_dir: Path) -> None:
    status = run_dir.lstat()
    if not (stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077):
        why = "is not a private folder of this account: the service has not made it"
        raise RunError(f"{run_dir} {why}", f"ls -ld {run_dir}; mv {run_dir} {run_dir}.strange")


def _ensure_runs(runs: Path) -> None:
    """Make the folder of all runs. The home itself may be a link, but not the folders in it."""
    try:
        status = runs.lstat()
    except FileNotFoundError:
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = runs.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise RunError(f"{runs} is a link or a file: runs are kept in a folder of the service home", f"ls -l {runs}")
