"""What a registered repository holds that its jobs are given: objects to read, references, a few settings.

All of it is read as plain files or by libgit2: nothing of the repository is run.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from activities.git.command import printable
from activities.git.config_file import Setting, written
from activities.git.library import ADDRESS, NAME, RepositoryError, asked_once, opened
from activities.git.remotes import without_credentials
from workflows.model.errors import NotFoundError

MOST_BORROWED = 20
"""Folders of objects that a repository may read, its own one included."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OWN_ALONE = ("refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/replace/")
"""References that are a checkout's own affair, or would change what a commit is taken to be."""

_FILES = ("core.autocrlf", "core.eol", "core.ignorecase", "core.filemode", "core.symlinks", "core.precomposeunicode")
_PEOPLE = ("user.name", "user.email")
_REMOTE = re.compile(r"remote\.(?P<name>.+)\.(?P<key>url|fetch|promisor|partialclonefilter)", re.DOTALL)


@asked_once
def common_directory(repo: Path) -> Path:
    """Where the repository keeps what its worktrees share."""
    where = printable(str(repo))
    if not repo.exists():
        raise NotFoundError(
            f"there is no repository at {where}: the path is missing",
            "service repo add OWNER/NAME PATH, with the path it is at now",
        )
    try:
        common = _common(git_directory(repo))
    except (OSError, UnicodeDecodeError):
        common = None
    if common is None or not (common / "objects").is_dir() or not (common / "HEAD").is_file():
        raise RepositoryError(f"{where} is not the root of a git repository", f"git -C {where} init")
    return common


@asked_once
def git_directory(repo: Path) -> Path:
    """Where the checkout keeps its own HEAD: `.git`, what that file names, or the bare repository itself."""
    entry = repo / ".git"
    if entry.is_file():
        named = entry.read_text().strip().removeprefix("gitdir: ")
        return Path(os.path.realpath(repo / named))
    return Path(os.path.realpath(entry if entry.is_dir() else repo))


def _common(own: Path) -> Path:
    shared = own / "commondir"
    return Path(os.path.realpath(own / shared.read_text().strip())) if shared.is_file() else own


@asked_once
def object_folders(common: Path) -> tuple[Path, ...]:
    """Every folder that objects of the repository are in: its own, and those it borrows from."""
    found: list[Path] = []
    waiting = [common / "objects"]
    while waiting:
        folder = Path(os.path.realpath(waiting.pop(0)))
        if folder in found or not folder.is_dir():
            continue
        if len(found) == MOST_BORROWED:
            where = printable(str(common))
            raise RepositoryError(
                f"{where} borrows objects from more than {MOST_BORROWED} places", f"git -C {where} repack -a -d"
            )
        found.append(folder)
        waiting += _borrowed(folder)
    return tuple(found)


def lent(repo: Path) -> tuple[Path, ...]:
    """What a box must let the programs of its jobs read; nothing of one that is gone, whose runs go on all the same."""
    try:
        return object_folders(common_directory(repo))
    except (NotFoundError, RepositoryError):
        return ()


def _borrowed(folder: Path) -> list[Path]:
    listed = folder / "info" / "alternates"
    if not listed.is_file():
        return []
    rows = os.fsdecode(listed.read_bytes()).splitlines()
    return [folder / row for row in rows if row and not row.startswith(("#", '"'))]


def references(common: Path) -> dict[str, str]:
    """Every reference of the repository that is not one checkout's own, with the object it names."""
    found = dict(_packed(common))
    links: dict[str, str] = {}
    for name, said in _loose(common):
        if said.startswith("ref: "):
            links[name] = said.removeprefix("ref: ")
        elif _COMMIT.fullmatch(said):
            found[name] = said
    found |= {name: found[target] for name, target in links.items() if target in found}
    return {name: commit for name, commit in sorted(found.items()) if not name.startswith(_OWN_ALONE)}


def _packed(common: Path) -> Iterator[tuple[str, str]]:
    file = common / "packed-refs"
    for row in os.fsdecode(file.read_bytes()).splitlines() if file.is_file() else ():
        commit, _, name = row.partition(" ")
        if name.startswith("refs/") and _COMMIT.fullmatch(commit):
            yield name, commit


def _loose(common: Path) -> Iterator[tuple[str, str]]:
    for folder, _, names in os.walk(common / "refs"):
        for name in names:
            file = Path(folder, name)
            if not name.endswith(".lock") and file.is_file():
                yield str(file.relative_to(common)), os.fsdecode(file.read_bytes()).strip()


def settings_of(repo: Path) -> dict[str, str]:
    """How the repository wants its files: line ends, case, modes."""
    said = {entry.name: entry.value for entry in opened(repo).config if entry.value is not None}
    return {key.removeprefix("core."): said[key] for key in _FILES if key in said}


def sparse_list(repo: Path) -> Path | None:
    """Which files the checkout has, if it has not all of them."""
    config = opened(repo).config
    listed = git_directory(repo) / "info" / "sparse-checkout"
    wanted = "core.sparsecheckout" in config and config.get_bool("core.sparsecheckout")
    return listed if wanted and listed.is_file() else None


def configuration(repo: Path) -> bytes:
    """A configuration for a repository that shares its objects: what is harmless of its own, and nothing else.

    Without a name for who commits git refuses to merge, and in a box it finds no other: the last one it reads counts.
    """
    chosen: list[Setting] = [Setting("core", "repositoryformatversion", "0"), Setting("core", "bare", "false")]
    chosen += [Setting("user", "name", NAME), Setting("user", "email", ADDRESS)]
    for entry in opened(repo).config:
        name, value = entry.name, entry.value
        if value is None:
            continue
        if name in (*_FILES, *_PEOPLE):
            section, _, key = name.partition(".")
            chosen.append(Setting(section, key, value))
        elif found := _REMOTE.fullmatch(name):
            shown = without_credentials(value) if found["key"] == "url" else value
            chosen.append(Setting("remote", found["key"], shown, found["name"]))
    return written(chosen)
