"""In-session reviews in a list, over HTTP and on the command line, labelled as hints for people."""

import json

import httpx
import pytest

from activities.store.registry import review_rows
from activities.store.registry.review_rows import Review
from bridge.http.wire.schemas import ReviewList
from bridge.operations.service import Service
from cli.main import main

pytestmark = pytest.mark.ruling("spec:result.in_session_review")


def opened(service: Service, number: int, **fields: object) -> str:
    name = f"review-{number:012d}"
    base = Review(name, "acme/shop", 7, "abcdef1", "inline", float(number // 2), None, None)
    review_rows.add(service.store, Review(**{**base.__dict__, **fields}))
    return name


async def test_pages_follow_one_another_and_every_review_is_reported_and_not_authoritative(
    service: Service, call: httpx.AsyncClient
) -> None:
    names = [opened(service, number) for number in range(5)]
    review_rows.note(service.store, names[4], "ann", "half way")
    review_rows.close(service.store, names[4], "fine")
    seen, query = [], "?limit=2"
    while query:
        listed = (await call.get(f"/v1/reviews{query}")).json()
        page = ReviewList.model_validate(listed, strict=True)
        seen += page.reviews
        query = f"?limit=2&cursor={page.next_cursor}" if page.next_cursor else ""
    assert [each.review_id for each in seen] == [names[4], names[3], names[2], names[1], names[0]]
    labels = {(each.review_status.grade, each.review_status.label) for each in seen}
    assert labels == {("reported", "non_authoritative")}
    assert (seen[0].review_status.state, seen[0].review_status.verdict) == ("closed", "fine")
    assert [(note.author_asserted, note.text) for note in seen[0].notes] == [("ann", "half way")]


async def test_filters_are_those_of_the_command_line_and_bad_words_are_refused(
    service: Service, call: httpx.AsyncClient
) -> None:
    one, two = opened(service, 1), opened(service, 2, repo=None, pull_request=8)

    async def found(query: str) -> list[str]:
        return [each["review_id"] for each in (await call.get(f"/v1/reviews?{query}")).json()["reviews"]]

    assert await found("repo=acme/shop") == [one]
    assert await found("pull_request=8") == [two]
    for query in ("cursor=", "cursor=x", "pull_request=0", "limit=0"):
        assert (await call.get(f"/v1/reviews?{query}")).status_code == 400, query


def test_the_command_line_lists_them_and_says_what_they_are_worth(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERVICE_HOME", str(service.home.root))
    assert main(["job", "reviews"]) == 0
    assert "service job open --type review" in capsys.readouterr().out
    name = opened(service, 3)
    assert main(["job", "reviews", "--repo", "acme/shop", "--pr", "7"]) == 0
    shown = capsys.readouterr().out
    assert name in shown
    assert "reported, non_authoritative" in shown
    assert main(["job", "reviews", "--json"]) == 0
    (review,) = json.loads(capsys.readouterr().out)
    assert review["review_status"] == {
        "state": "open",
        "grade": "reported",
        "label": "non_authoritative",
        "verdict": None,
    }
