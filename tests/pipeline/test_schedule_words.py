"""Schedules in words (ruling M4)."""

import pytest

from workflows.pipeline.definition import Schedule
from workflows.pipeline.schedule_words import in_words

pytestmark = pytest.mark.ruling("M4")


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 3 * * *", "every day at 03:00"),
        ("5 14 * * 1-5", "every Monday to Friday at 14:05"),
        ("30 9 * * mon,WED,5", "every Monday, Wednesday and Friday at 09:30"),
        ("0 0 * * 7", "every Sunday at 00:00"),
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/15 * * * 6-7", "every 15 minutes on Saturday to Sunday"),
        ("20 * * * *", "every hour at :20"),
        ("0 */6 * * *", "every 6 hours at :00"),
        ("@daily", "every day at 00:00"),
        ("@every 5m", "every 5m"),
    ],
)
def test_the_usual_ones_are_said_in_words(cron: str, words: str) -> None:
    assert in_words(Schedule(cron=cron)) == f"{words} (UTC)"


@pytest.mark.parametrize(
    "cron",
    [
        *("0 3 1 * *", "0 3 * 1 *", "0,30 3-5 * * *", "0 3 * * 1/2", "0 3 * * 8", "0 3 * * 1-2-3", "0 0 3 * * * 2030"),
        *(f"0 3 * * {'9' * 5_000}", f"{'9' * 5_000} 3 * * *", "0 3 * * ²", "² 3 * * *"),
    ],
)
def test_what_cannot_be_said_shortly_is_shown_as_it_was_written(cron: str) -> None:
    assert in_words(Schedule(cron=cron, timezone="Europe/Rome")) == f"by cron {cron} (Europe/Rome)"


def test_an_interval_and_its_jitter() -> None:
    assert in_words(Schedule(interval="1h30m", jitter="5m")) == "every 1h30m, up to 5m later"
