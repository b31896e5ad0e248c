"""The GitHub account's credentials, read at the start from the environment or a private file. Other processes don't
have them.
"""

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from activities.settings.model import Github
from workflows.model.errors import UsageError


@dataclass(frozen=True)
class App:
    """An installation of a GitHub App."""

    app_id: str
    installation_id: str
    private_key: str = field(repr=False)


@dataclass(frozen=True)
class Credentials:
    """A token, or a GitHub App."""

    token: str = field(default="", repr=False)
    app: App | None = None


def credentials(settings: Github, environ: Mapping[str, str]) -> Credentials:
    """Read the credentials that `[github]` names; raise UsageError if they are missing."""
    if settings.app_id:
        return Credentials(app=App(settings.app_id, settings.installation_id, _private_key(settings)))
    token = environ.get(settings.token_env, "").strip()
    if not token:
        raise UsageError(
            f"[github].token_env names {settings.token_env}, which is not set where the daemon was started",
            f"export {settings.token_env}=..., then: service daemon stop && service daemon start",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{settings.token_env} holds no token", f"export {settings.token_env}=...")
    return Credentials(token=token)


def _private_key(settings: Github) -> str:
    path = Path(settings.private_key_file).expanduser()
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise UsageError(f"[github].private_key_file {path} is open to others", f"chmod 600 '{path}'")
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"[github].private_key_file {path} cannot be read: {why}", "service config check") from None
