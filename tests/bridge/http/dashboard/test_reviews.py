"""In-session reviews on a page, labelled as hints (ruling M4)."""

import pytest

from activities.store.registry import review_rows
from activities.store.registry.review_rows import Review
from bridge.operations.registry import reviews
from bridge.operations.service import Service
from tests.bridge.http.dashboard.surfer import ANN, Surfer

pytestmark = pytest.mark.ruling("M4")
NOTE = "/ui/reviews/note"


def opened(service: Service, label: str = "by hand") -> str:
    kind = {"kind": "review", "head_sha": "abcdef0123", "workflow": label, "repo": None}
    return reviews.open_review(service, pull_request=7, **kind).review_id  # type: ignore[arg-type]


async def test_a_review_is_labelled_as_a_hint(service: Service, ann: Surfer) -> None:
    opened(service)
    words = (await ann.open("/ui/reviews")).words
    assert "Everything here is what its author says; no gate reads it." in words
    assert "Pull request 7" in words
    assert "a hint: no gate reads it" in words


async def test_a_note_is_added_under_the_name_of_who_writes(service: Service, ann: Surfer) -> None:
    review = opened(service)
    shown = await ann.send((await ann.open("/ui/reviews")).form(NOTE), text="half done\nso far")
    [note] = reviews.get(service, review).notes
    assert (note.text, note.author) == ("half done\nso far", ANN)
    assert "half done" in shown.words


async def test_a_note_for_a_review_that_was_closed_meanwhile_is_kept_in_the_form(service: Service, ann: Surfer) -> None:
    closed, _other = opened(service), opened(service)
    form = (await ann.open("/ui/reviews")).form(NOTE, review=closed)
    reviews.close(service, closed, "fine")
    shown = await ann.send(form, text="too late")
    assert shown.status == 409
    assert "is closed" in shown.words
    assert "Its author's verdict: fine" in shown.words
    assert reviews.get(service, closed).notes == ()


async def test_an_empty_note_is_refused(service: Service, ann: Surfer) -> None:
    opened(service)
    shown = await ann.send((await ann.open("/ui/reviews")).form(NOTE), text=" ")
    assert (shown.status, "the note is empty" in shown.words) == (400, True)


async def test_they_are_found_by_pull_request_and_in_pages(service: Service, ann: Surfer) -> None:
    for number in range(1, 61):
        review = Review(f"review-{number:012x}", None, number, "a" * 40, f"label-{number}-", float(number), None, None)
        review_rows.add(service.store, review)
    first = await ann.open("/ui/reviews")
    [older] = [link for link in first.read.links if "before" in link]
    second = await ann.open(older)
    seen = [{number for number in range(1, 61) if f"label-{number}-" in each.html} for each in (first, second)]
    assert (seen[0] | seen[1], seen[0] & seen[1]) == (set(range(1, 61)), set())
    assert "label-9-" in (await ann.open("/ui/reviews?pr=9&repo=")).html
    assert "No reviews like that" in (await ann.open("/ui/reviews?pr=99")).words
    assert "label-9-" in (await ann.open("/ui/reviews?q=pr:9")).html
    refused = await ann.open("/ui/reviews?q=agent:me")
    assert (refused.status, "unknown filter 'agent'. Use one of: repo, pr" in refused.words) == (400, True)


@pytest.mark.parametrize("query", ["pr=x", "pr=9999999999", "before=x", "before=%00"])
async def test_an_address_that_was_made_up_is_refused(ann: Surfer, query: str) -> None:
    assert (await ann.open(f"/ui/reviews?{query}")).status == 400


async def test_what_authors_wrote_is_text(service: Service, ann: Surfer) -> None:
    review = opened(service, "<b>label</b>")
    reviews.note(service, review, "<script>alert(1)</script> \u202e", "<i>me</i>")
    html = (await ann.open("/ui/reviews")).html
    for wrong in ("<b>label", "<script>alert", "<i>me", "\u202e"):
        assert wrong not in html


async def test_without_reviews_it_says_how_to_record_one(ann: Surfer) -> None:
    assert "service job open --type review" in (await ann.open("/ui/reviews")).words
