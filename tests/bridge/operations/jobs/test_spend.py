"""Spending by day, agent, repository and model."""

from collections.abc import Iterator
from typing import Any

import pytest

from activities.settings.home import Home
from bridge.operations.jobs import spend
from bridge.operations.service import Service
from tests.bridge import seeds
from workflows.model.errors import UsageError
from workflows.model.spend import Usage

pytestmark = pytest.mark.ruling("M4")
DAY = 86_400
NOW = 20_000.5 * DAY
"""Noon of 4 October 2024, in UTC."""


@pytest.fixture
def service(home: Home) -> Iterator[Service]:
    made = Service(home)
    yield made
    made.store.dispose()


def write(service: Service, number: int, days_ago: float, usd: float, **fields: Any) -> None:
    at = NOW - days_ago * DAY
    used: dict[str, Any] = {"usage": Usage(input_tokens=100, output_tokens=10), "cost_usd": usd, "queued_at": at}
    seeds.write(service, seeds.job(f"{seeds.ROOT}.{number}", **used | fields))


def test_every_day_is_there_the_oldest_first(service: Service) -> None:
    write(service, 1, 0, 0.5)
    write(service, 2, 2, 0.25)
    write(service, 3, 3, 8.0)
    usage = spend.find(service, 3, NOW)
    assert [(line.name, line.used.jobs) for line in usage.days] == [
        ("2024-10-02", 1),
        ("2024-10-03", 0),
        ("2024-10-04", 1),
    ]
    assert usage.total == spend.SpendSum(2, 200, 20, 0.75)


def test_a_host_s_clock_that_is_ahead_loses_nothing(service: Service) -> None:
    write(service, 1, -1.0, 0.5)
    usage = spend.find(service, 1, NOW)
    assert [line.name for line in usage.days] == ["2024-10-04", "2024-10-05"]
    assert usage.total.jobs == 1


def test_the_dearest_come_first_and_a_guess_is_said(service: Service) -> None:
    write(service, 1, 0, 0.5, agent="cheap", repo="a/a", model="known")
    write(service, 2, 1, 2.0, agent="dear", repo="b/b", model=None, price_assumed=True)
    usage = spend.find(service, 30, NOW)
    assert [(line.name, line.used.price_assumed) for line in usage.agents] == [("dear", True), ("cheap", False)]
    assert [line.name for line in usage.repos] == ["b/b", "a/a"]
    assert [line.name for line in usage.models] == ["", "known"]
    assert usage.total.price_assumed
    assert [each["model"] for each in spend.as_json(usage)["models"]] == [None, "known"]


def test_the_results_that_agents_were_asked_to_correct_are_counted(service: Service) -> None:
    write(service, 1, 1, 0.5, agent="hasty", model="small")
    write(service, 2, 1, 0.5, agent="careful")
    asked = [
        seeds.event(number, f"{seeds.ROOT}.1", kind="result_repaired", at=NOW - number * DAY) for number in (1, 2, 5)
    ]
    seeds.write(service, *asked)
    usage = spend.find(service, 3, NOW)
    assert [(line.name, line.used.jobs, line.used.repaired) for line in usage.days] == [
        ("2024-10-02", 0, 1),
        ("2024-10-03", 2, 1),
        ("2024-10-04", 0, 0),
    ]
    assert {line.name: line.used.repaired for line in usage.agents} == {"hasty": 2, "careful": 0}
    assert {line.name: line.used.repaired for line in usage.models} == {"small": 2, "": 0}


@pytest.mark.parametrize("days", [0, -1, 367])
def test_days_are_bounded(service: Service, days: int) -> None:
    with pytest.raises(UsageError, match="days cannot be shown"):
        spend.find(service, days)
