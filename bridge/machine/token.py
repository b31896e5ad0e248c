"""The bearer token: one secret per home, in a file of its owner's alone (ruling J10)."""

import hmac
import os
import secrets
from pathlib import Path

from activities.settings.home import Home
from activities.settings.ready import write_private
from bridge.machine.watched_file import WatchedFile

BYTES = 32


def ensure(home: Home) -> Path:
    """The token's file; made when it is not there, and closed to everybody else when it was not."""
    _private_home(home)
    path = home.bridge_token
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    write_private(draft, secrets.token_urlsafe(BYTES))
    try:
        os.link(draft, path)  # of two that begin at once, one makes it and both use it
    except FileExistsError:
        path.chmod(0o600)
    finally:
        draft.unlink()
    return path


def rotate(home: Home) -> Path:
    """A new token, in force at once in a bridge that runs; the old one opens nothing from now on."""
    _private_home(home)
    write_private(home.bridge_token, secrets.token_urlsafe(BYTES))
    return home.bridge_token


def _private_home(home: Home) -> None:
    home.ensure().root.chmod(0o700)


class Token:
    """The token in force, whoever replaced it and when."""

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, bytes.strip)

    def accepts(self, shown: bytes) -> bool:
        """Compared in constant time; an empty or missing file accepts nothing."""
        expected = self._file.value()
        return bool(expected) and hmac.compare_digest(shown, expected or b"")

    def signature(self, of: bytes) -> bytes | None:
        """Only who knows the token in force can make it; None while there is no token."""
        key = self._file.value()
        return hmac.digest(key, of, "sha256") if key else None
