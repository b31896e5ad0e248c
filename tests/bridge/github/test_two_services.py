"""Two services on one repository, with separate accounts or a shared one: each keeps to its own trees (L3 to L6)."""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store.github import account
from bridge.github import orders
from bridge.operations.orders.resume import ResumeOutcome
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.github.conftest import Office, bind, working
from tests.github.hub import Hub
from workflows.github.facts import fact_in
from workflows.model.orders import ResumeOrder

ONE, TWO = seeds.ROOT, "job-0123456789cd"
pytestmark = pytest.mark.ruling("L3", "L4", "L6")


class Two:
    """Two services on one pull request, each with a tree that waits for a person."""

    def __init__(self, first: Office, second: Office, number: int) -> None:
        self.offices, self.number, self.hub = (first, second), number, first.hub
        self.said: list[tuple[Path, str, str]] = []

    async def resume(self, service: Service, order: ResumeOrder) -> ResumeOutcome:
        self.said.append((service.home.root, order.job_id, order.text))
        return ResumeOutcome("recorded", applied=True)

    async def hear(self, times: int = 2) -> None:
        for _ in range(times):
            for office in self.offices:
                account.want_reading(office.session.store)
                await office.turns()

    async def told(self, body: str, as_: str = "ann") -> int:
        comment = self.hub.comment(as_=as_, number=self.number, body=body)
        await self.hear()
        return comment

    def marks(self) -> list[str]:
        return [mark for body in self.hub.bodies(self.number) if (mark := fact_in(body))]

    def answers(self) -> list[str]:
        return [mark for mark in self.marks() if not mark.startswith("job-")]


WITH_ONE_ACCOUNT_AND_WITH_TWO = pytest.mark.parametrize("two", ["one account", "two accounts"], indirect=True)


@pytest.fixture
async def two(
    request: pytest.FixtureRequest,
    hub: Hub,
    home: Home,
    empty_store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Two]:
    other, login = (
        Home(tmp_path / "other").ensure(),
        "other" if getattr(request, "param", "") == "two accounts" else "helper",
    )
    shutil.copyfile(empty_store, other.store)
    more = 'commands = ["resume", "status", "kill"]'
    async with working(home, hub, more) as first, working(other, hub, login=login) as second:
        made = Two(first, second, hub.pull())
        monkeypatch.setattr(orders, "resume", made.resume)
        for office, root in zip(made.offices, (ONE, TWO), strict=True):
            bind(office, made.number, root)
            asked = seeds.round_(root, opened_at=time.time(), expires_at=time.time() + 60)
            seeds.write(office.service, asked, seeds.event(2, root, kind="round_opened"))
        await made.hear()
        yield made


@WITH_ONE_ACCOUNT_AND_WITH_TWO
async def test_each_tells_its_own_once(two: Two) -> None:
    await two.hear(3)
    assert Counter(two.marks()) == Counter(f"{root}-{what}" for root in (ONE, TWO) for what in ("status", "r1-pause"))


@WITH_ONE_ACCOUNT_AND_WITH_TWO
async def test_each_command_acts_once_and_nobody_refuses_the_others(two: Two) -> None:
    await two.told(f"/service resume {TWO} answer blue")
    await two.told(f"/service resume {ONE} answer red\n/service resume {TWO} extend 2h")
    first, second = (each.service.home.root for each in two.offices)
    assert sorted(two.said) == sorted([(second, TWO, "blue"), (first, ONE, "red"), (second, TWO, "2h")])
    assert two.answers() == []


@WITH_ONE_ACCOUNT_AND_WITH_TWO
async def test_what_one_does_not_allow_it_does_not_refuse_for_the_other(two: Two) -> None:
    """Only the first service may be ordered to end a tree; bob may order nothing, and the addressed service replies."""
    comment = await two.told(f"/service kill {ONE}.9")
    assert [each["user"]["login"] for each in two.hub.comments(two.number) if "-refusal" in each["body"]] == ["helper"]
    assert "[github]" not in two.hub.bodies(two.number)[-1]
    by_bob = await two.told(f"/service resume {ONE} answer red", as_="bob")
    assert two.said == []
    assert two.answers() == [f"comment-{comment}-refusal", f"comment-{by_bob}-refusal"]


@WITH_ONE_ACCOUNT_AND_WITH_TWO
async def test_the_job_may_not_be_left_out_while_both_have_a_round_open(two: Two) -> None:
    """Otherwise each would take the answer as its own; with the suggested lines, each is answered."""
    await two.told("/service resume answer red")
    assert two.said == []
    assert all("several pauses were open here" in body for body in two.hub.bodies(two.number) if "-refusal -->" in body)
    over = {"opened_at": 1.0, "expires_at": 2.0, "end": "answered", "closed": "ann answered", "closed_at": 2.0}
    second = two.offices[1]
    seeds.write(second.service, seeds.round_(TWO, **over, revision=2), seeds.event(3, TWO, kind="round_closed"))
    await two.hear()
    await a_second()
    await two.told("/service resume answer blue")
    assert [(job, text) for _, job, text in two.said] == [(ONE, "blue")]


async def a_second() -> None:
    """Wait until GitHub's whole-second times differ."""
    await asyncio.sleep(1.1)


def close(office: Office, root: str) -> None:
    """End the round by an answer given elsewhere."""
    over = {"opened_at": 1.0, "expires_at": 2.0, "end": "answered", "closed": "ann answered", "closed_at": time.time()}
    seeds.write(office.service, seeds.round_(root, **over, revision=2), seeds.event(3, root, kind="round_closed"))


async def test_both_judge_a_comment_by_what_was_open_when_it_was_written(two: Two) -> None:
    """The second service reads it after the first one's round has ended, and would now take the answer as its own."""
    two.hub.comment(as_="ann", number=two.number, body="/service resume answer red")
    first, second = two.offices
    await a_second()
    account.want_reading(first.session.store)
    await first.turns()
    close(first, ONE)
    await first.turns()
    account.want_reading(second.session.store)
    await second.turns()
    assert two.said == []
    refusals = [body for body in two.hub.bodies(two.number) if "-refusal" in body]
    assert refusals
    assert all("several pauses were open here" in body for body in refusals)


async def test_a_pause_that_was_told_later_is_not_what_a_comment_means(two: Two) -> None:
    second = two.offices[1]
    close(second, TWO)
    await two.hear()
    await a_second()
    two.hub.comment(as_="ann", number=two.number, body="/service resume answer red")
    await a_second()
    later = {"round_id": f"{TWO}-r2", "number": 2, "opened_at": time.time() + 5, "expires_at": time.time() + 60}
    seeds.write(second.service, seeds.round_(TWO, **later), seeds.event(4, TWO, kind="round_opened"))
    await second.turns()
    await two.hear()
    assert [(job, text) for _, job, text in two.said] == [(ONE, "red")]
    assert two.answers() == []


async def test_who_waits_for_nobody_leaves_an_answer_to_the_one_that_does(two: Two) -> None:
    second = two.offices[1]
    close(second, TWO)
    await two.hear()
    await a_second()
    await two.told("/service resume answer red")
    assert [(job, text) for _, job, text in two.said] == [(ONE, "red")]
    assert two.answers() == []


@WITH_ONE_ACCOUNT_AND_WITH_TWO
async def test_each_reports_its_own(two: Two) -> None:
    await two.told("/service status")
    reports = [body for body in two.hub.bodies(two.number) if "-report" in (fact_in(body) or "")]
    assert [sum(root in body for body in reports) for root in (ONE, TWO)] == [1, 1]
    assert len(set(two.answers())) == len(two.answers()) == 2
    await two.hear()
    assert [body for body in two.hub.bodies(two.number) if "-report" in (fact_in(body) or "")] == reports
