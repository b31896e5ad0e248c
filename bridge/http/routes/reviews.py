"""In-session reviews, for people to see (spec: In-session review state)."""

from fastapi import APIRouter

from activities.store.registry.review_rows import ReviewFilter
from bridge.http.wire.authorization import needs
from bridge.http.wire.dependencies import ServiceDep
from bridge.http.wire.document import errors
from bridge.http.wire.parameters import Cursor, Limit, PullRequest
from bridge.http.wire.projections import hide_paths
from bridge.http.wire.schemas import ReviewList
from bridge.http.wire.strict_route import StrictRoute
from bridge.http.wire.thread_pools import read
from bridge.machine.token_scopes import TokenScope
from bridge.operations.paging import page, place
from bridge.operations.registry import reviews
from bridge.operations.service import Service

router = APIRouter(route_class=StrictRoute, tags=["reviews"])


@router.get("/v1/reviews", responses=errors(), openapi_extra=needs(TokenScope.READ))
async def list_reviews(
    service: ServiceDep,
    repo: str | None = None,
    pull_request: PullRequest = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ReviewList:
    """The newest in-session reviews that match, a page at a time, like `service job reviews`."""
    return await read(_page, service, ReviewFilter(repo, pull_request, limit + 1, place(cursor)))


def _page(service: Service, wanted: ReviewFilter) -> ReviewList:
    rows, more = page(reviews.find(service, wanted), wanted.limit, lambda last: (last.opened_at, last.review_id))
    return hide_paths(service, ReviewList(reviews=[reviews.view(row) for row in rows], next_cursor=more))
