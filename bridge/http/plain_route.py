"""A route for what is asked a thousand times for each other call."""

from starlette.routing import Match, Route
from starlette.types import Scope


class PlainRoute(Route):
    """A GET without a query, straight to its endpoint: the framework reads parameters longer than we answer.

    Everything else goes on to the route of the same path that the document tells of.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
            return Match.NONE, {}
        match, found = super().matches(scope)
        return match, {**found, "route": self}
