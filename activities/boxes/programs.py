"""What a program consists of: its file, and what stands around it that it cannot start without.

Only of what an operator registered or set: a name that an agent made up is never looked at.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from activities.boxes.system import is_system

DEEPEST = 4
"""Of programs that are started by programs."""

FIRST_LINE = 512


def needed(command: Sequence[str], search: str | None, home: Path) -> tuple[Path, ...]:
    """Files and folders outside the system that a command names: its program, and arguments that are files."""
    found = shutil.which(command[0], path=search) if command else None
    named = [Path(found)] if found else []
    named += [Path(word) for word in command[1:] if os.path.isabs(word) and os.path.isfile(word)]
    return tuple(dict.fromkeys(part for path in named for part in _parts(path, search, home, DEEPEST)))


def _parts(file: Path, search: str | None, home: Path, depth: int) -> Iterator[Path]:
    """The file as it is called and as it is, the installation it belongs to, what interprets it."""
    real = file.resolve()
    for path in dict.fromkeys((file, real)):
        if not is_system(path):
            yield path
            yield from _installation(path, home)
    if depth and (interpreter := _interpreter(real, search)):
        yield from _parts(interpreter, search, home, depth - 1)


def _installation(file: Path, home: Path) -> Iterator[Path]:
    """A prefix with `bin` and `lib`, a virtual environment with what it was made from, a tree of node's packages."""
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
    """What its first line names."""
    try:
        with file.open("rb") as opened:
            first = opened.read(FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return None
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
    if not words:
        return None
    if Path(words[0]).name == "env":
        found = next((shutil.which(word, path=search) for word in words[1:] if not word.startswith("-")), None)
        return Path(found) if found else None
    return Path(words[0])
