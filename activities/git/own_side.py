"""The service's own side of a job's work folder: a git directory outside it, which no agent writes (ruling N3).

It has an index, a configuration and objects of its own, and reads those of the registered repository. What the job
starts from is recorded last, so that a place with a record is complete.
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
from activities.git.config_file import Setting, written
from activities.git.library import asked_once
from activities.git.registered import common_directory, object_folders, settings_of, sparse_list
from workflows.model.errors import RefusedError

FOLDER = "checkouts"
SPARSE = "info/sparse"
"""Which files the registered checkout has, where it has not all."""

ALTERNATES = "objects/info/alternates"

_RECORD = "place.json"
_JOINED = "joined.json"


@dataclass(frozen=True)
class Place:
    """What was recorded of a work folder when it was made."""

    repo: Path
    """The registered repository."""
    common: Path
    """Where it keeps everything."""
    base: str
    branch: str | None = None
    tree: str = ""
    """The files of the base; a record of an earlier release does not tell them."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Branches that the agent's repository has beside the registered one's, by name (ruling O4)."""


@lru_cache(256)
def side_of(path: Path) -> Path:
    """Where the service keeps its side of the work folder at this path."""
    return path.parent.parent / FOLDER / f"{path.name}.git"


def side_of_submodule(side: Path, name: str) -> Path:
    """Where it keeps its side of a submodule."""
    return side / "submodules" / hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def lock_of(path: Path) -> Path:
    """What is held while the place is made or removed."""
    return side_of(path).with_suffix(".lock")


def begin(repo: Path, side: Path) -> None:
    """An empty side for a work folder that is to be filled; what a kill left of one is gone."""
    common = common_directory(repo)
    if side.exists():
        shutil.rmtree(side)
    side.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = {"bare": "true", "repositoryformatversion": "0", "logallrefupdates": "false"} | settings_of(repo)
    files = {
        "config": written(Setting("core", key, value) for key, value in settings.items()),
        "HEAD": b"ref: refs/heads/none\n",
        ALTERNATES: alternates(common),
    }
    new_directory(side, ("objects", "objects/info", "objects/pack", "refs"), files, mode=0o700)
    copies = {name: common / name for name in ("info/exclude", "info/attributes", "shallow")}
    copies = {name: source for name, source in copies.items() if says_something(source)}
    if (listed := sparse_list(repo)) is not None:  # also an empty one: then the checkout has no files
        copies[SPARSE] = listed
    for name, source in copies.items():
        (side / name).parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(source, side / name)


def new_directory(side: Path, folders: Iterable[str], files: Mapping[str, bytes], mode: int = 0o777) -> None:
    """A git directory that was not there before. Every job has two; a path that is a text takes less than a `Path`."""
    top = os.fspath(side)
    os.mkdir(top, mode)
    for name in folders:
        os.mkdir(f"{top}/{name}", mode)
    for name, content in files.items():
        with open(f"{top}/{name}", "xb") as file:
            file.write(content)


@asked_once
def says_something(rules: Path) -> bool:
    """Whether a file is there that has more in it than comments, as git writes into every new repository."""
    lines = rules.read_bytes().splitlines() if rules.is_file() else ()
    return any(line.strip() and not line.startswith(b"#") for line in lines)


def lend(common: Path, side: Path) -> None:
    """Have a git directory read the objects of the registered repository."""
    (side / ALTERNATES).write_bytes(alternates(common))


def alternates(common: Path) -> bytes:
    """What says so in a git directory."""
    return b"".join(os.fsencode(folder) + b"\n" for folder in object_folders(common))


def record(path: Path, place: Place) -> None:
    """From now on the place is complete."""
    side = side_of(path)
    told = vars(place) | {"repo": str(place.repo), "common": str(place.common)}
    fresh = side / f"{_RECORD}.new"
    fresh.write_text(json.dumps(told))
    fresh.replace(side / _RECORD)


def joined(path: Path) -> tuple[str, ...] | None:
    """Commits of the registered repository that the job's own stand on; None before they were looked for."""
    kept = side_of(path) / _JOINED
    return tuple(json.loads(kept.read_text())) if kept.exists() else None


def keep_joined(path: Path, commits: Iterable[str] | None) -> None:
    """Keep them, because later the job's own commits are in the repository too; None forgets them."""
    kept = side_of(path) / _JOINED
    if commits is None:
        kept.unlink(missing_ok=True)
        return
    fresh = kept.with_suffix(".new")
    fresh.write_text(json.dumps(list(commits)))
    fresh.replace(kept)


def recorded(path: Path) -> Place | None:
    """The record of a complete place."""
    return read_record(side_of(path))


def place_at(path: Path) -> Place:
    """The same; without one nothing can be said of the work folder."""
    known = recorded(path)
    if known is None:
        where = printable(str(path))
        raise RefusedError(f"nothing is known of what {where} was made from", "service repo sweep")
    return known


def read_record(side: Path) -> Place | None:
    """The same, by the service's side of it."""
    try:
        told = json.loads((side / _RECORD).read_text())
        names = told.get("names", {})
        return Place(
            Path(told["repo"]), Path(told["common"]), told["base"], told["branch"], told.get("tree", ""), names
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
