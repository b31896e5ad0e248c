"""Long lists on a page: the search box, its filters, and links to older and newer pages. All of it is in the
address.
"""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from bridge.http.dashboard.frame.page import PageRequest
from bridge.operations import searching
from workflows.model.errors import UsageError

PER_PAGE = 50
Filters = Mapping[str, str]


def searched(
    asked: PageRequest,
    names: tuple[str, ...],
    find: Callable[[Filters], Mapping[str, object]],
    *,
    has_text: bool = True,
) -> dict[str, object]:
    """Return what a list shows: its filters, from the search box and from fields, and what `find` returns for them.

    If the search can't be understood, the page shows why beside the box instead of a list. A list may have no text that
    words are looked for in.
    """
    fields = {name: asked.query.get(name, "").strip() for name in ("q", *names)}
    try:
        typed, words = searching.parse(fields["q"], names)
        if words and not has_text:
            raise UsageError(
                f"words are not searched for here; use one of: {', '.join(names)}, such as {names[0]}:VALUE"
            )
        filters = fields | typed | {"q": words}
        shown = find(filters)
    except UsageError as error:
        return {"filters": fields, "chips": (), "fault": error, "status": error.status, "narrowed": True}
    narrowed = {name: value for name, value in filters.items() if value}
    chips = [(name, narrowed[name], address(asked.path, narrowed, without=name)) for name in names if name in narrowed]
    return {"filters": filters, "chips": chips, "fault": None, "narrowed": bool(narrowed), **shown}


def number(text: str, what: str) -> int | None:
    """Parse the number of a pull request or an issue from a field; None if the field is empty."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{text[:20]!r} is not the number of {what}")
    return int(text) if text else None


def ways(asked: PageRequest, filters: Filters, next_cursor: str | None, name: str = "cursor") -> dict[str, str]:
    """Return the addresses of `newest` and `older`; empty if there is nothing more to see."""
    newest = address(asked.path, filters) if name in asked.query else ""
    older = address(asked.path, {**filters, name: next_cursor}) if next_cursor else ""
    return {"newest": newest, "older": older}


def address(path: str, filters: Filters, *, without: str = "") -> str:
    """Return the address of a list with these filters, those that are empty left out."""
    query = urlencode({name: value for name, value in filters.items() if value and name != without})
    return f"{path}?{query}" if query else path
