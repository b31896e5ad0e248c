"""The outbox of notifications to people and their delivery: a row per notification, and one per channel."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Engine, select, update

from activities.store import schema
from activities.store.database import insert_new, rows_with
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


def add(connection: Connection, events: tuple[EventRecord, ...]) -> None:
    """Put events into the outbox; existing ones stay as they are."""
    rows = [
        {
            "notification_id": event.event_id,
            "root_job_id": event.root_job_id,
            "job_id": event.job_id,
            "kind": event.kind,
            "message": event.message,
            "at": event.at,
        }
        for event in events
    ]
    insert_new(connection, schema.notifications, rows)


def get(engine: Engine, notification_id: str) -> Notification | None:
    with engine.connect() as connection:
        key = {"notification_id": notification_id}
        row = connection.execute(rows_with(schema.notifications.c.notification_id), key).one_or_none()
    return Notification(**row._mapping) if row else None


def is_delivered(engine: Engine, notification_id: str, channel: str) -> bool:
    query = select(schema.deliveries.c.delivered_at).where(_key(notification_id, channel))
    with engine.connect() as connection:
        return connection.execute(query).scalar() is not None


def attempted(engine: Engine, notification_id: str, channel: str, error: str) -> None:
    """Record a try. An empty error means delivered, which is final."""
    row = {"notification_id": notification_id, "channel": channel, "attempts": 0, "error": ""}
    change = {
        "attempts": schema.deliveries.c.attempts + 1,
        "error": error,
        "delivered_at": None if error else time.time(),
    }
    undelivered = schema.deliveries.c.delivered_at.is_(None)
    with engine.begin() as connection:
        insert_new(connection, schema.deliveries, [row])
        connection.execute(
            update(schema.deliveries).where(_key(notification_id, channel), undelivered).values(**change)
        )


def undelivered(engine: Engine, ids: Collection[str] | None = None) -> list[tuple[Notification, Delivery]]:
    """Return notifications with a failed delivery, of these ids or of all: they need attention too."""
    told = schema.deliveries.c
    query = (
        select(schema.notifications, told.channel, told.attempts, told.delivered_at, told.error)
        .join(schema.deliveries)
        .where(schema.deliveries.c.delivered_at.is_(None))
        .order_by(schema.notifications.c.at)
    )
    if ids is not None:
        query = query.where(told.notification_id.in_(ids))
    with engine.connect() as connection:
        found = [dict(row._mapping) for row in connection.execute(query)]
    names = [column.name for column in schema.notifications.c]
    return [
        (
            Notification(**{name: row[name] for name in names}),
            Delivery(row["notification_id"], row["channel"], row["attempts"], row["delivered_at"], row["error"]),
        )
        for row in found
    ]


def _key(notification_id: str, channel: str) -> ColumnElement[bool]:
    deliveries = schema.deliveries.c
    return (deliveries.notification_id == notification_id) & (deliveries.channel == channel)
