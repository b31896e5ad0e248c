"""Values that this process knows to be secret: from its environment, the service home, and variables in the settings.

They are secret in any text, whatever they look like.
"""

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from workflows.secrets.spans import Span

SHORTEST = 8
_NAME = re.compile(
    r"(?i:(?:(?:^|_)(?:(?:API|APP|ACCESS|SECRET|PRIVATE|AUTH|SSH|SIGNING)?KEY|PASSWD|PASS|PWD|AUTH|DSN|PAT|COOKIE|JWT)"
    r"|TOKEN|SECRETS?|PASSWORD|PASSPHRASE|CREDENTIALS?)(?:$|_))"
)
_ORDINARY = re.compile(
    r"(?i:[a-z]{1,23}|[a-z][a-z._-]{1,22}[a-z]|[0-9]{1,11}|[0-9.]{1,15}|(?:~|\.{1,2})?/\S*|[a-z]:\\\S*|[a-z+]{2,12}://[^@\s]*)"
)
"""Values that occur in ordinary text: a word or two, a number, a path, a URL without a password."""


_Looks = tuple[int, ...]
"""Inode, size and time of a file when it was read; empty before that."""


class KnownValues:
    """A search for known secret values in texts. More values can be added."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self._files: dict[Path, _Looks] = {}
        self.learn(values)

    def learn(self, values: Iterable[str]) -> bool:
        """Add secret values to the search; return whether any is new."""
        new = {form for value in values if is_telling(value) for form in _forms(value)} - set(self._forms)
        self._forms += tuple(sorted(new, key=len, reverse=True))
        return bool(new)

    def watch(self, *files: Path) -> None:
        """Treat the content of these files as secret, also when they are written later."""
        self._files |= dict.fromkeys((file for file in files if file not in self._files), ())

    def look(self) -> bool:
        """Read the watched files again, and add new content to the search; return whether any was new."""
        new = [self._read(path, seen) for path, seen in tuple(self._files.items())]
        return any(new)

    def _read(self, path: Path, seen: _Looks) -> bool:
        try:
            status = os.lstat(path)
            looks = (status.st_ino, status.st_size, status.st_mtime_ns)  # two writes within a few ms have equal times
            if looks == seen:
                return False
            self._files[path], content = looks, path.read_bytes()
        except OSError:
            return False
        as_text = content.decode("utf-8", "replace").strip()
        return self.learn((as_text,) if as_text.isprintable() else (content.hex(), base64.b64encode(content).decode()))

    def find(self, text: str) -> "Iterator[Span]":
        """Yield the spans of known values."""
        for form in self._forms:
            at = text.find(form)
            while at >= 0:
                yield at, at + len(form)
                at = text.find(form, at + len(form))


def is_telling(value: str) -> bool:
    """Return whether a value can be searched for: it is long enough, and doesn't occur in ordinary text."""
    return len(value) >= SHORTEST and not _ORDINARY.fullmatch(value)


def of_environment(environ: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose names suggest a secret."""
    return [value.strip() for name, value in environ.items() if _NAME.search(name)]


@cache
def process() -> KnownValues:
    """Return the secret values that this process knows, at first those of its environment."""
    return KnownValues(of_environment(os.environ))


def _forms(value: str) -> Iterator[str]:
    """Yield the forms in which a value may occur: itself, each of its lines, URL-quoted, and in base64 at any
    offset.
    """
    yield value
    yield from (line.strip() for line in value.splitlines()[1:-1] if is_telling(line.strip()))
    raw = value.encode()
    if (quoted := quote(value, safe="")) != value:
        yield quoted
    for skip in range(3):
        whole = base64.b64encode(b"\0" * skip + raw).decode()
        first, last = (0, 2, 3)[skip], len(whole.rstrip("=")) - (1 if whole.endswith("=") else 0)
        if last - first >= SHORTEST + 2:
            yield whole[first:last]
            if (other := whole[first:last].replace("+", "-").replace("/", "_")) != whole[first:last]:
                yield other
