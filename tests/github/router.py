"""Routing by method and path, GitHub's refusals, and paging of lists."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from tests.github.wire import Json, Reply, Request

DOCS = "https://docs.github.com/rest"
S = TypeVar("S")
Handler = Callable[..., Reply]
H = TypeVar("H", bound=Handler)


class RefusedError(Exception):
    """An answer that ends the request at once."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        body: Json = {"message": message, **more, "documentation_url": DOCS, "status": str(status)}
        self.reply = Reply(status, body)


def not_found() -> RefusedError:
    return RefusedError(404, "Not Found")


def invalid(resource: str, name: str = "", code: str = "invalid", message: str = "") -> RefusedError:
    """Return GitHub's 422 with a field, or with a sentence."""
    error = {"resource": resource, "code": "custom" if message else code}
    if name:
        error["field"] = name
    if message:
        error["message"] = message
    return RefusedError(422, "Validation Failed", errors=[error])


@dataclass
class Router(Generic[S]):
    """A router whose handlers get their state, the request, and the named parts of the path."""

    _routes: list[tuple[str, re.Pattern[str], Handler]] = field(default_factory=list)

    def on(self, method: str, path: str) -> Callable[[H], H]:
        """Register a handler; `{name}` is one part of the path, `{name...}` any number."""
        pattern = re.sub(r"\{(\w+)\.\.\.\}", r"(?P<\1>.+)", re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

        def keep(handler: H) -> H:
            self._routes.append((method, re.compile(pattern), handler))
            return handler

        return keep

    def answer(self, on: S, request: Request) -> Reply | None:
        """Return the answer, or None if no route matches."""
        for method, pattern, handler in self._routes:
            if method == request.method and (match := pattern.fullmatch(request.path)):
                try:
                    return handler(on, request, **match.groupdict())
                except RefusedError as refused:
                    return refused.reply
        return None


def paged(request: Request, items: Sequence[Any], wrap: Callable[[list[Any]], Any] | None = None) -> Reply:
    """Return the requested page, with the addresses of its neighbours in `Link`."""
    size = min(max(_number(request, "per_page", 30), 1), 100)
    page, last = max(_number(request, "page", 1), 1), max(-(-len(items) // size), 1)
    part = list(items[(page - 1) * size : page * size])
    near = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
    shown = [
        name for name in near if (name in ("next", "last") and page < last) or (name in ("prev", "first") and page > 1)
    ]
    base = f"http://{request.headers.get('host', 'api.github.com')}{request.path}"
    links = [f'<{base}?{urlencode({**request.query, "page": near[name]})}>; rel="{name}"' for name in shown]
    return Reply(200, wrap(part) if wrap else part, {"Link": ", ".join(links)} if links else {})


def _number(request: Request, name: str, default: int) -> int:
    try:
        return int(request.query.get(name, default))
    except ValueError:
        return default
