"""The key in the service home that proves data to be the service's own: made once, private to its owner.

The key itself seals nothing: each purpose has its own derived key. Programs of the owner's account can read the file,
unless they run in a box that hides the home.
"""

import contextlib
import errno
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from workflows.model.errors import ServiceError

FILE = "seal.key"
BYTES = 32


class SealKeyError(ServiceError):
    """The key in the service home cannot be used."""

    code = "seal_key"


def ensure(home: Path) -> bytes:
    """Return the home's key; make one if it is missing. Concurrent callers get one key."""
    if (key := read(home)) is None:
        _make(home / FILE)
        key = read(home)
    assert key is not None
    return key


def read(home: Path) -> bytes | None:
    """Read the key; return None if it is missing. Refuse one that others could read or may have made."""
    path = home / FILE
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
        found, key = os.fstat(descriptor), file.read(BYTES + 1)
    private = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    if not private:
        raise SealKeyError(f"{path} is not a private file of this account", f"chmod 600 {path}")
    if len(key) != BYTES:
        fix = f"service daemon stop; rm '{path}'; service daemon start"
        raise SealKeyError(f"{path} does not hold a key of {BYTES} bytes", fix)
    _known[path] = _told(found), key
    return key


_Looks = tuple[int, ...]
_known: dict[Path, tuple[_Looks, bytes]] = {}
"""Cache of keys with their file's stat data: a run reads its key several times."""


def _looks(path: Path) -> _Looks | None:
    try:
        return _told(path.lstat())
    except FileNotFoundError:
        return None


def _told(found: os.stat_result) -> _Looks:
    return found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def derived(key: bytes, purpose: str, *of: str) -> bytes:
    """Derive a key for one purpose, and for one subject of that purpose; derived keys reveal nothing about
    each other.
    """
    label = b"\0".join(os.fsencode(each) for each in (purpose, *of))
    return hmac.new(key, label, hashlib.sha256).digest()


def fingerprint(key: bytes) -> str:
    """Return the public fingerprint of a key, by which hosts compare theirs; it reveals nothing about the key."""
    return derived(key, "fingerprint").hex()


def _make(path: Path) -> None:
    """Make the file atomically, unless it exists."""
    draft = path.with_name(f"{FILE}.{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
