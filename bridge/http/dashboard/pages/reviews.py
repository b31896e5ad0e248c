"""The page of reviews that people record of their own work: a hint for others, nothing else (ruling M4)."""

from collections.abc import Mapping

from activities.store.registry.review_rows import ReviewFilter
from bridge.http.dashboard.frame.page import Done, FormAction, PageRequest, PageView, SubmittedForm, success
from bridge.http.dashboard.parts import lists
from bridge.http.dashboard.parts.lists import Filters
from bridge.operations import paging
from bridge.operations.registry import repos, reviews
from bridge.operations.service import Service

FILTERS = ("repo", "pr")


def _look(service: Service, asked: PageRequest) -> Mapping[str, object]:
    def find(filters: Filters) -> Mapping[str, object]:
        number = lists.number(filters["pr"], "a pull request")
        before = paging.place(asked.query.get("before"))
        records = reviews.find(service, ReviewFilter(filters["repo"] or None, number, lists.PER_PAGE + 1, before))
        shown, older = paging.page(records, lists.PER_PAGE + 1, lambda review: (review.opened_at, review.review_id))
        return {
            "reviews": [reviews.view(record) for record in shown],
            "ways": lists.ways(asked, filters, older, "before"),
        }

    return {
        "title": "Reviews",
        "repos": [registered.name for registered in repos.every(service)],
        **lists.searched(asked, FILTERS, find, has_text=False),
    }


async def _note(service: Service, form: SubmittedForm) -> Done:
    review_id = form.text("review")
    reviews.note(service, review_id, form.text("text"), form.actor)
    return success(f"the note was added to {review_id}")


PAGES = (PageView("/reviews", "reviews.html", _look),)
ACTIONS = (FormAction("/reviews/note", _note),)
