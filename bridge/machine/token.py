"""The bearer token: one secret per home, in a file of its owner's alone (ruling J10)."""

import hmac
import os
import secrets
from pathlib import Path

from activities.runs.regular_files import NotRegularError, opened, write_private
from activities.settings.closing import TOKEN_BYTES
from activities.settings.home import Home
from bridge.machine.watched_file import WatchedFile
from workflows.model.errors import RefusedError


def ensure(home: Home) -> Path:
    """The token's file; made when it is not there, and closed to everybody else when it was not."""
    path = home.ensure().bridge_token
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    write_private(draft, secrets.token_urlsafe(TOKEN_BYTES))
    try:
        os.link(draft, path)  # of two that begin at once, one makes it and both use it
    except FileExistsError:
        _close(path)
    finally:
        draft.unlink()
    return path


def _close(path: Path) -> None:
    """The token there is, closed to everybody else. A link, or somebody else's file, is none."""
    try:
        with opened(path) as file:
            os.fchmod(file.fileno(), 0o600)
    except NotRegularError as error:
        raise RefusedError(f"{error}", f"rm {path}; then: service bridge token --rotate") from None


def rotate(home: Home) -> Path:
    """A new token, in force at once in a bridge that runs; the old one opens nothing from now on."""
    home.ensure()
    write_private(home.bridge_token, secrets.token_urlsafe(TOKEN_BYTES))
    return home.bridge_token


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
