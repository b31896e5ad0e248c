"""The page of reviews that people record of their own work: a hint for others, nothing else (ruling M4)."""

from collections.abc import Mapping

from activities.store.registry.review_rows import ReviewFilter
from bridge.http.dashboard.frame.page import Action, Asked, Done, Form, Page, done
from bridge.http.dashboard.parts import lists
from bridge.operations import paging
from bridge.operations.registry import repos, reviews
from bridge.operations.service import Service


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    repo, pull_request = asked.query.get("repo") or None, asked.query.get("pr", "")
    number = lists.number(pull_request, "a pull request")
    before = paging.place(asked.query.get("before"))
    found = reviews.find(service, ReviewFilter(repo, number, lists.PER_PAGE + 1, before))
    shown, older = paging.page(found, lists.PER_PAGE + 1, lambda review: (review.opened_at, review.review_id))
    return {
        "title": "Reviews",
        "reviews": [reviews.view(each) for each in shown],
        "older": older,
        "later_page": before is not None,
        "repo": repo or "",
        "pull_request": pull_request,
        "repos": [each.name for each in repos.every(service)],
    }


async def _note(service: Service, form: Form) -> Done:
    review_id = form.text("review")
    reviews.note(service, review_id, form.text("text"), form.actor)
    return done(f"the note was added to {review_id}")


PAGES = (Page("/reviews", "reviews.html", _look),)
ACTIONS = (Action("/reviews/note", _note),)
