"""The service's own side of a job's work folder: a git directory outside it, which no agent writes (ruling N3).

It has its own index, configuration and objects, and borrows those of the registered repository. The job's starting
point is recorded last, so that a work folder with a record is complete.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from activities.git.command import printable
from activities.git.library import ask_once
from activities.git.registered_repository import (
    Setting,
    common_directory,
    format_settings,
    object_folders,
    settings_of,
    sparse_list,
)
from workflows.model.errors import RefusedError

FOLDER = "checkouts"
SPARSE = "info/sparse"
"""Copy of the registered checkout's sparse-checkout file, if it has one."""

ALTERNATES = "objects/info/alternates"

_RECORD = "place.json"
_BUILT_ON = "joined.json"


@dataclass(frozen=True)
class FolderRecord:
    """The record of a work folder, from when it was made."""

    repo: Path
    """The registered repository."""
    common: Path
    """Its common git directory."""
    base: str
    branch: str | None = None
    tree: str = ""
    """The tree of the base."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Branches of the agent's repository besides those of the registered repository, by name (ruling O4)."""


@lru_cache(256)
def side_of(path: Path) -> Path:
    """Return the path of the service's side of a work folder."""
    return path.parent.parent / FOLDER / f"{path.name}.git"


def side_of_submodule(side: Path, name: str) -> Path:
    """Return the path of the service's git directory for a submodule."""
    return side / "submodules" / hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def lock_of(path: Path) -> Path:
    """Return the lock file that is held while the work folder is made or removed."""
    return side_of(path).with_suffix(".lock")


def begin(repo: Path, side: Path) -> None:
    """Make an empty service's side for a new work folder. Replace one that a kill left incomplete."""
    common = common_directory(repo)
    if side.exists():
        shutil.rmtree(side)
    side.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = {"bare": "true", "repositoryformatversion": "0", "logallrefupdates": "false"} | settings_of(repo)
    files = {
        "config": format_settings(Setting("core", key, value) for key, value in settings.items()),
        "HEAD": b"ref: refs/heads/none\n",
        ALTERNATES: alternates(common),
    }
    new_directory(side, ("objects", "objects/info", "objects/pack", "refs"), files, mode=0o700)
    copies = {name: common / name for name in ("info/exclude", "info/attributes", "shallow")}
    copies = {name: source for name, source in copies.items() if says_something(source)}
    if (listed := sparse_list(repo)) is not None:  # even an empty list counts: such a checkout has no files
        copies[SPARSE] = listed
    for name, source in copies.items():
        (side / name).parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(source, side / name)


def new_directory(side: Path, folders: Iterable[str], files: Mapping[str, bytes], mode: int = 0o777) -> None:
    """Make a new git directory."""
    top = os.fspath(side)
    os.mkdir(top, mode)
    for name in folders:
        os.mkdir(f"{top}/{name}", mode)
    for name, content in files.items():
        with open(f"{top}/{name}", "xb") as file:
            file.write(content)


@ask_once
def says_something(rules: Path) -> bool:
    """Return whether the file exists and has rules. Git writes one with comments alone into every new repository."""
    lines = rules.read_bytes().splitlines() if rules.is_file() else ()
    return any(line.strip() and not line.startswith(b"#") for line in lines)


def lend(common: Path, side: Path) -> None:
    """Let a git directory borrow the objects of the registered repository."""
    (side / ALTERNATES).write_bytes(alternates(common))


def alternates(common: Path) -> bytes:
    """Return the content of the file `alternates`, by which a git directory borrows the registered repository's
    objects.
    """
    return b"".join(os.fsencode(folder) + b"\n" for folder in object_folders(common))


def write_record(path: Path, folder_record: FolderRecord) -> None:
    """Record the work folder, which marks it as complete."""
    side = side_of(path)
    fields = vars(folder_record) | {"repo": str(folder_record.repo), "common": str(folder_record.common)}
    fresh = side / f"{_RECORD}.new"
    fresh.write_text(json.dumps(fields))
    fresh.replace(side / _RECORD)


def read_built_on(path: Path) -> tuple[str, ...] | None:
    """Return the commits of the registered repository that the job's commits are built on; None if not recorded yet."""
    kept = side_of(path) / _BUILT_ON
    return tuple(json.loads(kept.read_text())) if kept.exists() else None


def keep_built_on(path: Path, commits: Iterable[str] | None) -> None:
    """Record these commits while the job's own commits are not yet in the repository. None removes the record."""
    kept = side_of(path) / _BUILT_ON
    if commits is None:
        kept.unlink(missing_ok=True)
        return
    fresh = kept.with_suffix(".new")
    fresh.write_text(json.dumps(list(commits)))
    fresh.replace(kept)


def find_record(path: Path) -> FolderRecord | None:
    """Return the record of a complete work folder; None if the folder is missing or incomplete."""
    return read_record(side_of(path))


def record_of(path: Path) -> FolderRecord:
    """Return the record of the work folder; raise if the folder is missing or incomplete."""
    known = find_record(path)
    if known is None:
        where = printable(str(path))
        raise RefusedError(f"the service has no record of how {where} was made", "service repo sweep")
    return known


def read_record(side: Path) -> FolderRecord | None:
    """Read the record in the service's side."""
    try:
        fields = json.loads((side / _RECORD).read_text())
        names = fields.get("names", {})
        return FolderRecord(
            Path(fields["repo"]),
            Path(fields["common"]),
            fields["base"],
            fields["branch"],
            fields.get("tree", ""),
            names,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
