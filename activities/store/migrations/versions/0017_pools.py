"""The pools of hosts with equal labels and equal room, from which a few are drawn for an attempt (ruling Q4)."""

import json
from random import random

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("pool", sa.Text, nullable=False, server_default=""))
    op.add_column("hosts", sa.Column("lot", sa.Double, nullable=False, server_default="0"))
    op.create_index("hosts_by_pool", "hosts", ["pool", "lot"])
    connection = op.get_bind()
    for name, labels in connection.execute(sa.text("SELECT name, CAST(labels AS TEXT) FROM hosts")).all():
        known = json.loads(labels)
        own = {label for label in known if isinstance(label, str)} if isinstance(known, list) else set()
        pool = " ".join(("1", *sorted(own - {f"host:{name}"})))  # its worker will say soon how full it is
        row = {"name": name, "pool": pool, "lot": random()}  # noqa: S311
        connection.execute(sa.text("UPDATE hosts SET pool = :pool, lot = :lot WHERE name = :name"), row)
