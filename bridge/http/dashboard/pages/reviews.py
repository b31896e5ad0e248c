"""The page of reviews that people record of their own work: a hint for others, nothing else (ruling M4)."""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Action, Asked, Done, Form, Page, done
from bridge.http.dashboard.parts import lists
from bridge.operations.registry import repos, reviews
from bridge.operations.registry.reviews import ReviewFilter
from bridge.operations.service import Service
from workflows.model.errors import UsageError

A_PAGE = 50


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    repo, pull_request = asked.query.get("repo") or None, asked.query.get("pr", "")
    number = lists.number(pull_request, "a pull request")
    before = _place(asked.query["before"]) if "before" in asked.query else None
    found = reviews.find(service, ReviewFilter(repo, number, A_PAGE + 1, before))
    shown = [reviews.shown(each) for each in found[:A_PAGE]]
    return {
        "title": "Reviews",
        "reviews": shown,
        "older": f"{shown[-1].opened_at!r},{shown[-1].review_id}" if len(found) > A_PAGE else "",
        "later_page": before is not None,
        "repo": repo or "",
        "pull_request": pull_request,
        "repos": [each.name for each in repos.every(service)],
    }


def _place(text: str) -> tuple[float, str]:
    """Parse the cursor of the next page."""
    at, comma, review_id = text.partition(",")
    try:
        return float(at), review_id if comma else ""
    except ValueError:
        raise UsageError("this page of reviews is none", "/ui/reviews") from None


async def _note(service: Service, form: Form) -> Done:
    review_id = form.text("review")
    reviews.note(service, review_id, form.text("text"), form.actor)
    return done(f"the note stands in {review_id}")


PAGES = (Page("/reviews", "reviews.html", _look),)
ACTIONS = (Action("/reviews/note", _note),)
