"""In-session reviews, for people to see (spec: In-session review state)."""

from fastapi import APIRouter
from starlette.responses import Response

from bridge.http.answers import json_bytes
from bridge.http.cursors import cursor as cursor_after
from bridge.http.cursors import place
from bridge.http.documented import errors
from bridge.http.off_loop import read
from bridge.http.parameters import Cursor, Limit, PullRequest
from bridge.http.schemas import ReviewList
from bridge.http.strict_route import StrictRoute
from bridge.operations import projections, reviews
from bridge.operations.service import Service


def router(service: Service) -> APIRouter:
    made = APIRouter(route_class=StrictRoute, tags=["reviews"])

    @made.get("/v1/reviews", response_model=ReviewList, responses=errors())
    async def list_reviews(
        repo: str | None = None, pull_request: PullRequest = None, limit: Limit = 50, cursor: Cursor = None
    ) -> Response:
        """The newest in-session reviews that match, a page at a time; the same as `service job reviews`."""
        return json_bytes(await read(_page, service, reviews.Filter(repo, pull_request, limit + 1, place(cursor))))

    return made


def _page(service: Service, wanted: reviews.Filter) -> bytes:
    """One more than the page holds was asked for: it says whether there is another."""
    found = reviews.find(service, wanted)
    page = found[: wanted.limit - 1]
    more = cursor_after(page[-1].opened_at, page[-1].review_id) if len(found) > len(page) else None
    return projections.hidden(service, {"reviews": [reviews.as_json(each) for each in page], "next_cursor": more})
