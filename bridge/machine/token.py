"""The bearer token: one secret per home, in a file that only its owner can read (ruling J10)."""

import hmac
import os
import secrets
from pathlib import Path

from activities.runs.regular_files import NotRegularError, open_to_read, write_private
from activities.settings.home import Home
from activities.settings.secure_home import TOKEN_BYTES
from bridge.machine.watched_file import WatchedFile
from workflows.model.errors import RefusedError


def ensure(home: Home) -> Path:
    """Return the token's file. Create it if it is missing, and restrict its permissions otherwise."""
    path = home.ensure().bridge_token
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    write_private(draft, secrets.token_urlsafe(TOKEN_BYTES))
    try:
        os.link(draft, path)  # if two start at once, one creates it and both use it
    except FileExistsError:
        _close(path)
    finally:
        draft.unlink()
    return path


def _close(path: Path) -> None:
    """Restrict the existing file to its owner. Refuse a link or another account's file."""
    try:
        with open_to_read(path) as file:
            os.fchmod(file.fileno(), 0o600)
    except NotRegularError as error:
        raise RefusedError(f"{error}", f"rm {path}; then: service bridge token --rotate") from None


def rotate(home: Home) -> Path:
    """Replace the token at once, also in a running bridge, and return its file. The old one is refused from now on."""
    home.ensure()
    write_private(home.bridge_token, secrets.token_urlsafe(TOKEN_BYTES))
    return home.bridge_token


class Token:
    """The current token; a replacement by another process is noticed."""

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, bytes.strip)

    def accepts(self, shown: bytes) -> bool:
        """Compare in constant time; an empty or missing file accepts nothing."""
        expected = self._file.value()
        return bool(expected) and hmac.compare_digest(shown, expected or b"")

    def signature(self, of: bytes) -> bytes | None:
        """Return a signature that only a holder of the token can make; None without a token."""
        key = self._file.value()
        return hmac.digest(key, of, "sha256") if key else None
