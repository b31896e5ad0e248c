"""What became of what people did, kept until the page that follows has shown it (POST, redirect, GET)."""

import secrets
from collections import OrderedDict

from bridge.http.dashboard.frame.page import Note

MOST = 500


class Notes:
    """The newest ones, each for the session it belongs to."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[Note, ...]] = OrderedDict()

    def keep(self, session_key: str, notes: tuple[Note, ...]) -> str:
        """The name under which the next page finds them."""
        name = secrets.token_hex(6)
        self._kept[session_key, name] = notes
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return name

    def take(self, session_key: str, name: str) -> tuple[Note, ...]:
        """Shown once: a page that is loaded again does not say it again."""
        return self._kept.pop((session_key, name), ())
