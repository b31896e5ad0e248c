"""Long lists on a page: their filters, and links to older and newer pages. All of it is in the address."""

from collections.abc import Mapping
from urllib.parse import urlencode

from bridge.http.dashboard.frame.page import PageRequest
from workflows.model.errors import UsageError

PER_PAGE = 50


def filters_of(asked: PageRequest, *names: str) -> dict[str, str]:
    """Return the values of a list's filter fields, stripped."""
    return {name: asked.query.get(name, "").strip() for name in names}


def number(text: str, what: str) -> int | None:
    """Parse the number of a pull request or an issue from a field; None if the field is empty."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{text[:20]!r} is not the number of {what}")
    return int(text) if text else None


def ways(asked: PageRequest, filters: Mapping[str, str], next_cursor: str | None) -> dict[str, str]:
    """Return the addresses of `newest` and `older`; empty if there is nothing more to see."""
    kept = {name: value for name, value in filters.items() if value}
    newest = _address(asked.path, kept) if "cursor" in asked.query else ""
    older = _address(asked.path, kept | {"cursor": next_cursor}) if next_cursor else ""
    return {"newest": newest, "older": older}


def _address(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
