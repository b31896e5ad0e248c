"""Take over an agent's commits: copy them as data, then fetch them with every object checked (ruling N3).

Only plain object files of the agent's `.git` are read. They are copied into a repository of the service's, which
borrows from the registered repository only; git then reads them as if a stranger had sent them.
"""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from activities.git import plain_files
from activities.git.command import GitError, git, more_config, printable
from activities.git.own_side import lend, side_of
from workflows.model.errors import RefusedError

FETCH_SECONDS = 300.0
MOST_BYTES = 2 << 30
"""Size limit of all objects of an agent."""

MOST_FILES = 500_000

_LOOSE = re.compile(r"[0-9a-f]{2}")
_LOOSE_FILE = re.compile(r"[0-9a-f]{38}")
_PACK_FILE = re.compile(r"pack-[0-9a-f]{40}\.(?:pack|idx)")
_CONFIG = "[core]\n\tbare = true\n\trepositoryformatversion = 0\n[uploadpack]\n\tallowAnySHA1InWant = true\n"
_CHECKED = {
    "fetch.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "core.logAllRefUpdates": "false",
}
_AS_THEY_ARE = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull, "GIT_NO_LAZY_FETCH": "1"}
_OPTIONS = (
    *("--quiet", "--no-tags", "--refmap=", "--no-write-fetch-head", "--no-recurse-submodules"),
    *("--no-auto-maintenance", "--upload-pack=git-upload-pack"),
)


def take_over(path: Path, common: Path, commits: Collection[str]) -> None:
    """Fetch the commits and all their objects into the service's side of the work folder, or refuse."""
    side = side_of(path)
    with _copied(path, common) as source:
        try:
            command = ("fetch", *_OPTIONS, "--", str(source), *sorted(set(commits)))
            env = _AS_THEY_ARE | more_config(_CHECKED)
            git(side, *command, env=env, seconds=FETCH_SECONDS)
        except GitError as error:
            said = error.said.replace(str(source), ".git")
            where = printable(str(path))
            fsck = f"git -C {where} fsck"
            raise RefusedError(f"what was committed there does not pass git's check: {said}", fsck) from None


@contextmanager
def _copied(path: Path, common: Path) -> Iterator[Path]:
    """Copy the agent's objects into a temporary repository with nothing else of the agent's."""
    folder = Path(tempfile.mkdtemp(prefix="taken-", dir=side_of(path)))
    try:
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (folder / name).mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text(_CONFIG)
        lend(common, folder)
        if (side_of(path) / "shallow").is_file():
            shutil.copyfile(side_of(path) / "shallow", folder / "shallow")
        _copy_objects(path, folder / "objects")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_objects(path: Path, target: Path) -> None:
    budget = _Budget(path)
    with plain_files.folder_at(path) as top, plain_files.folder_below(top, ".git/objects") as objects:
        for name in os.listdir(objects):
            if name == "pack" or _LOOSE.fullmatch(name):
                wanted = _PACK_FILE if name == "pack" else _LOOSE_FILE
                with plain_files.folder_below(objects, name) as folder:
                    _copy_files(folder, wanted, target / name, budget)


def _copy_files(folder: int, wanted: re.Pattern[str], target: Path, budget: "_Budget") -> None:
    target.mkdir(exist_ok=True)
    with os.scandir(folder) as listing:
        for entry in listing:
            if wanted.fullmatch(entry.name) and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                with plain_files.file_below(folder, entry.name, MOST_BYTES) as source:
                    budget.spend(plain_files.copy(source, target / entry.name, budget.left))


class _Budget:
    """The size and number of files that may still be copied."""

    def __init__(self, path: Path) -> None:
        self._path, self.left, self._files = path, MOST_BYTES, MOST_FILES

    def spend(self, copied: int) -> None:
        self.left -= copied
        self._files -= 1
        if self.left <= 0 or self._files <= 0:
            where = printable(str(self._path))
            raise RefusedError(
                f"what was committed there is more than is taken over ({MOST_BYTES >> 30} GiB, {MOST_FILES} files)",
                f"git -C {where} count-objects -vH",
            )
