"""Problems with GitHub are listed among the things that wait for people (rulings B3, M1, L2)."""

import json
import time

import pytest

from activities.settings.home import Home
from activities.store.github import account, facts
from bridge.operations.github.account import Trouble
from bridge.operations.orders import attention
from bridge.operations.service import Service
from cli.main import main
from tests.bridge import github_seeds, seeds
from tests.bridge.github_seeds import SHOP

pytestmark = pytest.mark.ruling("B3", "L2")
OTHER = "job-111111111111"


def troubles(service: Service) -> tuple[Trouble, ...]:
    listed = attention.find(service).github
    page = attention.page(service, 0, 50)
    assert tuple(item.github for item in page.items if item.github) == listed, "the page shows what the command lists"
    assert page.total == attention.number(service) == len(listed)
    return listed


def test_what_could_not_be_written_waits_for_a_person_by_its_pull_request(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(home)
    seeds.write(service, seeds.task(title="Limit it"))
    github_seeds.thread(service, number=7)
    github_seeds.fact(service, "waits", number=7)
    assert troubles(service) == ()
    github_seeds.failed(service, "one", at=50.0, number=7)
    github_seeds.failed(service, "two", at=60.0, number=7, why="GitHub answers 404: Not Found")
    github_seeds.failed(service, "three", at=40.0, number=9)
    third, first = troubles(service)
    assert (third.about, first.about, first.facts) == ("acme/shop#9", "acme/shop#7", ("one", "two"))
    assert first.says == "end could not be written on acme/shop#7: GitHub answers 403: no (and 1 other reasons)"
    assert main(["attention"]) == 0
    shown = capsys.readouterr().out
    for command in first.next:
        assert f"\n  {command}\n" in shown
    assert main(["attention", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["github"][1]["facts"] == ["one", "two"]


def test_it_is_over_when_it_is_tried_again_or_need_not_be(home: Home) -> None:
    service = Service(home)
    github_seeds.failed(service, "one")
    github_seeds.failed(service, "two")
    facts.again(service.store, "one")
    facts.drop(service.store, "two")
    assert troubles(service) == ()
    assert [each.state for each in facts.of_root(service.store, seeds.ROOT)] == [facts.OPEN, facts.DROPPED]


def test_what_has_no_number_yet_goes_by_its_repository(home: Home) -> None:
    service = Service(home)
    github_seeds.failed(service, "one", number=0, kind="publish")
    [trouble] = troubles(service)
    assert (trouble.about, trouble.says) == (SHOP, f"publish could not be written on {SHOP}: GitHub answers 403: no")


def test_an_account_that_is_refused_is_told_of_at_once(home: Home) -> None:
    """Only a person can solve that."""
    service = Service(home)
    account.note(service.store, failing_since=time.time(), problem=f"{account.REFUSED}: GitHub answers 401: no")
    [trouble] = troubles(service)
    assert trouble.says.startswith("the account of [github] is refused: GitHub answers 401: no; since ")
    assert trouble.next == ("service doctor", "service github sync")


@pytest.mark.parametrize(
    ("minutes", "waits", "listed"),
    [(11, "fact", True), (9, "fact", False), (11, "tree", True), (11, "nothing", False), (None, "fact", False)],
)
def test_an_account_without_an_answer_is_told_of_once_it_lasts_and_matters(
    home: Home, minutes: float | None, waits: str, listed: bool
) -> None:
    service = Service(home)
    since = None if minutes is None else time.time() - minutes * 60
    account.note(service.store, failing_since=since, problem="GitHub answers 502")
    if waits == "fact":
        github_seeds.fact(service, "one")
    github_seeds.thread(service, over=waits != "tree")
    problems = troubles(service)
    assert bool(problems) is listed
    if listed:
        assert problems[0].about == "account"
        assert problems[0].says.startswith("GitHub answers 502; since ")
        assert "service github status" in problems[0].next
