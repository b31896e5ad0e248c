"""Results of actions, kept until the next page has shown them (POST, redirect, GET)."""

import secrets
from collections import OrderedDict

from bridge.http.dashboard.frame.page import Note

MOST = 500


class Notes:
    """A cache of the newest notes, by session."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[Note, ...]] = OrderedDict()

    def keep(self, session_key: str, notes: tuple[Note, ...]) -> str:
        """Keep notes for the next page, and return their name."""
        name = secrets.token_hex(6)
        self._kept[session_key, name] = notes
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return name

    def take(self, session_key: str, name: str) -> tuple[Note, ...]:
        """Return and forget the notes: a page that is reloaded does not repeat them."""
        return self._kept.pop((session_key, name), ())
