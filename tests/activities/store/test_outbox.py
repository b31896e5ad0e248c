"""The outbox on every database: a notification once, a delivery final, a try counted."""

import pytest
from sqlalchemy import Engine

from activities.store import job_rows, outbox
from tests.activities.store.rows import EVENT, ROOT
from workflows.model.rows import EventRecord, Records

pytestmark = pytest.mark.ruling("F8")


def another(number: int, at: float) -> EventRecord:
    return EVENT.model_copy(update={"event_id": f"{ROOT}-e{number}", "at": at})


def add(store: Engine, *events: EventRecord) -> None:
    with store.begin() as connection:
        outbox.add(connection, events)


def test_only_events_for_people_enter_the_outbox_and_never_change(store: Engine) -> None:
    quiet = another(4, 13.0).model_copy(update={"kind": "job_started"})
    for message in ("Which? - é", "written again"):
        job_rows.write(store, Records(events=(EVENT.model_copy(update={"message": message}), quiet)))
    notification = outbox.get(store, EVENT.event_id)
    assert notification == outbox.Notification(f"{ROOT}-e3", ROOT, f"{ROOT}.2", "round_opened", "Which? - é", 12.5)
    assert outbox.get(store, quiet.event_id) is None


def test_attempts_are_counted_and_the_last_error_is_shown(store: Engine) -> None:
    add(store, EVENT)
    assert outbox.failing(store) == [], "what was not tried yet is not overdue"
    for error in ("no route", "exit code 1"):
        outbox.record_try(store, EVENT.event_id, "command", error)
    [(notification, how)] = outbox.failing(store)
    assert notification.message == EVENT.message
    assert how == outbox.Delivery(EVENT.event_id, "command", 2, None, "exit code 1")


def test_a_delivery_is_final(store: Engine) -> None:
    add(store, EVENT)
    outbox.record_try(store, EVENT.event_id, "command", "busy")
    outbox.record_try(store, EVENT.event_id, "command", "")
    outbox.record_try(store, EVENT.event_id, "command", "a late loser")
    assert outbox.is_delivered(store, EVENT.event_id, "command")
    assert outbox.failing(store) == []


def test_channels_are_apart_and_the_oldest_is_first(store: Engine) -> None:
    add(store, another(5, 20.0), another(6, 10.0))
    for number, channel, error in ((5, "log", ""), (5, "webhook", "503"), (6, "webhook", "503")):
        outbox.record_try(store, f"{ROOT}-e{number}", channel, error)
    assert not outbox.is_delivered(store, f"{ROOT}-e5", "webhook")
    assert not outbox.is_delivered(store, f"{ROOT}-e6", "log")
    assert [(told.notification_id, how.channel) for told, how in outbox.failing(store)] == [
        (f"{ROOT}-e6", "webhook"),
        (f"{ROOT}-e5", "webhook"),
    ]


@pytest.mark.ruling("B6", "F8.told")
def test_a_row_that_was_refused_is_told(store: Engine) -> None:
    refusal = EventRecord(
        event_id=f"{ROOT}-e1", job_id=ROOT, root_job_id=ROOT, kind="record_refused", at=1.0, message="written shortened"
    )
    job_rows.write(store, Records(events=(refusal,)))
    kept = outbox.get(store, refusal.event_id)
    assert kept is not None
    assert kept.message == "written shortened"
