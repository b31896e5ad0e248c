"""One-time links to the dashboard: made on the terminal by the home's owner, redeemed by its bridge (ruling M6)."""

import json
import os
import secrets
import time
from hashlib import sha256
from pathlib import Path

from activities.runs.regular_files import write_private
from activities.settings.home import Home

SECONDS = 300
"""The validity of an unopened link."""


def make(home: Home, actor: str) -> str:
    """Create a link and return its code. Whoever opens the link acts under this name."""
    folder = home.ensure().dashboard_links
    folder.mkdir(mode=0o700, exist_ok=True)
    _forget_old(folder)
    code = secrets.token_urlsafe(24)
    write_private(folder / _name(code), json.dumps({"actor": actor, "until": time.time() + SECONDS}))
    return code


def take(home: Home, code: str) -> str | None:
    """Redeem a code and return who made its link; None if the code is unknown, expired or used."""
    path = home.dashboard_links / _name(code)
    mine = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.rename(mine)  # if two open it at once, one wins
        link = json.loads(mine.read_text())
        mine.unlink()
    except (OSError, ValueError):
        return None
    return str(link["actor"]) if link["until"] > time.time() else None


def _name(code: str) -> str:
    """Return a file name that does not reveal the code."""
    return sha256(code.encode("utf-8", "replace")).hexdigest()


def _forget_old(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.stat().st_mtime < time.time() - SECONDS:
            Path(entry.path).unlink(missing_ok=True)
