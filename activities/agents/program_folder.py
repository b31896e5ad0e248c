"""A program's own folder for the jobs of one session, in place of the operator's (ruling N2).

It is made before each run from parts of the operator's folder: the login without its refresh token, some settings, and
instructions. After a run only the sessions stay. A tree's folders are removed with the tree. Nothing is written to the
operator's folder, and the agent's memories in it are not read.

Refresh tokens are often single-use. A job that used the operator's would log the operator out, since it cannot write
the new token to the operator's file. So the operator's program alone renews it (`login_renewal`), and the copy follows,
also while a job runs.
"""

import contextlib
import json
import os
import secrets
import shutil
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from activities.agents.adapter import CannotLaunchError
from activities.runs.regular_files import SAFE, create
from activities.runtimes.programs import Program

MOST_ENTRIES, MOST_BYTES = 5_000, 50 * 1024**2
"""The most instructions that are copied for a run."""

CHECK = "service runtime check"

OWN_SERVER = "service"
"""The name of this service's own MCP server in a program's settings: no job has it (ruling S4)."""


def make(folder: Path, program: Program, users: Path, settings: Mapping[str, str]) -> None:
    """Make the folder for a run, with `settings` by file name and copies from the operator's folder `users`.

    Sessions stay. The rest is replaced: a program that ran without a box may have left anything here, even links.
    """
    if rest := only_sessions(folder, program):
        shutil.rmtree(rest, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in program.instructions:
        _Copier(users / name).copy(f"{users}/{name}", f"{folder}/{name}")
    for name, text in (*_logins(program, users), *settings.items()):
        _write(folder / name, text)


def only_sessions(folder: Path, program: Program) -> Path | None:
    """Move everything but sessions out of the folder. Return the folder that now holds it, for the caller to delete:
    that can take long. Logins in the folders of sessions are deleted.
    """
    rest = folder.with_name(f"{folder.name}.{secrets.token_hex(8)}")
    try:
        folder.rename(rest)
    except FileNotFoundError:
        return None
    folder.mkdir(mode=0o700)
    for name in program.writes:
        if os.path.lexists(rest / name) and not (rest / name).is_symlink():
            (rest / name).rename(folder / name)
    for path in (path for pattern in program.credentials for path in folder.glob(pattern)):
        path.unlink()
    return rest


def besides_sessions(folder: Path, program: Program) -> tuple[Path, ...]:
    """List the folder's content besides sessions. Empty if there is no folder, as for programs that an older release
    started.
    """
    names = sorted(os.listdir(folder)) if folder.exists() else ()
    return tuple(folder / name for name in names if name not in program.writes)


def follow(folder: Path, program: Program, users: Path) -> None:
    """Copy the operator's renewed login to a running program.

    The files are overwritten, not replaced, because a box mounts the file itself. A shorter login is padded with
    spaces, so that one write replaces all of it.
    """
    for name, text in _logins(program, users):
        login = text.encode()
        with contextlib.suppress(OSError):
            descriptor = os.open(folder / name, os.O_RDWR | SAFE)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and os.pread(descriptor, status.st_size, 0).rstrip() != login:
                    os.pwrite(descriptor, login.ljust(status.st_size), 0)
            finally:
                os.close(descriptor)


def pick(settings: Mapping[str, Any], patterns: Iterable[str]) -> dict[str, Any]:
    """Return the settings whose keys match the patterns of what jobs get."""
    wanted = tuple(patterns)
    return {key: value for key, value in settings.items() if any(fnmatchcase(key, each) for each in wanted)}


def read_toml(path: Path) -> dict[str, Any]:
    """Read the operator's settings; a missing file has none."""
    with _readable(path):
        return tomllib.loads(path.read_text("utf-8-sig")) if path.exists() else {}


def read_json(path: Path) -> dict[str, Any]:
    """Read the operator's settings; a missing file has none."""
    with _readable(path):
        read = json.loads(path.read_text("utf-8-sig") or "{}") if path.exists() else {}
        if not isinstance(read, dict):
            raise ValueError("it is no JSON object")
        return read


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, RecursionError, OSError) as error:
        raise CannotLaunchError(
            f"the settings in {path} cannot be read: {error}", f"correct them; then: {CHECK}"
        ) from None


def chosen_servers(servers: object, names: Iterable[str], runtime: str, path: Path) -> dict[str, Any]:
    """Return the MCP servers that `[runtimes.<name>].mcp_servers` names, of those in the program's settings."""
    known = servers if isinstance(servers, dict) else {}
    if missing := [name for name in names if name not in known]:
        raise CannotLaunchError(
            f"[runtimes.{runtime}].mcp_servers names {missing[0]}, which {path} does not have",
            f"correct one of the two; then: {CHECK}",
        )
    return {name: known[name] for name in names if name != OWN_SERVER}


def _logins(program: Program, users: Path) -> Iterator[tuple[str, str]]:
    """Yield the operator's login files, without refresh tokens. Unreadable files are left out."""
    for path in (path for pattern in program.credentials for path in sorted(users.glob(pattern))):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            login = json.loads(path.read_text())
            if isinstance(login, dict) and program.login_used:
                login = {key: login[key] for key in program.login_used if key in login}
            yield str(path.relative_to(users)), json.dumps(_replace(login, dict(program.renews)))


def _replace(value: object, values: Mapping[str, object]) -> object:
    """Return a copy of a JSON value in which these keys have these values."""
    match value:
        case dict():
            return {key: values.get(key, _replace(inner, values)) for key, inner in value.items()}
        case list():
            return [_replace(inner, values) for inner in value]
        case _:
            return value


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with open(create(path), "w", encoding="utf-8") as file:
        file.write(text)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE


class _Copier:
    """Copies instructions, within bounds. It follows the operator's links, and leaves out unreadable files."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._entries = self._bytes = 0

    def copy(self, source: str, target: str) -> None:
        """Copy a file, or a folder with all in it."""
        with contextlib.suppress(OSError):
            status = os.stat(source)
            if stat.S_ISDIR(status.st_mode):
                self._count(0)
                names = sorted(os.listdir(source))
                os.mkdir(target, 0o700)
                for name in names:
                    self.copy(f"{source}/{name}", f"{target}/{name}")
            elif stat.S_ISREG(status.st_mode):
                self._count(status.st_size)
                mode = 0o700 if status.st_mode & stat.S_IXUSR else 0o600
                with open(source, "rb", 0) as original, open(os.open(target, _NEW, mode), "wb", 0) as copy:
                    copy.write(original.read(status.st_size))

    def _count(self, size: int) -> None:
        self._entries, self._bytes = self._entries + 1, self._bytes + size
        if self._entries > MOST_ENTRIES or self._bytes > MOST_BYTES:
            raise CannotLaunchError(
                f"{self._source} has more than {MOST_ENTRIES} files or {MOST_BYTES >> 20} MiB, too much for each job",
                f"move what jobs do not need elsewhere; then: {CHECK}",
            )
