"""Recording an inline pull request review (spec: In-session review state). Display only, and it says so."""

import re
import secrets
import time
from dataclasses import dataclass
from typing import Any

from activities.store import reviews as stored
from activities.store.reviews import Review
from bridge.operations import repos
from bridge.operations.service import Service
from workflows.contract.redact import redact
from workflows.errors import NotFoundError, RefusedError, UsageError
from workflows.tree import ids

_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


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
    if repo:
        repos.get(service, repo)
    root = ids.root_id(time.time_ns() // 1_000_000, secrets.randbits(ids.RANDOM_BITS))
    review = Review(root.replace("job-", "review-"), repo, pull_request, head_sha, workflow, time.time(), None, None)
    stored.add(service.store, review)
    return review


def get(service: Service, review_id: str) -> Review:
    """One review, or a sentence that says there is none."""
    review = stored.get(service.store, review_id)
    if review is None:
        raise NotFoundError(f"no in-session review {review_id}", "service job open --type review --pr N --head-sha SHA")
    return review


@dataclass(frozen=True)
class Filter:
    """Which reviews are listed."""

    repo: str | None = None
    pull_request: int | None = None
    limit: int = 50
    before: tuple[float, str] | None = None
    """The time and id of the last one seen."""


def find(service: Service, wanted: Filter) -> list[Review]:
    """The newest reviews that match."""
    return stored.find(
        service.store,
        repo=wanted.repo,
        pull_request=wanted.pull_request,
        before=wanted.before,
        limit=wanted.limit,
    )


def note(service: Service, review_id: str, text: str, author: str) -> Review:
    """Write a progress note into an open review."""
    if get(service, review_id).closed_at:
        raise RefusedError(f"{review_id} is closed", f"service job show {review_id}")
    if not text.strip():
        raise UsageError("the note is empty", f'service job note {review_id} "TEXT"')
    stored.note(service.store, review_id, author, redact(text))
    return get(service, review_id)


def close(service: Service, review_id: str, verdict: str) -> Review:
    """Close a review, with what its author concluded."""
    get(service, review_id)
    if not stored.close(service.store, review_id, redact(verdict)):
        raise RefusedError(f"{review_id} was closed before", f"service job show {review_id}")
    return get(service, review_id)


def as_json(review: Review) -> dict[str, Any]:
    """What `--json` prints: always graded reported, always labeled non_authoritative."""
    return {
        "review_id": review.review_id,
        "type": "review",
        "repo": review.repo,
        "pull_request": review.pull_request,
        "head_sha": review.head_sha,
        "workflow": review.workflow,
        "opened_at": review.opened_at,
        "closed_at": review.closed_at,
        "review_status": {
            "state": "closed" if review.closed_at else "open",
            "grade": "reported",
            "label": "non_authoritative",
            "verdict": review.verdict,
        },
        "notes": [{"author_asserted": n.author, "text": n.text, "at": n.at} for n in review.notes],
    }
