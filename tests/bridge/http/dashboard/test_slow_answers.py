"""Slow checks run in the background."""

import threading

import pytest

from activities.settings.home import Home
from bridge.http.dashboard.parts.slow_answers import Background
from bridge.operations.service import Service
from tests.waiting import wait_for
from workflows.model.errors import UsageError

pytestmark = pytest.mark.ruling("M4")


def test_who_asks_gets_what_is_known_and_one_look_goes_on(home: Home) -> None:
    let, looks = threading.Event(), list[int]()

    def look(_: Service) -> int:
        looks.append(1)
        let.wait(60)
        return len(looks)

    background, service = Background(look), Service(home)
    assert [background.last_check(service).answer for _ in range(5)] == [None] * 5
    let.set()
    wait_for(lambda: background.last_check(service).answer == 1)
    assert (background.last_check(service).looking, len(looks)) == (False, 1)


def test_what_is_old_is_shown_until_something_newer_is_known(home: Home) -> None:
    numbers = iter(range(100))
    background, service = Background(lambda _: next(numbers), good_for=0.0), Service(home)
    wait_for(lambda: background.last_check(service).answer is not None)
    wait_for(lambda: (background.last_check(service).answer or 0) >= 2)


@pytest.mark.parametrize(("fault", "problem"), [(UsageError("no such file"), "no such file"), (KeyError("x"), "log")])
def test_a_look_that_fails_says_why_and_another_may_begin(home: Home, fault: Exception, problem: str) -> None:
    faults = [fault]

    def look(_: Service) -> int:
        if faults:
            raise faults.pop()
        return 7

    background, service = Background(look), Service(home)
    wait_for(lambda: problem in background.last_check(service).problem)
    background.begin(service)
    wait_for(lambda: background.last_check(service).answer == 7)
    assert background.last_check(service).problem == ""


def test_it_looks_with_the_settings_as_they_are_now(home: Home) -> None:
    background, service = Background(lambda now: now.settings.bridge.port), Service(home)
    assert service.settings.bridge.port == 8791
    home.config.write_text("[bridge]\nport = 9001\n")
    wait_for(lambda: background.last_check(service).answer == 9001)
