"""The repository an agent works in: its own `.git`, with borrowed objects (ruling N3).

It has copies of the registered repository's references, so that an agent can look at other branches. It also has
branches for the job's starting points (ruling O4), and harmless settings only. Whatever the agent does to it, the
service reads it as data only.
"""

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from activities.git import own_side
from activities.git.registered import configuration, references

NONE: Mapping[str, str] = MappingProxyType({})


def furnish(
    repo: Path,
    common: Path,
    path: Path,
    side: Path,
    commit: str,
    branch: str | None = None,
    names: Mapping[str, str] = NONE,
) -> None:
    """Make the `.git` of a work folder, replacing an older one: on the branch, or detached at the commit."""
    folder, fresh = path / ".git", side / "given"  # made where no agent writes, then moved into place at once
    remove(fresh)
    given = {f"refs/heads/{name}": end for name, end in names.items()}
    known = {name: end for name, end in references(common).items() if not _in_the_way(name, given)} | given
    if branch:
        known[f"refs/heads/{branch}"] = commit
    rows = [f"{each} {name}\n" for name, each in sorted(known.items())]
    files = {
        "packed-refs": os.fsencode("# pack-refs with: sorted \n" + "".join(rows)),
        "HEAD": os.fsencode(f"ref: refs/heads/{branch}\n" if branch else f"{commit}\n"),
        "config": configuration(repo),
        own_side.ALTERNATES: own_side.alternates(common),
    }
    folders = ("objects", "objects/info", "refs", "info")  # git makes other folders when it needs them, which is seldom
    own_side.new_directory(fresh, folders, files)
    for name in ("info/exclude", "info/attributes", "shallow"):
        if own_side.says_something(common / name):
            shutil.copyfile(common / name, fresh / name)
    if (side / "index").is_file():
        shutil.copyfile(side / "index", fresh / "index")
    remove(folder)
    fresh.rename(folder)


def _in_the_way(name: str, given: Collection[str]) -> bool:
    """Return whether a name collides with one of the given references (git can't have both `a` and `a/b`)."""
    return any(name == each or name.startswith(f"{each}/") or each.startswith(f"{name}/") for each in given)


def remove(path: Path) -> None:
    """Remove a file, link or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
