"""The files a program needs to start: the program itself, its installation, and its interpreter.

Only programs that an operator registered or set are looked up, never a name that an agent made up.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from activities.boxes.system_files import is_system

DEEPEST = 4
"""The most interpreters that are followed, each the interpreter of the one before."""

FIRST_LINE = 512


def required_files(command: Sequence[str], search: str | None, home: Path) -> tuple[Path, ...]:
    """List the files and folders outside the system that a command needs: those of its program, and arguments that are
    files.
    """
    program = shutil.which(command[0], path=search) if command else None
    named = [Path(program)] if program else []
    named += [Path(word) for word in command[1:] if os.path.isabs(word) and os.path.isfile(word)]
    return tuple(dict.fromkeys(part for path in named for part in _parts(path, search, home, DEEPEST)))


def _parts(file: Path, search: str | None, home: Path, depth: int) -> Iterator[Path]:
    """Yield the file's path as named and with links resolved, its installation, and the parts of its interpreter."""
    real = file.resolve()
    for path in dict.fromkeys((file, real)):
        if not is_system(path):
            yield path
            yield from _installation(path, home)
    if depth and (interpreter := _interpreter(real, search)):
        yield from _parts(interpreter, search, home, depth - 1)


def _installation(file: Path, home: Path) -> Iterator[Path]:
    """Yield the program's installation: a prefix with `bin` and `lib`, a virtual environment and its base Python, or
    node's package tree.
    """
    if modules := next((each for each in reversed(file.parents) if each.name == "node_modules"), None):
        yield modules
    prefix = file.parent.parent
    if file.parent.name != "bin" or prefix in (home, home / ".local", Path("/")):
        return
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        yield prefix
        lines = settings.read_text(errors="replace").splitlines()
        yield from (Path(line.partition("=")[2].strip()).parent for line in lines if line.startswith("home"))
    elif (prefix / "lib").is_dir():
        yield prefix


def _interpreter(file: Path, search: str | None) -> Path | None:
    """Find the interpreter that the file's first line names."""
    try:
        with file.open("rb") as opened:
            first = opened.read(FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return None
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
    if not words:
        return None
    if Path(words[0]).name == "env":
        program = next((shutil.which(word, path=search) for word in words[1:] if not word.startswith("-")), None)
        return Path(program) if program else None
    return Path(words[0])
