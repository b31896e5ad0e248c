"""Search texts and pages of lists. A cursor is the sort key of the last row shown, opaque to callers."""

import base64
import json
import math
from collections.abc import Callable
from typing import TypeVar

from workflows.model.errors import UsageError

LONGEST_SEARCH = 200
T = TypeVar("T")


def check_search(text: str) -> None:
    """Refuse a search text that is too long."""
    if len(text) > LONGEST_SEARCH:
        raise UsageError(f"a search has at most {LONGEST_SEARCH} characters, not {len(text)}")


def cursor(at: float, identity: str) -> str:
    """Return the cursor of the page after this row."""
    return base64.urlsafe_b64encode(json.dumps([at, identity]).encode()).decode().rstrip("=")


def page(rows: list[T], limit: int, key: Callable[[T], tuple[float, str]]) -> tuple[list[T], str | None]:
    """Return a page and the cursor of the next one; `rows` has one more row than a page if there is a next page."""
    shown = rows[: limit - 1]
    return shown, cursor(*key(shown[-1])) if len(rows) > len(shown) else None


def place(text: str | None) -> tuple[float, str] | None:
    """Return the sort key that a cursor contains; None for the first page."""
    if text is None:
        return None
    try:
        at, identity = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
        if isinstance(identity, str) and isinstance(at, float | int) and math.isfinite(at):
            return float(at), identity
    except (ValueError, TypeError, OverflowError):
        pass
    raise UsageError("invalid cursor: pass next_cursor of the previous page, or omit it")
