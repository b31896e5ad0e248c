"""Recording inline pull request reviews (spec: In-session review state). They are only displayed, and labelled so."""

import re
import secrets
import time
from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from activities.redaction.redact import redact_text
from activities.store.registry import review_rows
from activities.store.registry.review_rows import Review, ReviewFilter
from bridge.operations.registry import repos
from bridge.operations.registry.arguments import within_bound
from bridge.operations.service import Service
from workflows.contract.storable import storable
from workflows.model import ids
from workflows.model.errors import NotFoundError, RefusedError, UsageError

_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


class _ReviewModel(BaseModel):
    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class ReviewStatus(_ReviewModel):
    """The state of a review as its author reports it; no gate reads it."""

    state: Literal["open", "closed"]
    grade: Literal["reported"] = "reported"
    label: Literal["non_authoritative"] = "non_authoritative"
    verdict: str | None


class ReviewNote(_ReviewModel):
    """A progress note."""

    author_asserted: str = Field(description="Who wrote it, as the caller says.")
    text: str
    at: float


class ReviewView(_ReviewModel):
    """A pull request review that somebody says they are doing (spec: In-session review state)."""

    review_id: str
    type: Literal["review"] = "review"
    repo: str | None
    pull_request: int
    head_sha: str
    workflow: str
    opened_at: float
    closed_at: float | None
    review_status: ReviewStatus
    notes: list[ReviewNote]


def open_review(
    service: Service, *, kind: str, pull_request: int, head_sha: str, workflow: str, repo: str | None
) -> Review:
    """Open a review of a pull request at a commit."""
    if kind != "review":
        raise UsageError(f"{kind!r} cannot be opened by hand; the one type is review", "service job open --type review")
    if not _SHA.fullmatch(head_sha):
        raise UsageError(f"{head_sha!r} is not a commit: 7 to 64 hexadecimal digits", "git rev-parse HEAD")
    if not workflow.strip():
        raise UsageError("the workflow label is empty", "--workflow LABEL")
    if not 0 < pull_request < 2**31:
        raise UsageError(f"{pull_request} is not the number of a pull request", "--pr NUMBER")
    workflow = within_bound("label", "the workflow label", workflow)
    if repo:
        repos.get(service, repo)
    root = ids.root_id(time.time_ns() // 1_000_000, secrets.randbits(ids.RANDOM_BITS))
    review = Review(root.replace("job-", "review-"), repo, pull_request, head_sha, workflow, time.time(), None, None)
    review_rows.add(service.store, review)
    return review


def get(service: Service, review_id: str) -> Review:
    """Return a review; raise `NotFoundError` if the id is unknown."""
    review = review_rows.get(service.store, review_id)
    if review is None:
        raise NotFoundError(f"no in-session review {review_id}", "service job open --type review --pr N --head-sha SHA")
    return review


def find(service: Service, wanted: ReviewFilter) -> list[Review]:
    """Return the newest reviews that match."""
    return review_rows.find(service.store, wanted)


def note(service: Service, review_id: str, text: str, author: str) -> Review:
    """Add a progress note to an open review."""
    if get(service, review_id).closed_at:
        raise RefusedError(f"{review_id} is closed", f"service job show {review_id}")
    if not text.strip():
        raise UsageError("the note is empty", f'service job note {review_id} "TEXT"')
    review_rows.note(
        service.store, review_id, within_bound("author", "the author", author), storable(redact_text(text))
    )
    return get(service, review_id)


def close(service: Service, review_id: str, verdict: str) -> Review:
    """Close a review with its author's verdict."""
    get(service, review_id)
    if not review_rows.close(service.store, review_id, storable(redact_text(verdict))):
        raise RefusedError(f"{review_id} was closed before", f"service job show {review_id}")
    return get(service, review_id)


def view(review: Review) -> ReviewView:
    """Return the view of a review for every surface."""
    status = ReviewStatus(state="closed" if review.closed_at else "open", verdict=review.verdict)
    notes = [ReviewNote(author_asserted=each.author, text=each.text, at=each.at) for each in review.notes]
    fields = {name: value for name, value in asdict(review).items() if name in ReviewView.model_fields}
    return ReviewView(**fields | {"review_status": status, "notes": notes})
