"""The page of reviews that people record of their own work: a hint for others, nothing else (ruling M4)."""

from collections.abc import Mapping

from activities.store.registry.review_rows import ReviewFilter
from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.parts import lists
from bridge.operations import paging
from bridge.operations.registry import repos, reviews
from bridge.operations.service import Service


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    repo, pull_request = asked.query.get("repo") or None, asked.query.get("pr", "")
    number = lists.number(pull_request, "a pull request")
    before = paging.place(asked.query.get("before"))
    records = reviews.find(service, ReviewFilter(repo, number, lists.PER_PAGE + 1, before))
    shown, older = paging.page(records, lists.PER_PAGE + 1, lambda review: (review.opened_at, review.review_id))
    return {
        "title": "Reviews",
        "reviews": [reviews.view(record) for record in shown],
        "older": older,
        "later_page": before is not None,
        "repo": repo or "",
        "pull_request": pull_request,
        "repos": [registered.name for registered in repos.every(service)],
    }


async def _note(service: Service, form: SubmittedForm) -> Done:
    review_id = form.text("review")
    reviews.note(service, review_id, form.text("text"), form.actor)
    return success(f"the note was added to {review_id}")


PAGES = (PageView("/reviews", "reviews.html", _look),)
ACTIONS = (FormAction("/reviews/note", _note),)
