"""The keys in the service home that prove data to be the service's own, private to their owner.

The home seals with the key in `seal.key`. It also accepts seals of keys in `seal.key.d`, where 0.2.0 kept former keys
(ruling Q10). These keys aren't used directly: each purpose has its own derived key. Programs of the owner's account can
read the files, unless they run in a box that hides the home.
"""

import contextlib
import errno
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from workflows.model.errors import ServiceError

FILE, FOLDER = "seal.key", "seal.key.d"
BYTES = 32
SHOWN = 12
"""Digits of a fingerprint that people see, compare and type."""


class SealKeyError(ServiceError):
    """The key in the service home cannot be used."""

    code = "seal_key"


def ensure(home: Path) -> bytes:
    """Return the home's key; make one if it is missing. Concurrent callers get one key."""
    if (key := read(home)) is None:
        _make(home / FILE, new())
        key = read(home)
    assert key is not None
    return key


def new() -> bytes:
    """Return a new random key."""
    return secrets.token_bytes(BYTES)


def read(home: Path) -> bytes | None:
    """Read the key that seals; return None if it is missing."""
    return _read(home / FILE)


def every(home: Path) -> tuple[bytes, ...]:
    """Return all keys of a home, first the key that seals; empty if that is missing."""
    key = read(home)
    return () if key is None else (key, *(other for path in files(home) if (other := _read(path)) is not None))


def files(home: Path) -> list[Path]:
    """Return the files of the keys that only open."""
    try:
        return sorted(path for path in (home / FOLDER).iterdir() if "." not in path.name)
    except FileNotFoundError:
        return []


def add(home: Path, key: bytes) -> None:
    """Store a key that only opens; an existing file stays."""
    (home / FOLDER).mkdir(mode=0o700, exist_ok=True)
    _make(_place(home, key), key)


def take(home: Path, key: bytes, others: Sequence[bytes]) -> None:
    """Store the keys of a fleet in a home that has none yet: the key that seals, and those that only open."""
    _make(home / FILE, key)
    for other in others:
        add(home, other)


def renew(home: Path) -> None:
    """Replace all keys by a new one."""
    for path in (home / FILE, *files(home)):
        path.unlink(missing_ok=True)
    ensure(home)


def _place(home: Path, key: bytes) -> Path:
    return home / FOLDER / fingerprint(key)


def _read(path: Path) -> bytes | None:
    """Read a key. Refuse one that others could read or may have made."""
    if (known := _known.get(path)) is not None and known[0] == _looks(path):
        return known[1]
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise
        raise SealKeyError(f"{path} is a link or a socket", f"ls -l {path}") from None
    with open(descriptor, "rb") as file:
        status, key = os.fstat(descriptor), file.read(BYTES + 1)
    private = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    if not private:
        raise SealKeyError(f"{path} is not a private file of this account", f"chmod 600 {path}")
    if len(key) != BYTES:
        fix = f"service daemon stop; rm '{path}'; service daemon start"
        raise SealKeyError(f"{path} does not hold a key of {BYTES} bytes", fix)
    _known[path] = _looks_of(status), key
    return key


_Looks = tuple[int, ...]
_known: dict[Path, tuple[_Looks, bytes]] = {}
"""Cache of keys with their file's stat data: a run reads its key several times."""


def _looks(path: Path) -> _Looks | None:
    try:
        return _looks_of(path.lstat())
    except FileNotFoundError:
        return None


def _looks_of(status: os.stat_result) -> _Looks:
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_uid,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def derive(key: bytes, purpose: str, *of: str) -> bytes:
    """Derive a key for one purpose, and for one subject of that purpose; derived keys reveal nothing about
    each other.
    """
    label = b"\0".join(os.fsencode(part) for part in (purpose, *of))
    return hmac.new(key, label, hashlib.sha256).digest()


def fingerprint(key: bytes) -> str:
    """Return the public fingerprint of a key, by which hosts compare theirs; it reveals nothing about the key."""
    return derive(key, "fingerprint").hex()


def _make(path: Path, key: bytes) -> None:
    """Make the file atomically, unless it exists."""
    with _draft(path, key) as draft, contextlib.suppress(FileExistsError):
        os.link(draft, path)


@contextlib.contextmanager
def _draft(path: Path, key: bytes) -> Iterator[Path]:
    """Write the key to a temporary file beside `path`. Remove it afterwards, unless it was moved to `path`."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
