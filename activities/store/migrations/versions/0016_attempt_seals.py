"""The seals of an attempt's recorded end. What earlier releases recorded is sealed now, as it stands."""

import sqlalchemy as sa
from alembic import op

from activities.sealing import attempt_seals, seal_key
from activities.store.database import home_of

revision = "0016"
down_revision = "0015"

_KEY = (sa.column("job_id", sa.String), sa.column("attempt", sa.Integer))
_PARTS = (sa.column("outcome", sa.JSON), sa.column("payload", sa.JSON), sa.column("diagnostics", sa.JSON))
_TABLE = sa.table("attempts", *_KEY, *_PARTS, sa.column("seals", sa.String), sa.column("ended_at", sa.Double))


def upgrade() -> None:
    op.add_column("attempts", sa.Column("seals", sa.String(200)))
    connection = op.get_bind()
    for row in connection.execute(sa.select(*_KEY, *_PARTS).where(_TABLE.c.ended_at.is_not(None))).all():
        parts = {"outcome": row.outcome, "payload": row.payload, "diagnostics": row.diagnostics}
        seals = attempt_seals.seal_parts(seal_key.ensure(home_of(connection)), row.job_id, row.attempt, parts)
        mine = (_TABLE.c.job_id == row.job_id) & (_TABLE.c.attempt == row.attempt)
        connection.execute(_TABLE.update().where(mine).values(seals=seals))
