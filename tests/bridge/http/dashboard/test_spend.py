"""The spend, as a picture and as tables (ruling M4)."""

import re
import time
from typing import Any

import pytest

from bridge.http.dashboard.parts.slow_answers import Recent
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.http.dashboard.surfer import Surfer
from workflows.model.spend import Usage

pytestmark = pytest.mark.ruling("M4")


def write(service: Service, number: int, days_ago: int = 0, **fields: Any) -> None:
    used = {"usage": Usage(input_tokens=1_000, output_tokens=20), "cost_usd": 0.25}
    at = time.time() - 86_400 * days_ago
    seeds.write(service, seeds.job(f"{seeds.ROOT}.{number}", **used | {"queued_at": at} | fields))


async def test_it_is_told_by_day_agent_repository_and_model(service: Service, ann: Surfer) -> None:
    write(service, 1, model="m-1", usage=Usage(input_tokens=1_000, output_tokens=20, requests=12))
    seeds.write(service, seeds.event(1, f"{seeds.ROOT}.1", kind="result_repaired", at=time.time()))
    write(service, 2, 3, agent="builder", cost_usd=0.5, price_assumed=True)
    shown = await ann.open("/ui/spend")
    assert "~$0.75 and 2\u202f040 tokens in 30 days" in shown.html
    for row in ("builder 1 1 000 20 ~$0.50 - 0", "acme/shop 2 2 000 40 ~$0.75 12 1", "m-1 1 1 000 20 $0.25 12 1"):
        assert row in shown.words.replace("\u202f", " ")


@pytest.mark.ruling("S6")
async def test_a_job_s_page_shows_its_requests(service: Service, ann: Surfer) -> None:
    used = Usage(input_tokens=1_000, output_tokens=20, requests=12)
    seeds.write(service, seeds.task(), seeds.job(usage=used, cost_usd=0.25))
    assert "20 out, $0.25, by 12 requests" in (await ann.open(f"/ui/jobs/{seeds.ROOT}")).words


async def test_the_picture_has_a_bar_for_each_day_and_says_in_words_what_it_shows(
    service: Service, ann: Surfer
) -> None:
    write(service, 1)
    write(service, 2, 3, cost_usd=0.5)
    html = (await ann.open("/ui/spend?days=7")).html
    assert html.count("<rect class=") == 7
    assert sorted(re.findall(r'<rect x=[^>]* height="([\d.]+)"', html)) == ["120.0", "60.0"]
    assert 'role="img" aria-label="Dollars of each day; the table below says the same.' in html
    assert " style=" not in html


async def test_where_nothing_cost_dollars_the_picture_shows_tokens(service: Service, ann: Surfer) -> None:
    write(service, 1, cost_usd=0.0)
    assert 'aria-label="Tokens of each day' in (await ann.open("/ui/spend")).html


async def test_many_agents_are_summed_up(service: Service, ann: Surfer) -> None:
    for number in range(1, 36):
        write(service, number, agent=f"agent-{number:02}", cost_usd=float(number))
    words = (await ann.open("/ui/spend")).words
    assert "5 others" in words
    assert "agent-35" in words
    assert "agent-05" not in words


async def test_who_nobody_pays_for_sees_how_to_begin(ann: Surfer) -> None:
    assert "service agent ask" in (await ann.open("/ui/spend")).words


@pytest.mark.parametrize("days", ["x", "0", "-1", "9999", "367", ""])
async def test_a_number_of_days_that_makes_no_sense_is_refused(ann: Surfer, days: str) -> None:
    assert (await ann.open(f"/ui/spend?days={days}")).status == 400


async def test_the_names_of_agents_and_models_are_text(service: Service, ann: Surfer) -> None:
    write(service, 1, agent="<script>alert(1)</script>", model='"><b>m\u202e')
    html = (await ann.open("/ui/spend")).html
    for wrong in ("<script>alert", "<b>m", "\u202e"):
        assert wrong not in html


async def test_it_is_not_added_up_anew_at_every_change(
    service: Service, ann: Surfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.http.dashboard.pages.spend._spent", Recent(seconds=600))
    write(service, 1)
    assert "$0.25 and" in (await ann.open("/ui/spend")).words
    write(service, 2)
    assert "$0.25 and" in (await ann.open("/ui/spend")).words
    monkeypatch.setattr("bridge.http.dashboard.pages.spend._spent", Recent(seconds=0))
    assert "$0.50 and" in (await ann.open("/ui/spend")).words
