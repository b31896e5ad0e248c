"""Long lists on a page: what they are narrowed to, and the way to older and newer ones. Works by addresses alone."""

from collections.abc import Mapping
from urllib.parse import urlencode

from bridge.http.dashboard.frame.page import Asked
from workflows.model.errors import UsageError

PER_PAGE = 50


def wanted(asked: Asked, *names: str) -> dict[str, str]:
    """What the fields of a list's form say, without the blanks around it."""
    return {name: asked.query.get(name, "").strip() for name in names}


def number(text: str, what: str) -> int | None:
    """A field that takes the number of a pull request or an issue; empty is none."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{text[:20]!r} is not the number of {what}")
    return int(text) if text else None


def ways(asked: Asked, said: Mapping[str, str], next_cursor: str | None) -> dict[str, str]:
    """Where `newest` and `older` lead; empty where there is nothing else to see."""
    kept = {name: value for name, value in said.items() if value}
    newest = _address(asked.path, kept) if "cursor" in asked.query else ""
    older = _address(asked.path, kept | {"cursor": next_cursor}) if next_cursor else ""
    return {"newest": newest, "older": older}


def _address(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
