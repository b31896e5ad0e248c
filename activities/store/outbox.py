"""The outbox of notifications to people and their delivery: a row per notification, and one per channel."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, select, update

from activities.store import schema
from activities.store.queries import Database, insert_new, one, rows, scalar, write
from workflows.model.rows import EventRecord


@dataclass(frozen=True)
class Notification:
    """A message to people; its id is the event's."""

    notification_id: str
    root_job_id: str
    job_id: str
    kind: str
    message: str
    at: float
    text: str = ""
    """The whole message, on several lines. This and the following fields are looked up at delivery."""
    repo: str = ""
    title: str = ""
    questions: tuple[dict[str, object], ...] = ()
    failing: tuple[dict[str, object], ...] = ()
    commands: tuple[str, ...] = ()
    """Commands to type."""
    page: str = ""
    """URL of the dashboard's page with the same actions; empty if the dashboard's address is unknown."""
    expires_at: float | None = None
    jobs: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    elapsed_seconds: float = 0.0


@dataclass(frozen=True)
class Delivery:
    """The state of a notification's delivery on one channel."""

    notification_id: str
    channel: str
    attempts: int
    delivered_at: float | None
    error: str


def add(store: Database, events: tuple[EventRecord, ...]) -> None:
    """Put events into the outbox; existing ones stay as they are."""
    new = (
        {
            "notification_id": event.event_id,
            "root_job_id": event.root_job_id,
            "job_id": event.job_id,
            "kind": event.kind,
            "message": event.message,
            "at": event.at,
        }
        for event in events
    )
    insert_new(store, schema.notifications, *new)


def get(engine: Engine, notification_id: str) -> Notification | None:
    row = one(engine, select(schema.notifications).where(schema.notifications.c.notification_id == notification_id))
    return Notification(**row._mapping) if row else None


def is_delivered(engine: Engine, notification_id: str, channel: str) -> bool:
    query = select(schema.deliveries.c.delivered_at).where(_key(notification_id, channel))
    return scalar(engine, query) is not None


def record_try(engine: Engine, notification_id: str, channel: str, error: str) -> None:
    """Record a try. An empty error means delivered, which is final."""
    row = {"notification_id": notification_id, "channel": channel, "attempts": 0, "error": ""}
    change = {
        "attempts": schema.deliveries.c.attempts + 1,
        "error": error,
        "delivered_at": None if error else time.time(),
    }
    undelivered = schema.deliveries.c.delivered_at.is_(None)
    with engine.begin() as connection:
        insert_new(connection, schema.deliveries, row)
        write(connection, update(schema.deliveries).where(_key(notification_id, channel), undelivered).values(**change))


def failing(engine: Engine, ids: Collection[str] | None = None) -> list[tuple[Notification, Delivery]]:
    """Return notifications with a failed delivery, of these ids or of all: people have to look at them."""
    deliveries = schema.deliveries.c
    query = (
        select(schema.notifications, deliveries.channel, deliveries.attempts, deliveries.delivered_at, deliveries.error)
        .join(schema.deliveries)
        .where(schema.deliveries.c.delivered_at.is_(None))
        .order_by(schema.notifications.c.at)
    )
    if ids is not None:
        query = query.where(deliveries.notification_id.in_(ids))
    names = [column.name for column in schema.notifications.c]
    return [
        (
            Notification(**{name: row._mapping[name] for name in names}),
            Delivery(row.notification_id, row.channel, row.attempts, row.delivered_at, row.error),
        )
        for row in rows(engine, query)
    ]


def _key(notification_id: str, channel: str) -> ColumnElement[bool]:
    deliveries = schema.deliveries.c
    return (deliveries.notification_id == notification_id) & (deliveries.channel == channel)
