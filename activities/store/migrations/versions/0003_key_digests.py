"""Keys of repeatable calls become digests: what was sent before is found again, and stands nowhere as it was sent."""

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_TABLE = sa.table("idempotency", sa.column("key", sa.String(200)))


def upgrade() -> None:
    connection = op.get_bind()
    for key in connection.execute(sa.select(_TABLE.c.key)).scalars().all():
        digest = sha256(key.encode()).hexdigest()
        connection.execute(sa.update(_TABLE).where(_TABLE.c.key == key).values(key=digest))
