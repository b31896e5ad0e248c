"""The common key of tests' homes, so that a server's client and every home belong to one service."""

import os
from pathlib import Path

from activities.sealing import seal_key
from activities.settings.home import Home

KEY = b"the key of every home of a test."


def give(home: Home) -> Home:
    """Write this key into a home, in place of its own."""
    with open(os.open(home.root / seal_key.FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(KEY)
    return home


def turn(home: Path) -> None:
    """Let a home seal with another key, and keep the former one to open, as release 0.2.0 left it."""
    former = seal_key.ensure(home)
    (home / seal_key.FILE).unlink()
    seal_key.take(home, seal_key.new(), [former])
