"""The parts of a registered repository that its jobs may use: readable objects, references, a few settings.

All of it is read as plain files or by libgit2: nothing of the repository is run. Configuration files are formatted
here: libgit2 rewrites the file for each setting, and every job's folder gets two such files.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from activities.git.command import git, line, printable
from activities.git.library import ADDRESS, NAME, RepositoryError, ask_once, missing, open_repository
from activities.git.remotes import without_credentials
from workflows.model.errors import NotFoundError, ServiceError

MOST_BORROWED = 20
"""Most object folders that a repository may read, including its own."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OWN_ALONE = ("refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/replace/")
"""References private to a checkout, or that change the content of commits (replace)."""

_FILES = ("core.autocrlf", "core.eol", "core.ignorecase", "core.filemode", "core.symlinks", "core.precomposeunicode")
_PEOPLE = ("user.name", "user.email")
_REMOTE = re.compile(r"remote\.(?P<name>.+)\.(?P<key>url|fetch|promisor|partialclonefilter)", re.DOTALL)


@ask_once
def common_directory(repo: Path) -> Path:
    """Return the git directory that the repository's worktrees share."""
    if not repo.exists():
        raise missing(repo)
    try:
        common = _common(git_directory(repo))
    except (OSError, UnicodeDecodeError):
        common = None
    if common is None or not (common / "objects").is_dir() or not (common / "HEAD").is_file():
        where = printable(str(repo))
        raise RepositoryError(f"{where} is not the root of a git repository", f"git -C {where} init")
    return common


@ask_once
def git_directory(repo: Path) -> Path:
    """Return the git directory with the checkout's own HEAD: `.git`, the folder that file names, or the bare
    repository.
    """
    entry = repo / ".git"
    if entry.is_file():
        named = entry.read_text().strip().removeprefix("gitdir: ")
        return Path(os.path.realpath(repo / named))
    return Path(os.path.realpath(entry if entry.is_dir() else repo))


def _common(own: Path) -> Path:
    shared = own / "commondir"
    return Path(os.path.realpath(own / shared.read_text().strip())) if shared.is_file() else own


@ask_once
def object_folders(common: Path) -> tuple[Path, ...]:
    """List every folder with objects of the repository: its own, and those it borrows from."""
    folders: list[Path] = []
    waiting = [common / "objects"]
    while waiting:
        folder = Path(os.path.realpath(waiting.pop(0)))
        if folder in folders or not folder.is_dir():
            continue
        if len(folders) == MOST_BORROWED:
            where = printable(str(common))
            raise RepositoryError(
                f"{where} borrows objects from more than {MOST_BORROWED} places", f"git -C {where} repack -a -d"
            )
        folders.append(folder)
        waiting += _alternates(folder)
    return tuple(folders)


def readable_folders(repo: Path) -> tuple[Path, ...]:
    """List the object folders that a job's box must make readable; empty if the repository has been removed."""
    try:
        return object_folders(common_directory(repo))
    except (NotFoundError, RepositoryError):
        return ()


def _alternates(folder: Path) -> list[Path]:
    listed = folder / "info" / "alternates"
    if not listed.is_file():
        return []
    rows = os.fsdecode(listed.read_bytes()).splitlines()
    return [folder / row for row in rows if row and not row.startswith(("#", '"'))]


TRACKED = "refs/hub/"
"""The namespace of the hub's references as they were fetched last (ruling Q3)."""


def references(common: Path) -> dict[str, str]:
    """Return the object of every reference, except those private to a checkout or to the service."""
    return {
        name: commit for name, commit in every_reference(common).items() if not name.startswith((*_OWN_ALONE, TRACKED))
    }


def every_reference(common: Path) -> dict[str, str]:
    """Return the object of every reference. The loose ones are read first: git may pack them meanwhile."""
    loose = dict(_loose_references(common))
    objects = dict(_packed_references(common))
    links: dict[str, str] = {}
    for name, content in loose.items():
        if content.startswith("ref: "):
            links[name] = content.removeprefix("ref: ")
        elif _COMMIT.fullmatch(content):
            objects[name] = content
    objects |= {name: objects[target] for name, target in links.items() if target in objects}
    return dict(sorted(objects.items()))


def _packed_references(common: Path) -> Iterator[tuple[str, str]]:
    file = common / "packed-refs"
    for row in os.fsdecode(file.read_bytes()).splitlines() if file.is_file() else ():
        commit, _, name = row.partition(" ")
        if name.startswith("refs/") and _COMMIT.fullmatch(commit):
            yield name, commit


def _loose_references(common: Path) -> Iterator[tuple[str, str]]:
    for folder, _, names in os.walk(common / "refs"):
        for name in names:
            file = Path(folder, name)
            if not name.endswith(".lock") and file.is_file():
                with suppress(FileNotFoundError):
                    yield str(file.relative_to(common)), os.fsdecode(file.read_bytes()).strip()


MOST_LOOSE = 500
"""Loose references that a repository may have before they are packed."""


def pack_references(repo: Path) -> None:
    """Pack the references if many are loose: each is a file, and every job reads them all. Git's own maintenance, which
    would pack them, is off where the service runs git.
    """
    with suppress(ServiceError):  # the repository is gone, or somebody else packs them
        if sum(len(names) for _, _, names in os.walk(common_directory(repo) / "refs")) > MOST_LOOSE:
            git(repo, "pack-refs", "--all")


def settings_of(repo: Path) -> dict[str, str]:
    """Return the repository's settings for its files: line ends, case, modes."""
    settings = {entry.name: entry.value for entry in open_repository(repo).config if entry.value is not None}
    return {key.removeprefix("core."): settings[key] for key in _FILES if key in settings}


def sparse_list(repo: Path) -> Path | None:
    """Return the checkout's sparse-checkout file, if it uses one."""
    config = open_repository(repo).config
    listed = git_directory(repo) / "info" / "sparse-checkout"
    wanted = "core.sparsecheckout" in config and config.get_bool("core.sparsecheckout")
    return listed if wanted and listed.is_file() else None


def configuration(repo: Path) -> bytes:
    """Build the configuration for a repository that shares its objects: harmless settings only.

    It names a committer, without which git refuses to merge: in a box git finds no other name. The last setting counts.
    """
    chosen: list[Setting] = [Setting("core", "repositoryformatversion", "0"), Setting("core", "bare", "false")]
    chosen += [Setting("user", "name", NAME), Setting("user", "email", ADDRESS)]
    for entry in open_repository(repo).config:
        name, value = entry.name, entry.value
        if value is None:
            continue
        if name in (*_FILES, *_PEOPLE):
            section, _, key = name.partition(".")
            chosen.append(Setting(section, key, value))
        elif match := _REMOTE.fullmatch(name):
            text = without_credentials(value) if match["key"] == "url" else value
            chosen.append(Setting("remote", match["key"], text, match["name"]))
    return format_settings(chosen)


@dataclass(frozen=True)
class Setting:
    """One line of a configuration file."""

    section: str
    key: str
    value: str
    subsection: str = ""


def format_settings(settings: Iterable[Setting]) -> bytes:
    """Format the file. Settings with characters that no such file can hold are left out."""
    rows: list[str] = []
    for setting in settings:
        if "\n" in setting.subsection or "\0" in setting.subsection + setting.value:
            continue
        head = f'[{setting.section} "{_escape(setting.subsection)}"]' if setting.subsection else f"[{setting.section}]"
        value = _escape(setting.value).replace("\n", "\\n").replace("\t", "\\t")
        rows += [head, f'\t{setting.key} = "{value}"']
    return ("\n".join(rows) + "\n").encode("utf-8", "surrogateescape")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@contextmanager
def borrower(repo: Path) -> Iterator[Path]:
    """Make an empty repository that borrows the objects of another, and delete it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="service-git-"))
    try:
        _borrow(folder, repo)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _borrow(folder: Path, repo: Path) -> None:
    common = common_directory(repo)
    form = line(repo, "rev-parse", "--show-object-format")
    git(folder, "init", "--quiet", "--bare", "--template=", f"--object-format={form}")
    (folder / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "info" / "alternates").write_bytes(bytes(common / "objects") + b"\n")
    if (common / "shallow").exists():
        shutil.copyfile(common / "shallow", folder / "shallow")
